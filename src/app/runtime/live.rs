//! The loop on the real machine: a sampler thread or a recording, terminal, signals.

use std::ops::RangeInclusive;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::event::{self, Event};
use futures_util::Stream;
use rustix::process::Signal as Number;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::super::figures::figures_of;
use super::super::{App, Effect, Event as Heard, LaunchedCommand, Signal};
use super::{Io, Shown};
use crate::background::{OwnedThread, lock, runtime, spawn};
use crate::config::Config;
use crate::job::Candidate;
use crate::launch::{CommandHandle, Log, SupervisorEvent, have_open_files};
use crate::record::Samples;
use crate::sample::Sample;
use crate::serve::{Board, search};
use crate::source::replay::Player;
use crate::source::sampler::{Common, Options, Sampler};
use crate::terminal::{self, Screen};
use crate::verdict::Kind;

/// What to watch, and how.
pub struct Setup {
    pub options: Options,
    /// The process that the target was resolved to, if that was done already.
    pub job: Option<Candidate>,
    /// Holds the figures of the jobs while they are listed.
    pub(crate) board: Arc<Board>,
    pub config: Config,
    /// Describes the job that pipetop looks for while there is none.
    pub wanted: String,
    /// Quit after this time.
    pub span: Option<Duration>,
    /// The watched command, if pipetop launched it.
    pub launch: Option<Launch>,
    /// A tour's text, shown above the panels; any key then closes the screen.
    pub caption: Option<String>,
}

/// A launched command.
pub struct Launch {
    pub launched: LaunchedCommand,
    /// Its output.
    pub log: Log,
    pub events: std::sync::mpsc::Receiver<SupervisorEvent>,
    pub handle: CommandHandle,
    /// Called with every sample.
    pub each: Box<dyn FnMut(&Sample) + Send>,
}

/// The state of the app after the screen was closed.
#[derive(Debug)]
pub struct AppOutcome {
    /// The kind of the last verdict. `None` if there was none.
    pub kind: Option<Kind>,
    /// That verdict in one line. `None` if there was no job.
    pub verdict: Option<String>,
    /// The user, or a signal, has ended a tour instead of moving on to the next job.
    #[cfg_attr(
        not(any(feature = "lab", feature = "testing")),
        expect(dead_code, reason = "only a tour moves on")
    )]
    pub left: bool,
    /// The launched command, its output that was not read yet, and its remaining events.
    pub launched: Option<(
        LaunchedCommand,
        Log,
        std::sync::mpsc::Receiver<SupervisorEvent>,
    )>,
}

/// What to replay, and how.
#[derive(Debug)]
pub struct ReplaySession {
    pub samples: Samples,
    /// The numbers of the samples to show.
    pub numbers: RangeInclusive<u64>,
    /// Recorded seconds per second; `None` = as they were recorded.
    pub speed: Option<f64>,
    pub config: Config,
}

/// Time between two polls for output of the launched command.
const PRINTED: Duration = Duration::from_millis(250);

