//! A run on the screen: what the command prints is a pane of it, and what is left to say is printed after it.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use super::command::{exit_code, log, lost, name, start};
use super::printed::Printed;
use super::summary::Summary;
use crate::app::{self, Launch, Launched, Left, Setup};
use crate::cli::Run;
use crate::config::Config;
use crate::error::Hinted;
use crate::headless::WINDOW;
use crate::launch::{Ending, Kept, LaunchSpec, Log, OutputTarget, Running, SupervisorEvent};
use crate::output;
use crate::sample::Sample;
use crate::setup::{finish, no_screen};
use crate::source::sampler::Options;
use crate::units::printable;

/// Of the command's output so many lines stay on the terminal.
const LAST: usize = 20;

pub(super) fn run(
    args: &Run,
    mut spec: LaunchSpec,
    mut options: Options,
    config: Config,
) -> Result<ExitCode, Hinted> {
    let watch = &args.watch;
    if args.stdin && std::io::stdin().is_terminal() {
        return Err(Hinted::new(
            "the screen needs the keyboard, but --stdin passes it to the command",
            "omit --stdin, redirect standard input, or watch without a screen: pipetop run --stdin ... | cat",
        ));
    }
    let log = match log(args)? {
        Some(log) => log,
        None => Log::unnamed(&places()).map_err(|error| no_log(&error))?,
    };
    let output = OutputTarget::File(log.writer().map_err(|error| no_log(&error))?);
    // As it would on a terminal, it shall not keep its lines to itself.
    if std::env::var_os("PYTHONUNBUFFERED").is_none() {
        spec.environment
            .push(("PYTHONUNBUFFERED".into(), "1".into()));
    }
    let name = name(&spec.command);
    let (send, events) = mpsc::channel();
    let on_event = move |event| send.send(event).is_ok();
    let running = match start(spec, args.stdin, output, &mut options, on_event) {
        Ok(running) => running,
        Err(code) => return Ok(code),
    };
    let recorder = options.recorder.clone();
    let summary = Arc::new(Mutex::new(Summary::new()));
    let sum_up = Arc::clone(&summary);
    let launched = Launched::new(name.clone(), log.to_be_kept());
    let outcome = app::watch(Setup {
        options,
        job: None,
        config,
        window: WINDOW,
        wanted: format!("a Python process with PyTorch, started by `{name}`"),
        span: watch.span,
        launch: Some(Launch {
            launched,
            log,
            events,
            handle: running.handle().clone(),
            each: Box::new(move |sample: &Sample| {
                let mut summary = sum_up.lock().unwrap_or_else(PoisonError::into_inner);
                summary.apply(sample);
            }),
        }),
        caption: None,
    });
    let outcome = outcome.map_err(|error| no_screen(&error))?;
    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
    summary.close();
    let code = match outcome.launched {
        Some(left) => close(args, &name, running, left, &summary)?,
        None => ExitCode::SUCCESS,
    };
    finish(recorder)?;
    Ok(code)
}

/// Says what is left to say, and sees the command to its end, unless the user has left it running.
fn close(
    args: &Run,
    name: &str,
    running: Running,
    (launched, log, events): (Launched, Log, mpsc::Receiver<SupervisorEvent>),
    summary: &Summary,
) -> Result<ExitCode, Hinted> {
    let watch = &args.watch;
    let mut page = Page::default();
    let mut ended = launched.ended();
    page.output(&launched);
    match summary.report() {
        Some(report) => page.text(&output::text(&report)),
        None => page.text(&format!("{}\n", summary.nothing().lines())),
    }
    let mut stopped = launched.left() == Some(Left::Ending);
    if launched.left() == Some(Left::Running) && ended.is_none() {
        page.goes_on(name, &running, &log);
        page.print();
        running.release();
        return Ok(exit_code(None, true, summary.kind(), watch));
    }
    page.print();
    if ended.is_none() {
        if !std::io::stdout().is_terminal() {
            // The terminal is gone: what runs without one of its own hears of it from us.
            running.handle().hang_up();
        } else if args.stop {
            stopped = true;
            running.handle().end();
        }
        let printed = Printed::follow(log, false).map_err(|error| Hinted::no_thread(&error))?;
        ended = last_word(&events);
        drop(printed);
        if ended.is_none() {
            return Err(lost(running.pid()));
        }
    }
    running.release();
    if let Some(ending) = ended.filter(|ending| !stopped && ending.code() != 0) {
        let _ = writeln!(std::io::stderr(), "{name} {ending}");
    }
    Ok(exit_code(ended, stopped, summary.kind(), watch))
}

/// Waits for the command's end.
fn last_word(events: &mpsc::Receiver<SupervisorEvent>) -> Option<Ending> {
    let mut heard = events
        .iter()
        .take_while(|event| *event != SupervisorEvent::Gone);
    heard.find_map(|event| match event {
        SupervisorEvent::Ended(ending) => Some(ending),
        _ => None,
    })
}

/// Where output can lie that has no name yet, and get one if the command goes on without us.
fn places() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let places = here.into_iter().chain(home);
    places.chain([std::env::temp_dir()]).collect()
}

fn no_log(error: &std::io::Error) -> Hinted {
    Hinted::new(
        format!("cannot store the command's output: {error}"),
        "choose a file with --log FILE",
    )
}

/// What is left on the terminal.
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn text(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// The last lines of what the command printed: they were on the screen alone.
    fn output(&mut self, launched: &Launched) {
        let lines = launched.output();
        let before = lines.len().saturating_sub(LAST);
        if before > 0 {
            self.text(&format!("... {before} earlier lines\n"));
        }
        for line in lines.last(LAST, 0) {
            self.text(line);
            self.text("\n");
        }
        if !lines.is_empty() {
            self.text("\n");
        }
    }

    fn goes_on(&mut self, name: &str, running: &Running, log: &Log) {
        let pid = running.pid();
        let output = match log.keep() {
            Ok(Kept::In(path)) => format!("its output is in {}", path.display()),
            Ok(Kept::InMemory) => format!("its output is in memory: /proc/{pid}/fd/1"),
            Err(error) => format!("its output has no file ({error}): /proc/{pid}/fd/1"),
        };
        let output = printable(&output);
        self.text(&format!(
            "{name} is still running as process {pid}; {output}\nrun `pipetop {pid}` to watch it again\n"
        ));
    }

    fn print(&self) {
        let mut out = std::io::stdout();
        // Nobody who reads it: nothing to do about that.
        let _ = out.write_all(self.0.as_bytes()).and_then(|()| out.flush());
    }
}
