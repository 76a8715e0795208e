//! Code that commands share: configuration, sampler options, watching on a screen or in lines, exit codes.
//!
//! Must not depend on any single command.

mod record;
mod web;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use rustix::io::Errno;

use crate::app::{self, Setup};
use crate::config::{Config, Environment, Overrides};
use crate::error::{Explain as _, Hinted, write_error};
use crate::headless::{Observation, all_written, observe};
use crate::job::{Candidate, Target};
use crate::launch::Log;
use crate::loaders::Names;
use crate::options::{PathArgs, WatchArgs};
use crate::serve::Prepared;
use crate::source::probe::Listener;
use crate::source::process::numbers_as_here;
use crate::source::sampler::Options;
use crate::units::printable;
use crate::verdict::Kind;

use record::finish_on_signals;
pub(crate) use record::{can as can_record, finish, note_if_cut, with as recorded};
pub(crate) use web::{prepared, served};

/// What to do about a `loaders.toml` that cannot be used.
pub(crate) const NAMES_HINT: &str = "config/loaders.toml in pipetop's source describes every key";
/// Exit code if `--fail-if` matched.
pub(crate) const FAILED_IF: u8 = 3;

/// Writes the whole text. A reader that has closed the pipe is not an error.
///
/// # Errors
/// Returns an error if the text cannot be written.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<ExitCode, Hinted> {
    let mut out = std::io::stdout();
    all_written(out.write_all(text.as_ref()).and_then(|()| out.flush()))?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the user's file for the output of a launched command.
///
/// # Errors
/// Returns an error if the file cannot be written to.
pub(crate) fn named_log(path: &Path) -> Result<Log, Hinted> {
    Log::named(path).explain(
        format_args!("cannot write to {}", path.display()),
        "--log needs a file that can be created or appended to",
    )
}

/// Returns the sampler's options, without a probe and without a recording.
pub(crate) fn sampling(places: &PathArgs, config: &Config, target: Target) -> Options {
    Options {
        proc_root: places.proc_root.clone(),
        sys_root: places.sys_root.clone(),
        nvml_lib: places.nvml_lib.clone(),
        gpus: config.gpus.clone(),
        interval: config.interval,
        target,
        probe: None,
        recorder: None,
        tee: None,
        lacking: vec![],
    }
}

/// Returns how to watch without a screen.
pub(crate) fn observation(watch: &WatchArgs, steady: bool) -> Observation {
    Observation {
        once: watch.once,
        json: watch.json,
        span: watch.span,
        steady,
    }
}

/// Whether to open a screen: there is a terminal, and no report or JSON was requested.
pub(crate) fn has_screen(watch: &WatchArgs) -> bool {
    can_draw() && !watch.once && !watch.json
}

/// Whether standard output is a terminal that can draw a screen, and not only print line after line.
pub(crate) fn can_draw() -> bool {
    std::io::stdout().is_terminal() && Environment::read().can_draw()
}

pub(crate) fn no_screen(error: &anyhow::Error) -> Hinted {
    let errno = error.downcast_ref().and_then(Errno::from_io_error);
    if matches!(errno, Some(Errno::MFILE | Errno::NFILE)) {
        return Hinted::new(
            "too few open files are allowed for a screen",
            "raise the limit of open files (ulimit -n)",
        );
    }
    Hinted::new(
        format!("cannot use this terminal: {error:#}"),
        "`pipetop --once` prints a report without a screen",
    )
}

/// Watches on the screen or in lines, as requested.
pub(crate) fn show(
    options: Options,
    job: Option<Candidate>,
    config: Config,
    wanted: String,
    web: Option<Prepared>,
    watch: &WatchArgs,
) -> Result<ExitCode, Hinted> {
    let served = served(recorded(options, watch)?, web)?;
    let options = served.options;
    let recorder = options.recorder.clone();
    if has_screen(watch) {
        let outcome = app::watch(Setup {
            options,
            job,
            board: served.board,
            config,
            wanted,
            span: watch.span,
            launch: None,
            caption: None,
        });
        let outcome = outcome.map_err(|error| no_screen(&error))?;
        let recorded = watch.record.as_ref().filter(|_| recorder.is_some());
        let recorded = recorded.map(|path| format!("recording: {}", path.display()));
        drop(served.server);
        // If the terminal is gone, these lines cannot be printed.
        let _ = print_final_lines(outcome.verdict.into_iter().chain(recorded));
        finish(recorder)?;
        return Ok(exit_code(outcome.kind, &watch.fail_if));
    }
    if let Some(recorder) = &recorder {
        finish_on_signals(recorder)?;
    }
    // The start of the built-in job is no training.
    let how = observation(watch, matches!(options.target, Target::Launched(_)));
    let kind = observe(options, job, how, &mut std::io::stdout())?;
    finish(recorder)?;
    Ok(exit_code(kind, &watch.fail_if))
}

