//! The loop on the real machine: sampler thread, terminal, signals.

use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::event::{self, Event};
use futures_util::Stream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::{App, Event as Heard, Flow, Launched, Outside, Signal};
use crate::config::Config;
use crate::job::Candidate;
use crate::launch::{Log, News, Orders};
use crate::sample::Sample;
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
    /// The command that is watched, where we have launched it.
    pub launch: Option<Launch>,
}

/// A launched command.
pub struct Launch {
    pub launched: Launched,
    /// What it prints.
    pub log: Log,
    pub news: std::sync::mpsc::Receiver<News>,
    pub orders: Orders,
    /// Sees every sample.
    pub each: Box<dyn FnMut(&Sample) + Send>,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("launched", &self.launched)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

/// What is left when the screen is.
#[derive(Debug)]
pub struct Outcome {
    /// The kind of the last verdict. `None` where there was none.
    pub kind: Option<Kind>,
    /// Of a launched command, with its output from where it was not read yet, and what there is still to hear.
    pub launched: Option<(Launched, Log, std::sync::mpsc::Receiver<News>)>,
}

/// Between two looks for what a launched command has printed.
const PRINTED: Duration = Duration::from_millis(250);
/// The most that is shown of that at once.
const CHUNK: usize = 1 << 16;

/// Watches on the terminal, until the user, a signal or the end of a launched command ends it.
///
/// # Errors
/// Where no thread can be started or the terminal cannot be taken.
pub fn watch(setup: Setup) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        terminal::use_mouse(setup.config.mouse);
        let signals = signals()?;
        let mut app = App::new(setup.config, setup.window, setup.wanted);
        app.state.recording = setup.options.recorder.is_some();
        let (tell, told) = mpsc::channel(16);
        let (mut each, mut orders, mut hearing) = (None, None, None);
        if let Some(launch) = setup.launch {
            app = app.launched(launch.launched);
            (each, orders) = (Some(launch.each), Some(launch.orders));
            hearing = Some(hear(launch.log, launch.news, tell)?);
        }
        // One slot: a screen that cannot keep up shows the newest, and never an older queue.
        let (send, samples) = mpsc::channel(1);
        let sampler = Sampler::start(setup.options, setup.job, move |sample| {
            if let Some(each) = &mut each {
                each(&sample);
            }
            match send.try_send(sample) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => true,
                Err(mpsc::error::TrySendError::Closed(_)) => false,
            }
        })?;
        let mut screen = Screen::open()?;
        let outside = Outside {
            keys: keys()?,
            samples,
            signals,
            told,
            blocked: blocked(),
            end: || orders.iter().for_each(Orders::end),
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
        ended?;
        let heard = hearing.and_then(|hearing| hearing.join().ok());
        Ok(Outcome {
            kind: app.kind(),
            launched: app
                .launched
                .zip(heard)
                .map(|(launched, (log, news))| (launched, log, news)),
        })
    })
}

type Hearing = JoinHandle<(Log, std::sync::mpsc::Receiver<News>)>;

/// Tells the loop what a launched command prints and how it ends, for as long as it listens.
fn hear(
    mut log: Log,
    news: std::sync::mpsc::Receiver<News>,
    tell: mpsc::Sender<Heard>,
) -> std::io::Result<Hearing> {
    let hear = move || {
        let mut buffer = vec![0; CHUNK];
        while !tell.is_closed() {
            let heard = match news.recv_timeout(PRINTED) {
                Ok(heard) => Some(heard),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            // Before its end what it has printed; of a file that cannot be read there is nothing to show.
            while let Ok(length @ 1..) = log.read(&mut buffer) {
                let printed = Heard::Printed(buffer[..length].to_vec());
                if tell.blocking_send(printed).is_err() {
                    break;
                }
            }
            if let Some(heard) = heard {
                // Who does not listen has left.
                let _ = tell.blocking_send(Heard::Command(heard));
            }
        }
        (log, news)
    };
    std::thread::Builder::new().name("log".into()).spawn(hear)
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

/// Whether the terminal has still to take a frame.
pub(super) fn blocked() -> watch::Receiver<bool> {
    let (tell, blocked) = watch::channel(false);
    terminal::on_output(move |taken| {
        tell.send_replace(taken);
    });
    blocked
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
