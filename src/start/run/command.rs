//! The launched command from its start to its exit code, with a screen or without.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use rustix::io::ioctl_fionread;

use super::summary::Summary;
use crate::cli::RunArgs;
use crate::error::{Hinted, write_error};
use crate::job::Target;
use crate::launch::{
    Ending, Forward, LaunchError, LaunchSpec, Log, OutputTarget, Running, SupervisorEvent,
};
use crate::options::WatchArgs;
use crate::sample::Gap;
use crate::setup::{self, named_log, print_error};
use crate::source::sampler::Options;
use crate::units::{Pid, printable};
use crate::verdict::Kind;

/// Opens the file for the command's output, if the user named one.
pub(super) fn log(args: &RunArgs) -> Result<Option<Log>, Hinted> {
    args.log.as_deref().map(named_log).transpose()
}

/// Starts the command and forwards signals to it; `Err` holds the exit code if it cannot be run.
pub(super) fn start(
    spec: LaunchSpec,
    stdin: bool,
    output: OutputTarget,
    options: &mut Options,
    events: impl FnMut(SupervisorEvent) -> bool + Send + 'static,
) -> Result<Running, ExitCode> {
    let failed = |error: LaunchError| {
        print_error(&Hinted::new(error.to_string(), error.hint()));
        ExitCode::from(error.code())
    };
    let forward = Forward::take().map_err(|error| failed(error.into()))?;
    let running = Running::start(spec, stdin, output, events).map_err(failed)?;
    let forwarded = forward.to(&running);
    forwarded.map_err(|error| failed(error.into()))?;
    options.target = Target::Below(running.supervisor());
    if let Some(why) = running.no_hook() {
        options.lacking.push(Gap::new(
            "probe",
            format!("cannot install the hook: {why}"),
            "set TMPDIR to a writable directory; figures are estimates until then",
        ));
    }
    Ok(running)
}

/// Returns the error if the supervisor was killed: the command may still run.
pub(super) fn supervisor_lost(pid: Pid) -> Hinted {
    Hinted::new(
        format!("pipetop lost the command, which may still run as process {pid}"),
        format!("stop it with `kill {pid}`"),
    )
}

/// Returns the command line as printable text, quoted as a shell reads it.
pub(super) fn name(command: &[OsString]) -> String {
    let words = command.iter().map(|word| {
        let word = printable(&word.to_string_lossy());
        let plain = |letter: char| letter.is_alphanumeric() || "%+,-./:=@_".contains(letter);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the error of a command that failed.
pub(super) fn failed(name: &str, ended: impl std::fmt::Display) -> Hinted {
    Hinted::new(
        format!("{name} {ended}"),
        "see its own output for the reason",
    )
}

/// Says that the command did not get what is on standard input, if that may be why it did not train. A command that
/// trained may be one of a loop in a shell, which reads the rest itself.
pub(super) fn note_unread_input(args: &RunArgs, summary: &Summary) {
    let input = std::io::stdin();
    let unread = || ioctl_fionread(&input).is_ok_and(|bytes| bytes > 0);
    if !args.stdin && summary.report().is_none() && !input.is_terminal() && unread() {
        let note = Hinted::new(
            "the command did not get what is on standard input",
            "pass it on with `pipetop run --stdin`",
        );
        write_error(note.note());
    }
}

/// Returns the command's exit code if it failed by itself, otherwise that of `--fail-if` if it matches.
pub(super) fn exit_code(
    ended: Option<Ending>,
    stopped: bool,
    kind: Option<Kind>,
    watch: &WatchArgs,
) -> ExitCode {
    match ended.map_or(0, Ending::code) {
        code if code != 0 && !stopped => ExitCode::from(code),
        _ => setup::exit_code(kind, &watch.fail_if),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_as_it_is_typed() {
        for (words, typed) in [
            (
                &["python", "train.py", "--lr=0.1"][..],
                "python train.py --lr=0.1",
            ),
            (&["sh", "-c", "exit 7"], "sh -c 'exit 7'"),
            (&["echo", "it's", "", "$A"], r"echo 'it'\''s' '' '$A'"),
            (&["echo", "\u{1b}[2J"], "echo '\u{fffd}[2J'"),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(name(&words), typed);
        }
    }
}
