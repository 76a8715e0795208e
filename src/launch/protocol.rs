//! The messages between pipetop and the supervisor: one line of JSON each.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::hook::LoaderOverrides;
use crate::units::Pid;

/// The command to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// The program and its arguments; the program is looked up in `PATH`.
    pub command: Vec<OsString>,
    /// Variables that are added to our environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where the command's Pythons report their steps, in the form of [`crate::probe::VARIABLE`]. `None` = without the
    /// hook.
    pub probe: Option<String>,
    /// Changes that the hook makes in these Pythons.
    pub overrides: LoaderOverrides,
}

/// Requests to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SupervisorCommand {
    /// The first message, sent once.
    Start(LaunchSpec),
    /// Sends a signal to the command, or to its whole process group, as a terminal would.
    Signal { number: i32, group: bool },
    /// Sends SIGTERM; what is left after `grace` is killed.
    End { grace: Duration },
    /// Leaves all processes running; the supervisor exits.
    Release,
}

/// Events from the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SupervisorEvent {
    /// The command was started.
    Started {
        pid: Pid,
        /// Why it runs without the requested hook.
        no_hook: Option<String>,
    },
    /// The command cannot be run: the system's error number.
    Refused { error: i32 },
    /// The command itself has ended.
    Ended(Ending),
    /// No process of the command is left.
    Gone,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    Code(i32),
    Signal(i32),
}

impl Ending {
    /// Returns the exit code as in a shell: the code, or 128 plus the signal's number.
    pub fn code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(number) => 128 + number,
        };
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(0) => f.write_str("ended"),
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(number) => write!(f, "was killed by signal {number}"),
        }
    }
}

/// Sends a message.
pub(super) fn send(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Receives a message. `None` if the other side is gone.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    if from.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn any_command_line_is_transmitted_unchanged() {
        let spec = LaunchSpec {
            command: vec!["sh".into(), OsString::from_vec(b"a\n\xff\"".to_vec())],
            environment: vec![("A".into(), "".into())],
            probe: Some("@x".into()),
            overrides: LoaderOverrides {
                workers: Some(4),
                ..LoaderOverrides::default()
            },
        };
        let mut line = vec![];
        send(&mut line, &SupervisorCommand::Start(spec.clone())).unwrap();
        send(&mut line, &SupervisorCommand::Release).unwrap();
        let mut from = &line[..];
        assert_eq!(
            receive(&mut from).unwrap(),
            Some(SupervisorCommand::Start(spec))
        );
        assert_eq!(
            receive(&mut from).unwrap(),
            Some(SupervisorCommand::Release)
        );
        assert_eq!(receive::<SupervisorCommand>(&mut from).unwrap(), None);
    }

    #[test]
    fn exit_codes_follow_the_shell() {
        assert_eq!(Ending::Code(3).code(), 3);
        assert_eq!(Ending::Signal(9).code(), 137);
        assert_eq!(Ending::Signal(15).to_string(), "was killed by signal 15");
        assert_eq!(Ending::Code(0).to_string(), "ended");
    }
}
