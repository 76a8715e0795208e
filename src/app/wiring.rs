//! The loop on the real machine: sampler thread, terminal, signals.

use std::time::Duration;

use crossterm::event::{self, Event};
use futures_util::Stream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::{App, Flow, Outside, Signal};
use crate::config::Config;
use crate::job::Candidate;
use crate::source::sampler::{Options, Sampler};
use crate::terminal::{self, Screen};
use crate::verdict::Kind;

/// SIGCONT, which the portable names leave out.
const CONTINUED: i32 = rustix::process::Signal::CONT.as_raw();
/// SIGTSTP.
const STOP_TYPED: i32 = rustix::process::Signal::TSTP.as_raw();

/// What to watch, and how.
#[derive(Debug)]
pub struct Setup {
    pub options: Options,
    /// What the target was resolved to, where that was done already.
    pub job: Option<Candidate>,
    pub config: Config,
    /// What the verdict speaks of.
    pub window: Duration,
    /// What is looked for while there is no job, in words.
    pub wanted: String,
    /// End after this time.
    pub span: Option<Duration>,
}

/// Watches on the terminal; gives the kind of the last verdict.
///
/// # Errors
/// Where no thread can be started or the terminal cannot be taken.
pub fn watch(setup: Setup) -> anyhow::Result<Option<Kind>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let signals = signals()?;
        // One slot: a screen that cannot keep up shows the newest, and never an older queue.
        let (send, samples) = mpsc::channel(1);
        let sampler = Sampler::start(setup.options, setup.job, move |sample| {
            match send.try_send(sample) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => true,
                Err(mpsc::error::TrySendError::Closed(_)) => false,
            }
        })?;
        let mut app = App::new(setup.config, setup.window, setup.wanted);
        let mut screen = Screen::open()?;
        let outside = Outside {
            keys: keys()?,
            samples,
            signals,
            ask: |request| sampler.request(request),
            terminal: |flow: &Flow| match flow {
                Flow::Suspend => terminal::suspend(),
                _ => terminal::resume(),
            },
            span: setup.span,
            replay: None,
        };
        let ended = app.run(&mut screen.terminal, outside).await;
        drop(screen);
        ended.map(|()| app.kind())
    })
}

/// Keys as they come. A thread of their own reads them: of a terminal that was hung up, crossterm 0.29 reads
/// nothing for ever and does not return, which must not keep the loop from ending.
pub(super) fn keys() -> std::io::Result<impl Stream<Item = std::io::Result<Event>> + Unpin> {
    let (send, mut keys) = mpsc::channel(64);
    std::thread::Builder::new()
        .name("keys".into())
        .spawn(move || {
            loop {
                let key = event::read();
                let failed = key.is_err();
                if send.blocking_send(key).is_err() || failed {
                    break;
                }
            }
        })?;
    Ok(futures_util::stream::poll_fn(move |context| {
        keys.poll_recv(context)
    }))
}

/// Signals as they come, for as long as the runtime lives.
pub(super) fn signals() -> std::io::Result<mpsc::Receiver<Signal>> {
    let (send, signals) = mpsc::channel(4);
    let kinds = [
        (SignalKind::terminate(), Signal::Stop),
        (SignalKind::hangup(), Signal::Stop),
        (SignalKind::interrupt(), Signal::Stop),
        (SignalKind::from_raw(STOP_TYPED), Signal::Suspend),
        (SignalKind::from_raw(CONTINUED), Signal::Resume),
    ];
    for (kind, meaning) in kinds {
        let mut stream = signal(kind)?;
        let send = send.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if send.send(meaning).await.is_err() {
                    break;
                }
            }
        });
    }
    Ok(signals)
}