/// Watches a job on the terminal, until the user, a signal or the end of a launched command ends it.
///
/// # Errors
/// Returns an error if no thread can be started or the terminal cannot be opened.
pub fn watch(setup: Setup) -> anyhow::Result<AppOutcome> {
    let mut app = App::new(setup.config, setup.wanted);
    app.state.recording = setup.options.recorder.is_some();
    app.caption(setup.caption);
    let (sender, messages) = mpsc::channel(16);
    let mut list = JobList {
        options: Options {
            recorder: None,
            tee: None,
            ..setup.options.clone()
        },
        board: setup.board,
        search: None,
    };
    let (board, listed) = (Arc::clone(&list.board), sender.clone());
    let (mut each, mut command, mut event_thread) = (None, None, None);
    if let Some(launch) = setup.launch {
        app = app.launched(launch.launched);
        (each, command) = (Some(launch.each), Some(launch.handle));
        event_thread = Some(forward_events(launch.log, launch.events, sender)?);
    }
    // One slot: old samples do not queue up for a screen that cannot keep up. The next sample covers a dropped one.
    let (send, readings) = mpsc::channel(1);
    let sampler = Sampler::start(setup.options, setup.job, move |sample| {
        if let Some(each) = &mut each {
            each(&sample);
        }
        if !sample.candidates.is_empty() {
            let figures = board.each(figures_of).into_iter().collect();
            // If the channel is full, the next figures replace these.
            let _ = listed.try_send(Heard::Jobs(figures));
        }
        match send.try_send(Heard::Sample(Box::new(sample))) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    })?;
    terminal::use_mouse(app.config.mouse);
    on_terminal(&mut app, readings, messages, setup.span, move |effect| {
        match effect {
            Effect::Sampler(request) => sampler.request(request),
            Effect::WatchAll(all) => list.watch(all),
            Effect::EndCommand => command.iter().for_each(CommandHandle::end),
            Effect::KillCommand => command.iter().for_each(CommandHandle::kill),
            // The loop and the terminal handle these.
            Effect::Copy(_)
            | Effect::SuspendTerminal
            | Effect::ResumeTerminal
            | Effect::Draw
            | Effect::Redraw
            | Effect::Save
            | Effect::Quit => {}
        }
    })?;
    let event = event_thread.and_then(|event_thread| event_thread.join().ok());
    Ok(AppOutcome {
        kind: app.kind(),
        verdict: app.final_line(),
        left: app.left,
        launched: app
            .launched
            .zip(event)
            .map(|(launched, (log, events))| (launched, log, events)),
    })
}

/// Replays on the terminal; returns the kind of the last verdict.
///
/// # Errors
/// Returns an error if no thread can be started or the terminal cannot be opened.
pub fn replay(session: ReplaySession) -> anyhow::Result<Option<Kind>> {
    let player = Player::new(session.samples, session.numbers, session.speed);
    let wanted = "a job in the recording".to_owned();
    let mut app = App::new(session.config, wanted).replaying(player);
    terminal::use_mouse(app.config.mouse);
    // A replay has no sampler and no command.
    let nobody = || mpsc::channel(1).1;
    on_terminal(&mut app, nobody(), nobody(), None, |_| {})?;
    Ok(app.kind())
}

/// Watches all matching jobs while the list of jobs is shown.
struct JobList {
    options: Options,
    board: Arc<Board>,
    search: Option<OwnedThread>,
}

impl JobList {
    fn watch(&mut self, all: bool) {
        if !all {
            // Stopping the search's threads one after the other takes time, for which keys should not wait.
            let search = self.search.take();
            std::thread::spawn(move || drop(search));
        } else if self.search.is_none() {
            let search = search(
                self.options.clone(),
                Common::start(&self.options),
                true,
                Arc::clone(&self.board),
            );
            // If the search cannot start, the list is shown without figures.
            self.search = search.map_err(|error| tracing::warn!("{error}")).ok();
        }
    }
}

/// Runs the loop on the real terminal, which is restored at the end. `perform` carries out the effects that do not
/// concern the terminal.
pub(crate) fn on_terminal<S: Shown>(
    shown: &mut S,
    readings: mpsc::Receiver<S::Message>,
    messages: mpsc::Receiver<S::Message>,
    span: Option<Duration>,
    mut perform: impl FnMut(Effect),
) -> anyhow::Result<()> {
    have_open_files()?;
    runtime()?.block_on(async {
        let signals = signals()?;
        shown.opens();
        let mut screen = Screen::open()?;
        let io = Io {
            keys: keys()?,
            readings,
            signals,
            messages,
            blocked: blocked(),
            span,
            perform: |effect| {
                match effect {
                    Effect::Copy(text) => terminal::copy(&text)?,
                    Effect::SuspendTerminal => terminal::suspend()?,
                    Effect::ResumeTerminal => terminal::resume()?,
                    effect => perform(effect),
                }
                Ok(())
            },
        };
        shown.run(&mut screen.terminal, io).await
    })
}

