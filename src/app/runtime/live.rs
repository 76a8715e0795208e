//! The loop on the real machine: a sampler thread or a recording, terminal, signals.

use std::ops::RangeInclusive;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::event::{self, Event};
use futures_util::Stream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::super::figures::figures_of;
use super::super::{App, Effect, Event as Heard, Launched, OBSERVED, Signal, trouble};
use super::Io;
use crate::config::Config;
use crate::job::Candidate;
use crate::launch::{CommandHandle, Log, SupervisorEvent};
use crate::record::Recording;
use crate::sample::Sample;
use crate::serve::{Board, Search};
use crate::source::replay::Player;
use crate::source::sampler::{Common, Options, Sampler};
use crate::terminal::{self, Screen};
use crate::verdict::Kind;

/// SIGCONT, which the portable names leave out.
const CONTINUED: i32 = rustix::process::Signal::CONT.as_raw();
/// SIGABRT, as somebody sends it: the screen goes before the program does.
const ABORT: i32 = rustix::process::Signal::ABORT.as_raw();
/// SIGXCPU, the limit of CPU time.
const CPU_LIMIT: i32 = rustix::process::Signal::XCPU.as_raw();
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
    /// Stands in the place of the keys; any key ends the watching.
    pub caption: Option<String>,
}

/// A launched command.
pub struct Launch {
    pub launched: Launched,
    /// What it prints.
    pub log: Log,
    pub events: std::sync::mpsc::Receiver<SupervisorEvent>,
    pub handle: CommandHandle,
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
    /// That verdict in one line. `None` where there was no job.
    pub verdict: Option<String>,
    /// Somebody wants to leave, and not only to go on.
    pub left: bool,
    /// Of a launched command, with its output from where it was not read yet, and what there is still to hear.
    pub launched: Option<(Launched, Log, std::sync::mpsc::Receiver<SupervisorEvent>)>,
}

/// What to replay, and how.
#[derive(Debug)]
pub struct ReplaySession {
    pub recording: Recording,
    /// Of the samples to show, the numbers.
    pub numbers: RangeInclusive<u64>,
    /// Recorded seconds in a second; `None` = as they were taken.
    pub speed: Option<f64>,
    pub config: Config,
    /// What is to be known from the start, in words.
    pub notice: Option<String>,
}

/// Between two polls for what a launched command has printed.
const PRINTED: Duration = Duration::from_millis(250);

/// Watches on the terminal, until the user, a signal or the end of a launched command ends it.
///
/// # Errors
/// Where no thread can be started or the terminal cannot be taken.
pub fn watch(setup: Setup) -> anyhow::Result<Outcome> {
    let mut app = App::new(setup.config, setup.window, setup.wanted);
    app.state.recording = setup.options.recorder.is_some();
    app.caption(setup.caption);
    let (tell, messages) = mpsc::channel(16);
    let list = JobList {
        options: Options {
            recorder: None,
            tee: None,
            ..setup.options.clone()
        },
        board: Arc::default(),
        search: None,
    };
    let (board, listed) = (Arc::clone(&list.board), tell.clone());
    let (mut each, mut command, mut hearing) = (None, None, None);
    if let Some(launch) = setup.launch {
        app = app.launched(launch.launched);
        (each, command) = (Some(launch.each), Some(launch.handle));
        hearing = Some(hear(launch.log, launch.events, tell)?);
    }
    // One slot: a screen that cannot keep up is shown no older queue. What it misses is in the next sample, too.
    let (send, readings) = mpsc::channel(1);
    let sampler = Sampler::start(setup.options, setup.job, move |sample| {
        if let Some(each) = &mut each {
            each(&sample);
        }
        if !sample.candidates.is_empty() {
            let figures = board.each(figures_of).into_iter().collect();
            // Where nobody takes them, the next ones are as good.
            let _ = listed.try_send(Heard::Jobs(figures));
        }
        match send.try_send(Heard::Sample(Box::new(sample))) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    })?;
    let job = WatchedJob {
        readings,
        messages,
        sampler: Some(sampler),
        list: Some(list),
        command,
    };
    on_terminal(&mut app, job, setup.span)?;
    let heard = hearing.and_then(|hearing| hearing.join().ok());
    Ok(Outcome {
        kind: app.kind(),
        verdict: app.last_words(),
        left: app.left,
        launched: app
            .launched
            .zip(heard)
            .map(|(launched, (log, events))| (launched, log, events)),
    })
}

/// Replays on the terminal; gives the kind of the last verdict.
///
/// # Errors
/// Where no thread can be started or the terminal cannot be taken.
pub fn replay(session: ReplaySession) -> anyhow::Result<Option<Kind>> {
    let samples = session.recording.into_samples();
    let player = Player::new(samples, session.numbers, session.speed);
    let wanted = "a job in the recording".to_owned();
    let mut app = App::new(session.config, OBSERVED, wanted).replaying(player);
    app.state.notice = session.notice.map(trouble);
    // No sampler and no command say anything.
    let nobody = WatchedJob {
        readings: mpsc::channel(1).1,
        messages: mpsc::channel(1).1,
        sampler: None,
        list: None,
        command: None,
    };
    on_terminal(&mut app, nobody, None)?;
    Ok(app.kind())
}

/// What there is to hear of a job that runs, and who obeys what the screen asks for.
struct WatchedJob {
    readings: mpsc::Receiver<Heard>,
    /// Of a launched command.
    messages: mpsc::Receiver<Heard>,
    sampler: Option<Sampler>,
    list: Option<JobList>,
    command: Option<CommandHandle>,
}

/// Watches all jobs that match, for as long as there is a list of them.
struct JobList {
    options: Options,
    board: Arc<Board>,
    search: Option<Search>,
}

