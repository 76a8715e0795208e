//! A run on the screen: a pane shows the command's output, and the report is printed after the screen closes.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};

use super::command::{exit_code, failed, log, name, note_unread_input, start, supervisor_lost};
use super::printed::follow;
use super::summary::Summary;
use crate::app::{self, Launch, LaunchedCommand, QuitChoice, Setup};
use crate::background::lock;
use crate::cli::RunArgs;
use crate::config::Config;
use crate::error::Hinted;
use crate::launch::{Ending, Kept, LaunchSpec, Log, OutputTarget, Running, SupervisorEvent};
use crate::output;
use crate::sample::Sample;
use crate::setup::{finish, no_screen, print, print_error};
use crate::source::sampler::Options;
use crate::units::printable;

/// Lines of the command's output that stay on the terminal.
const LAST: usize = 20;

pub(super) fn run(
    args: &RunArgs,
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
    // As on a terminal, Python should not buffer its output.
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
    let launched = LaunchedCommand::new(name.clone(), log.storage().clone());
    let outcome = app::watch(Setup {
        options,
        job: None,
        board: Arc::default(),
        config,
        wanted: format!("a Python process with PyTorch, started by `{name}`"),
        span: watch.span,
        launch: Some(Launch {
            launched,
            log,
            events,
            handle: running.handle().clone(),
            each: Box::new(move |sample: &Sample| lock(&sum_up).apply(sample)),
        }),
        caption: None,
    });
    let outcome = outcome.map_err(|error| no_screen(&error))?;
    let mut summary = lock(&summary);
    summary.close();
    let code = match outcome.launched {
        Some(left) => close(args, &name, running, left, &summary)?,
        None => ExitCode::SUCCESS,
    };
    finish(recorder)?;
    Ok(code)
}

/// Prints the final report and waits for the command to end, unless the user has left it running.
fn close(
    args: &RunArgs,
    name: &str,
    running: Running,
    (launched, log, events): (LaunchedCommand, Log, mpsc::Receiver<SupervisorEvent>),
    summary: &Summary,
) -> Result<ExitCode, Hinted> {
    let watch = &args.watch;
    let mut ended = launched.ended();
    let report = match summary.report() {
        Some(report) => output::text(&report),
        None => format!("{}\n", summary.nothing().note()),
    };
    let mut page = last_output(&launched) + &report;
    let mut stopped = launched.choice() == Some(QuitChoice::Ending);
    let leaves = launched.choice() == Some(QuitChoice::Running) && ended.is_none();
    if leaves {
        page += &still_running(name, &running, &log, summary.report().is_some());
    }
    // If the output is closed, there is nothing to do.
    let _ = print(page);
    if leaves {
        running.release();
        return Ok(exit_code(None, true, summary.kind(), watch));
    }
    if ended.is_none() {
        if !std::io::stdout().is_terminal() {
            // The terminal is gone. The command has no terminal, so pipetop passes the hang-up on.
            running.handle().hang_up();
        } else if args.stop {
            stopped = true;
            running.handle().end();
        }
        let printed = follow(log, false).map_err(|error| Hinted::no_thread(&error))?;
        ended = wait_for_end(&events);
        drop(printed);
        if ended.is_none() {
            return Err(supervisor_lost(running.pid()));
        }
    }
    running.release();
    note_unread_input(args, summary);
    if let Some(ending) = ended.filter(|ending| !stopped && ending.code() != 0) {
        print_error(&failed(name, ending));
    }
    Ok(exit_code(ended, stopped, summary.kind(), watch))
}

/// Waits for the command's end and returns how it ended.
fn wait_for_end(events: &mpsc::Receiver<SupervisorEvent>) -> Option<Ending> {
    let mut heard = events
        .iter()
        .take_while(|event| *event != SupervisorEvent::Gone);
    heard.find_map(|event| match event {
        SupervisorEvent::Ended(ending) => Some(ending),
        _ => None,
    })
}

/// Returns folders for the unnamed output file, which gets a name there if the command outlives pipetop.
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

/// Returns the last lines of the command's output, which were only on the screen.
fn last_output(launched: &LaunchedCommand) -> String {
    let lines = launched.output();
    let mut page = String::new();
    let before = lines.len().saturating_sub(LAST);
    if before > 0 {
        page = format!("... {before} earlier lines\n");
    }
    for line in lines.last(LAST, 0) {
        page.extend([line, "\n"]);
    }
    if !lines.is_empty() {
        page.push('\n');
    }
    page
}

fn still_running(name: &str, running: &Running, log: &Log, trains: bool) -> String {
    let pid = running.pid();
    let output = match log.keep() {
        Ok(Kept::In(path)) => format!("its output is in {}", path.display()),
        Ok(Kept::InMemory) => format!("its output is in memory: /proc/{pid}/fd/1"),
        Err(error) => format!("its output has no file ({error}): /proc/{pid}/fd/1"),
    };
    let output = printable(&output);
    let watch = if trains { "again" } else { "once it trains" };
    format!(
        "{name} is still running as process {pid}; {output}\nrun `pipetop {pid}` to watch it {watch}\n"
    )
}
