//! A job started for the lab: the user's command or the built-in job, with its output and how it ended.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use procfs::process::Process;

use super::output::CommandOutput;
use crate::error::Hinted;
use crate::launch::{Ending, LaunchError, LaunchSpec, OutputTarget, Running, SupervisorEvent};
use crate::units::Pid;

/// How long to wait for the last processes of a job that has ended.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait for the message about the end of a job if its process has not exited: it may be about to.
const MESSAGE_TIMEOUT: Duration = Duration::from_millis(50);
/// How long to wait for this message if the process has exited: on a busy machine the message can be late.
const LATE_MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("{error}")]
    Refused {
        error: Hinted,
        /// The last lines of the command's output, if they may explain the error.
        said: Vec<String>,
    },
    #[error("killed by signal {0}")]
    Interrupted(i32),
}

impl From<Hinted> for TrialError {
    fn from(error: Hinted) -> Self {
        Self::Refused {
            error,
            said: vec![],
        }
    }
}

/// A running job. Dropping it ends the job and all processes below it: SIGTERM, five seconds, SIGKILL.
#[derive(Debug)]
pub struct LaunchedJob {
    pub(super) running: Running,
    events: mpsc::Receiver<SupervisorEvent>,
    output: CommandOutput,
    ended: Option<Ending>,
}

impl LaunchedJob {
    /// Starts a job. Its output is appended to `log`, if given.
    ///
    /// # Errors
    /// Returns an error if the job cannot be started.
    pub fn start(spec: LaunchSpec, log: Option<&Path>) -> Result<Self, TrialError> {
        let output = CommandOutput::new(log)?;
        let (send, events) = mpsc::channel();
        let target = OutputTarget::File(output.writer()?);
        let send = move |event| send.send(event).is_ok();
        Ok(Self {
            running: Running::start(spec, false, target, send)?,
            events,
            output,
            ended: None,
        })
    }

    pub fn pid(&self) -> Pid {
        self.running.pid()
    }

    /// Waits for events, at most this long; returns `true` if no process of the job is left.
    pub fn wait(&mut self, longest: Duration) -> bool {
        let gone = match self.events.recv_timeout(longest) {
            Ok(SupervisorEvent::Ended(ending)) => {
                self.ended = Some(ending);
                false
            }
            Ok(SupervisorEvent::Gone) | Err(RecvTimeoutError::Disconnected) => true,
            Ok(_) | Err(RecvTimeoutError::Timeout) => false,
        };
        self.output.read();
        gone
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.ended.is_some() || self.wait(Duration::ZERO) || self.ended.is_some()
    }

    /// Whether its process has exited, even if the message about its end has not arrived yet.
    fn has_exited(&self) -> bool {
        let stat = Process::new(self.pid().0).and_then(|process| process.stat());
        stat.map_or(true, |stat| matches!(stat.state, 'Z' | 'X'))
    }

    /// Returns how the job ended if its exit code shows that it failed.
    pub(super) fn failed(&self) -> Option<Ending> {
        self.ended.filter(|ended| ended.code() != 0)
    }

    pub(super) fn last_lines(&mut self) -> Vec<String> {
        self.output.last_lines()
    }

    /// Returns why the built-in job failed. `None` if it is running or has succeeded.
    pub fn failure(&mut self) -> Option<Hinted> {
        let longest = if self.has_exited() {
            LATE_MESSAGE_TIMEOUT
        } else {
            MESSAGE_TIMEOUT
        };
        let gone = self.ended.is_none() && self.wait(longest);
        let ended = self.failed()?;
        // The workers end with the trainer; their output may still be on its way.
        let _ = gone || self.wait(END_TIMEOUT);
        let words = self.last_lines();
        let status = ExitStatus::from_raw(match ended {
            Ending::Code(code) => code << 8,
            Ending::Signal(number) => number,
        });
        Some(refusal(&words).unwrap_or_else(|| {
            let output = words.last().map(|words| format!("its output: {words}"));
            let memory = || "check `dmesg` for an out-of-memory kill".to_owned();
            Hinted::new(
                format!("the trainer ended unexpectedly: {status}"),
                output.unwrap_or_else(memory),
            )
        }))
    }

    /// Returns why the built-in job did not complete its task.
    pub fn ended_early(&mut self) -> Hinted {
        self.failure().unwrap_or_else(|| {
            Hinted::new(
                "the built-in job made no step",
                "run `pipetop demo` with the same options to see what it does",
            )
        })
    }
}

/// Returns the first error that a process of the job printed: later ones follow from it.
fn refusal(words: &[String]) -> Option<Hinted> {
    words.windows(2).find_map(|pair| {
        let message = pair.first()?.strip_prefix("error: ")?;
        let hint = pair.get(1)?.strip_prefix("hint: ")?;
        Some(Hinted::new(message, hint))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_complete_error_is_reported() {
        let said = |lines: &str| {
            let lines: Vec<String> = lines.split('|').map(str::to_owned).collect();
            refusal(&lines).map(|error| (error.message, error.hint))
        };
        let of = |message: &str, hint: &str| Some((message.to_owned(), hint.to_owned()));
        assert_eq!(
            said("hint: cut|a b|error: no file|hint: make it|error: worker 1|hint: x"),
            of("no file", "make it")
        );
        assert_eq!(said("error: no hint|error: a|hint: b"), of("a", "b"));
        assert_eq!(said("thread 'main' panicked|error: a"), None);
    }
}