impl JobList {
    fn watch(&mut self, all: bool) {
        if !all {
            // Its threads end one after the other: not while keys wait.
            let search = self.search.take();
            std::thread::spawn(move || drop(search));
        } else if self.search.is_none() {
            let search = Search::start(
                self.options.clone(),
                Common::start(&self.options),
                true,
                Arc::clone(&self.board),
            );
            // Without it there is still a list.
            self.search = search.map_err(|error| tracing::warn!("{error}")).ok();
        }
    }
}

/// The loop on the real terminal, which is given back at its end.
fn on_terminal(app: &mut App, job: WatchedJob, span: Option<Duration>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        terminal::use_mouse(app.config.mouse);
        let signals = signals()?;
        if app.config.theme.is_light() && terminal::is_dark() {
            let text = "the terminal's background is dark: use --theme dark";
            app.state.notice = Some(trouble(text.to_owned()));
        }
        let mut screen = Screen::open()?;
        let (sampler, command) = (job.sampler, job.command);
        let mut list = job.list;
        let io = Io {
            keys: keys()?,
            readings: job.readings,
            signals,
            messages: job.messages,
            blocked: blocked(),
            span,
            perform: |effect| {
                match effect {
                    Effect::Sampler(request) => {
                        if let Some(sampler) = &sampler {
                            sampler.request(request);
                        }
                    }
                    Effect::WatchAll(all) => {
                        if let Some(list) = &mut list {
                            list.watch(all);
                        }
                    }
                    Effect::EndCommand => command.iter().for_each(CommandHandle::end),
                    Effect::KillCommand => command.iter().for_each(CommandHandle::kill),
                    Effect::Copy(text) => terminal::copy(&text)?,
                    Effect::SuspendTerminal => terminal::suspend()?,
                    Effect::ResumeTerminal => terminal::resume()?,
                    // These are the loop's.
                    Effect::Draw | Effect::Redraw | Effect::Save | Effect::Quit => {}
                }
                Ok(())
            },
        };
        app.run(&mut screen.terminal, io).await
    })
}

type Hearing = JoinHandle<(Log, std::sync::mpsc::Receiver<SupervisorEvent>)>;

/// Tells the loop what a launched command prints and how it ends, for as long as it listens.
fn hear(
    mut log: Log,
    events: std::sync::mpsc::Receiver<SupervisorEvent>,
    tell: mpsc::Sender<Heard>,
) -> std::io::Result<Hearing> {
    let hear = move || {
        while !tell.is_closed() {
            let heard = match events.recv_timeout(PRINTED) {
                Ok(heard) => Some(heard),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            // Before its end what it has printed; of a file that cannot be read there is nothing to show.
            let _ = log.read_on(|bytes| {
                let printed = Heard::Printed(bytes.to_vec());
                let sent = tell.blocking_send(printed);
                sent.map_err(|_| std::io::ErrorKind::BrokenPipe.into())
            });
            if let Some(heard) = heard {
                // Who does not listen has left.
                let _ = tell.blocking_send(Heard::Command(heard));
            }
        }
        (log, events)
    };
    std::thread::Builder::new().name("log".into()).spawn(hear)
}

/// Who gets the keys: the screen that was opened last.
static TAKER: Mutex<Option<mpsc::Sender<std::io::Result<Event>>>> = Mutex::new(None);

fn taker() -> MutexGuard<'static, Option<mpsc::Sender<std::io::Result<Event>>>> {
    TAKER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keys as they come. A thread of their own reads them: of a terminal that was hung up, crossterm 0.29 reads
/// nothing for ever and does not return, which must not keep the loop from ending. One thread serves all screens that
/// are opened one after the other: that of an earlier screen would take a key of the next.
pub(crate) fn keys() -> std::io::Result<impl Stream<Item = std::io::Result<Event>> + Unpin> {
    let (send, mut keys) = mpsc::channel(64);
    let is_read = taker().replace(send).is_some();
    if !is_read {
        let read = || {
            loop {
                let key = event::read();
                let failed = key.is_err();
                let to = if failed {
                    taker().take()
                } else {
                    taker().clone()
                };
                // Between two screens nobody takes it.
                let _ = to.map(|to| to.blocking_send(key));
                if failed {
                    break;
                }
            }
        };
        std::thread::Builder::new()
            .name("keys".into())
            .spawn(read)
            .inspect_err(|_| drop(taker().take()))?;
    }
    Ok(futures_util::stream::poll_fn(move |context| {
        keys.poll_recv(context)
    }))
}

/// Whether the terminal has still to take a frame.
pub(crate) fn blocked() -> watch::Receiver<bool> {
    let (tell, blocked) = watch::channel(false);
    terminal::on_output(move |taken| {
        tell.send_replace(taken);
    });
    blocked
}

/// Signals as they come, for as long as the runtime lives.
pub(crate) fn signals() -> std::io::Result<mpsc::Receiver<Signal>> {
    let (send, signals) = mpsc::channel(4);
    let kinds = [
        (SignalKind::terminate(), Signal::Stop),
        (SignalKind::hangup(), Signal::Stop),
        (SignalKind::interrupt(), Signal::Stop),
        (SignalKind::quit(), Signal::Stop),
        (SignalKind::from_raw(ABORT), Signal::Stop),
        (SignalKind::from_raw(CPU_LIMIT), Signal::Stop),
        (SignalKind::from_raw(STOP_TYPED), Signal::Suspend),
        (SignalKind::from_raw(CONTINUED), Signal::Resume),
    ];
    // For the job, as from Slurm before its time is over. They end no screen.
    for kind in [
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
        SignalKind::alarm(),
    ] {
        drop(signal(kind)?);
    }
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
