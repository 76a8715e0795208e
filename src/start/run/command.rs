//! The launched command, from its start to its exit code: the same with a screen and without.

use std::ffi::OsStr;
use std::process::ExitCode;

use crate::cli::Run;
use crate::error::Hinted;
use crate::job::Target;
use crate::launch::{
    Ending, Forward, LaunchError, LaunchSpec, Log, OutputTarget, Running, SupervisorEvent,
};
use crate::options::Watch;
use crate::sample::Gap;
use crate::setup::{FAILED_IF, complain, named_log};
use crate::source::sampler::Options;
use crate::units::{Pid, printable};
use crate::verdict::Kind;

/// The file that the command prints to, where the user named one.
pub(super) fn log(args: &Run) -> Result<Option<Log>, Hinted> {
    args.log.as_deref().map(named_log).transpose()
}

/// Starts the command, and hands it the signals that we get; `Err` holds the exit code where it cannot be run.
pub(super) fn start(
    spec: LaunchSpec,
    stdin: bool,
    output: OutputTarget,
    options: &mut Options,
    events: impl FnMut(SupervisorEvent) -> bool + Send + 'static,
) -> Result<Running, ExitCode> {
    let failed = |error: LaunchError| {
        complain(&Hinted::new(error.to_string(), error.hint()));
        ExitCode::from(error.code())
    };
    let forward = Forward::take().map_err(|error| failed(error.into()))?;
    let running = Running::start(spec, stdin, output, events).map_err(failed)?;
    let forwarded = forward.to(&running);
    forwarded.map_err(|error| failed(error.into()))?;
    options.target = Target::Below(running.supervisor());
    if let Some(why) = running.no_hook() {
        options.lacking.push(Gap {
            source: "probe".into(),
            reason: format!("cannot install the hook: {why}"),
            hint: "set TMPDIR to a writable directory; figures are estimates until then".into(),
        });
    }
    Ok(running)
}

/// What is said where the supervisor was killed: whatever it supervised goes on.
pub(super) fn lost(pid: Pid) -> Hinted {
    Hinted::new(
        format!("pipetop lost the command, which may still run as process {pid}"),
        format!("stop it with `kill {pid}`"),
    )
}

/// The words as they are read.
pub(super) fn name(command: &[std::ffi::OsString]) -> String {
    printable(&command.join(OsStr::new(" ")).to_string_lossy())
}

/// The command's exit code, where it ended by itself; that of `--fail-if` where it ended well.
pub(super) fn exit_code(
    ended: Option<Ending>,
    stopped: bool,
    kind: Option<Kind>,
    watch: &Watch,
) -> ExitCode {
    match ended.map_or(0, Ending::code) {
        code if code != 0 && !stopped => ExitCode::from(code),
        _ if kind.is_some_and(|kind| watch.fail_if.contains(&kind)) => ExitCode::from(FAILED_IF),
        _ => ExitCode::SUCCESS,
    }
}