/// Prints the lines that stay on the terminal after the screen closes.
fn print_final_lines(lines: impl Iterator<Item = String>) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    for line in lines {
        writeln!(out, "{}", printable(&line))?;
    }
    out.flush()
}

/// Returns an error for a path that was given but does not exist, and for a `/proc` that belongs to another PID
/// namespace. The default paths may be missing.
pub(crate) fn exists(places: &PathArgs) -> Result<(), Hinted> {
    const NO_PROC: &str = "--proc-root must be the mount point of a procfs, such as /proc";
    let proc = places.proc_root.display();
    let listed = places.proc_root.read_dir();
    let mut listed = listed
        .explain(format_args!("cannot list {proc}"), NO_PROC)?
        .flatten()
        .map(|entry| entry.file_name())
        .peekable();
    let here = places.proc_root == Path::new("/proc");
    if here && listed.peek().is_none() {
        return Err(Hinted::new(
            "/proc is empty: no procfs is mounted there",
            "mount one with `mount -t proc proc /proc`, or name another with --proc-root",
        ));
    }
    let of_proc =
        |name: OsString| name == "self" || name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    // Any other empty folder stands for a machine without processes.
    if listed.peek().is_some() && !listed.any(of_proc) {
        return Err(Hinted::new(
            format!("{proc} is not a proc filesystem"),
            NO_PROC,
        ));
    }
    if here && !numbers_as_here(&places.proc_root) {
        return Err(Hinted::new(
            "/proc belongs to another PID namespace: PIDs differ there",
            "enter the namespace with its own /proc, as `unshare --pid --fork --mount-proc` does",
        ));
    }
    let library = places.nvml_lib.as_deref();
    // A name without a directory is searched for by the dynamic loader.
    match library.filter(|path| path.components().count() > 1 && !path.exists()) {
        Some(path) => Err(Hinted::new(
            format!("no NVML library {}", path.display()),
            "omit --nvml-lib to load the driver's libnvidia-ml.so.1",
        )),
        None => Ok(()),
    }
}

pub(crate) fn exit_code(kind: Option<Kind>, fail_if: &[Kind]) -> ExitCode {
    if kind.is_some_and(|kind| fail_if.contains(&kind)) {
        ExitCode::from(FAILED_IF)
    } else {
        ExitCode::SUCCESS
    }
}

/// Loads the user's settings: command line over file over default. The user's loader names are checked, too: if some of
/// them were ignored, figures would be missing for no visible reason.
pub(crate) fn config(watch: &WatchArgs, places: &PathArgs) -> Result<Config, Hinted> {
    let overrides = Overrides {
        interval: watch.interval,
        ascii: watch.look.ascii,
        theme: watch.look.theme,
        gpus: (!watch.gpu.is_empty()).then(|| watch.gpu.clone()),
    };
    let path = places.config.as_deref();
    let config = Config::load(path, &overrides, &Environment::read())
        .map_err(|error| Hinted::new(error.to_string(), error.hint()))?;
    match Names::trouble() {
        Some(trouble) => Err(Hinted::new(trouble, NAMES_HINT)),
        None => Ok(config),
    }
}

/// Opens the socket for reports of a launched job; `hint` is what to do if that fails.
pub(crate) fn listen(hint: &str) -> Result<Listener, Hinted> {
    Listener::bind().explain("cannot open the socket for the job's reports", hint)
}

/// Prints an error to standard error.
pub(crate) fn print_error(error: &Hinted) {
    write_error(error.lines());
}
