//! `pipetop run`: launches the user's command, watches what trains below it, and ends as the command does.

mod headless;
mod printed;
mod screen;
mod summary;

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use super::{FAILED_IF, config, exists, has_screen, options};
use crate::cli::{Places, Run, Watch};
use crate::error::Hinted;
use crate::job::Target;
use crate::launch::{Ending, Forward, LaunchError, Log, News, Output, Overrides, Request, Running};
use crate::sample::Gap;
use crate::source::probe::Listener;
use crate::source::sampler::Options;
use crate::units::{Pid, printable};
use crate::verdict::Kind;

/// Does what was asked for.
pub(super) fn run(asked: &Run, places: &Places) -> Result<ExitCode, Hinted> {
    let config = config(&asked.watch, places)?;
    exists(places)?;
    let probe = (!asked.no_hook).then(Listener::bind).transpose();
    let probe = probe.map_err(|error| {
        Hinted::new(
            format!("cannot listen to what the job reports: {error}"),
            "--no-hook does without",
        )
    })?;
    let (environment, command) = asked.words.parts();
    let request = Request {
        command,
        environment,
        probe: probe.as_ref().map(|probe| probe.address().to_owned()),
        overrides: Overrides::default(),
    };
    let options = Options {
        probe: probe.map(Arc::new),
        ..options(places, &config, Target::Any)
    };
    let options = super::record::with(options, &asked.watch)?;
    if has_screen(&asked.watch) {
        screen::run(asked, request, options, config)
    } else {
        headless::run(asked, request, options)
    }
}

/// The process that owns the command.
#[expect(
    unsafe_code,
    reason = "takes over the descriptor that it was started with"
)]
pub(super) fn guard(control: i32) -> Result<ExitCode, Hinted> {
    let open = std::path::Path::new(&format!("/proc/self/fd/{control}")).exists();
    if control <= 2 || !open {
        return Err(Hinted::new(
            "this command is for pipetop's own use",
            "`pipetop run -- COMMAND` starts it",
        ));
    }
    // SAFETY: it is open, and nobody else in this process knows of it.
    crate::launch::guard(unsafe { OwnedFd::from_raw_fd(control) });
    Ok(ExitCode::SUCCESS)
}

/// The file that the command prints to, where the user named one.
fn log(asked: &Run) -> Result<Option<Log>, Hinted> {
    let Some(path) = &asked.log else {
        return Ok(None);
    };
    let log = Log::named(path).map_err(|error| {
        Hinted::new(
            format!("cannot write to {}: {error}", path.display()),
            "--log names a file that is made, or written to at its end",
        )
    });
    log.map(Some)
}

/// Starts the command, and hands it the signals that we get; `Err` holds the exit code where it cannot be run.
fn start(
    request: Request,
    stdin: bool,
    output: Output,
    options: &mut Options,
    news: impl FnMut(News) -> bool + Send + 'static,
) -> Result<Running, ExitCode> {
    let failed = |error: LaunchError| {
        complain(&Hinted::new(error.to_string(), error.hint()));
        ExitCode::from(error.code())
    };
    let forward = Forward::take().map_err(|error| failed(error.into()))?;
    let running = Running::start(request, stdin, output, news).map_err(failed)?;
    let forwarded = forward.to(&running);
    forwarded.map_err(|error| failed(error.into()))?;
    options.target = Target::Below(running.guard());
    if let Some(why) = running.no_hook() {
        options.lacking.push(Gap {
            source: "probe".into(),
            reason: format!("the hook could not be put in place: {why}"),
            hint:
                "TMPDIR names a directory that can be written to; until then figures are estimates"
                    .into(),
        });
    }
    Ok(running)
}

pub(super) fn complain(error: &Hinted) {
    // Nobody reads it: nothing to do about that.
    let _ = writeln!(std::io::stderr(), "{}", error.lines());
}

/// What is said where the guard was killed: whatever it guarded goes on.
fn lost(pid: Pid) -> Hinted {
    Hinted::new(
        format!("pipetop has lost its command, which may go on as process {pid}"),
        format!("`kill {pid}` ends it"),
    )
}

/// The words as they are read.
fn name(command: &[std::ffi::OsString]) -> String {
    printable(&command.join(OsStr::new(" ")).to_string_lossy())
}

/// The command's exit code, where it ended by itself; that of `--fail-if` where it ended well.
fn exit_code(ended: Option<Ending>, stopped: bool, kind: Option<Kind>, watch: &Watch) -> ExitCode {
    match ended.map_or(0, Ending::code) {
        code if code != 0 && !stopped => ExitCode::from(code),
        _ if kind.is_some_and(|kind| watch.fail_if.contains(&kind)) => ExitCode::from(FAILED_IF),
        _ => ExitCode::SUCCESS,
    }
}