type EventThread = JoinHandle<(Log, std::sync::mpsc::Receiver<SupervisorEvent>)>;

/// Starts a thread that sends the output and the events of a launched command to the loop until the loop is gone.
fn forward_events(
    mut log: Log,
    events: std::sync::mpsc::Receiver<SupervisorEvent>,
    sender: mpsc::Sender<Heard>,
) -> std::io::Result<EventThread> {
    let forward_events = move || {
        while !sender.is_closed() {
            let event = match events.recv_timeout(PRINTED) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            // Output is sent before the end of the command. If the file cannot be read, there is nothing to show.
            let _ = log.read_new(|bytes| {
                let printed = Heard::Printed(bytes.to_vec());
                let sent = sender.blocking_send(printed);
                sent.map_err(|_| std::io::ErrorKind::BrokenPipe.into())
            });
            if let Some(event) = event {
                // If the channel is closed, the screen is gone.
                let _ = sender.blocking_send(Heard::Command(event));
            }
        }
        (log, events)
    };
    spawn("log", forward_events)
}

/// Receives the keys: the screen that was opened last.
static KEY_RECEIVER: Mutex<Option<mpsc::Sender<std::io::Result<Event>>>> = Mutex::new(None);

/// Returns the keys as they arrive. A separate thread reads them: on a terminal that was hung up, a read by crossterm
/// 0.29 never returns, and the loop must be able to end nevertheless. One thread serves all screens that are opened one
/// after the other: with a thread for each, an earlier screen's thread would take a key from the next screen.
fn keys() -> std::io::Result<impl Stream<Item = std::io::Result<Event>> + Unpin> {
    let (send, mut keys) = mpsc::channel(64);
    let is_read = lock(&KEY_RECEIVER).replace(send).is_some();
    if !is_read {
        let read = || {
            loop {
                let key = event::read();
                let failed = key.is_err();
                let to = if failed {
                    lock(&KEY_RECEIVER).take()
                } else {
                    lock(&KEY_RECEIVER).clone()
                };
                // A key between two screens is dropped.
                let _ = to.map(|to| to.blocking_send(key));
                if failed {
                    break;
                }
            }
        };
        spawn("keys", read).inspect_err(|_| drop(lock(&KEY_RECEIVER).take()))?;
    }
    Ok(futures_util::stream::poll_fn(move |context| {
        keys.poll_recv(context)
    }))
}

/// Returns a channel that holds whether the terminal has yet to accept a frame.
fn blocked() -> watch::Receiver<bool> {
    let (sender, blocked) = watch::channel(false);
    terminal::on_output(move |taken| {
        sender.send_replace(taken);
    });
    blocked
}

/// Returns a channel of signals as they arrive. It works as long as the async runtime exists.
fn signals() -> std::io::Result<mpsc::Receiver<Signal>> {
    let (send, signals) = mpsc::channel(4);
    let kinds = [
        (Number::TERM, Signal::Stop),
        (Number::HUP, Signal::Stop),
        (Number::INT, Signal::Stop),
        (Number::QUIT, Signal::Stop),
        // Sent by another process: the terminal is restored before pipetop ends.
        (Number::ABORT, Signal::Stop),
        // The limit of CPU time was reached.
        (Number::XCPU, Signal::Stop),
        (Number::TSTP, Signal::Suspend),
        (Number::CONT, Signal::Resume),
    ];
    let listen = |number: Number| signal(SignalKind::from_raw(number.as_raw()));
    // Signals meant for the job, such as Slurm's before its time limit, do not end the screen.
    for number in [Number::USR1, Number::USR2, Number::ALARM] {
        drop(listen(number)?);
    }
    for (number, meaning) in kinds {
        let mut stream = listen(number)?;
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
