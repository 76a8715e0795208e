//! The running command as pipetop sees it: the requests that can be sent to it, and its events.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process;

use super::limits::restore_open_files;
use super::protocol::{LaunchSpec, SupervisorCommand, SupervisorEvent, receive, send};
use crate::background::spawn;
use crate::units::{Pid, printable};

/// Time after a request to end at which remaining processes are killed.
const GRACE: Duration = Duration::from_secs(10);

/// The target of the command's output.
#[derive(Debug)]
pub enum OutputTarget {
    /// Our own outputs.
    Inherit,
    /// Our standard error: standard output is used for the report.
    Errors,
    /// Appended to this file.
    File(File),
}

/// A running command. Dropping it ends the command, unless it was released.
#[derive(Debug)]
pub struct Running {
    supervisor: Child,
    handle: CommandHandle,
    pid: Pid,
    no_hook: Option<String>,
}

/// Sends requests to a running command.
#[derive(Debug, Clone)]
pub struct CommandHandle(Arc<UnixStream>);

impl CommandHandle {
    /// Sends a signal to the command, or to its process group.
    pub fn signal(&self, number: i32, group: bool) {
        self.send(&SupervisorCommand::Signal { number, group });
    }

    /// Requests it to end; what is left after ten seconds is killed.
    pub fn end(&self) {
        self.send(&SupervisorCommand::End { grace: GRACE });
    }

    /// Kills what has not ended.
    pub fn kill(&self) {
        self.send(&SupervisorCommand::End {
            grace: Duration::ZERO,
        });
    }

    /// Sends the signal of a lost terminal, as the terminal would.
    pub fn hang_up(&self) {
        self.signal(process::Signal::HUP.as_raw(), true);
    }

    fn send(&self, command: &SupervisorCommand) {
        // If the supervisor is gone, it has ended everything.
        let _ = send(&mut &*self.0, command);
    }
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot run `{command}`: {}", reason(*error))]
    Command { command: String, error: i32 },
    #[error("cannot start a process: {0}")]
    Supervisor(#[from] io::Error),
}

impl LaunchError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        let (command, error) = match self {
            Self::Supervisor(error) => return short_of(error).to_owned(),
            Self::Command { command, error } => (command, *error),
        };
        let file = std::path::Path::new(command);
        if file.extension().is_some_and(|kind| kind == "py") && file.is_file() {
            return format!("a script needs its interpreter: `pipetop run python {command}`");
        }
        match Errno::from_raw_os_error(error) {
            Errno::NOENT if command.starts_with('-') => {
                "this is not an option of pipetop; `pipetop run --help` lists the options"
            }
            Errno::NOENT => "check its name, its path and the interpreter in its first line",
            Errno::ACCESS => "make it executable (chmod +x), or run its interpreter: python FILE",
            Errno::NOEXEC => "run its interpreter, as in `sh FILE` or `python FILE`",
            _ => "check it without pipetop: `env COMMAND`",
        }
        .to_owned()
    }

    /// Returns the exit code that `env` and shells use for this error.
    pub fn code(&self) -> u8 {
        match self {
            Self::Command { error, .. } if Errno::from_raw_os_error(*error) == Errno::NOENT => 127,
            Self::Command { .. } => 126,
            Self::Supervisor(_) => 1,
        }
    }
}

/// Returns which limit probably prevents a process from being started, and how to raise it.
fn short_of(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN) => "raise the process limit (ulimit -u)",
        Some(Errno::MFILE | Errno::NFILE) => "raise the limit of open files (ulimit -n)",
        Some(Errno::NOMEM) => "free memory, or raise its limit (ulimit -v)",
        _ => "`ulimit -a` lists the limits: one may be too low",
    }
}

fn reason(error: i32) -> String {
    match Errno::from_raw_os_error(error) {
        Errno::NOENT => "command not found".to_owned(),
        Errno::ACCESS => "not executable".to_owned(),
        Errno::NOEXEC => "not a program, and no interpreter in its first line".to_owned(),
        other => io::Error::from(other).to_string(),
    }
}

impl Running {
    /// Starts the command. Its events are passed to `events` until that returns `false`.
    ///
    /// # Errors
    /// Returns an error if the command cannot be run.
    pub fn start(
        spec: LaunchSpec,
        stdin: bool,
        output: OutputTarget,
        mut events: impl FnMut(SupervisorEvent) -> bool + Send + 'static,
    ) -> Result<Self, LaunchError> {
        let name = spec.command.first().map(|word| name(word));
        let (ours, theirs) = UnixStream::pair()?;
        // The only descriptor that the supervisor inherits apart from its standard ones.
        fcntl_setfd(&theirs, FdFlags::empty()).map_err(io::Error::from)?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("pipetop")
            .arg("builtin-supervisor")
            .arg(format!("--control={}", theirs.as_raw_fd()))
            .stdin(if stdin {
                Stdio::inherit()
            } else {
                Stdio::null()
            });
        match output {
            OutputTarget::Inherit => {}
            OutputTarget::Errors => {
                let errors = io::stderr().as_fd().try_clone_to_owned()?;
                command.stdout(errors);
            }
            OutputTarget::File(file) => {
                command.stderr(file.try_clone()?).stdout(file);
            }
        }
        let supervisor = command.spawn()?;
        drop(theirs);
        // Done before the command starts, because it inherits the limit.
        if let Some(pid) = i32::try_from(supervisor.id())
            .ok()
            .and_then(process::Pid::from_raw)
        {
            restore_open_files(pid);
        }
        let mut reader = BufReader::new(ours.try_clone()?);
        let mut running = Self {
            supervisor,
            handle: CommandHandle(Arc::new(ours)),
            pid: Pid(0),
            no_hook: None,
        };
        send(&mut &*running.handle.0, &SupervisorCommand::Start(spec))?;
        match receive(&mut reader)? {
            Some(SupervisorEvent::Started { pid, no_hook }) => {
                running.pid = pid;
                running.no_hook = no_hook;
            }
            Some(SupervisorEvent::Refused { error }) => {
                let command = name.unwrap_or_default();
                return Err(LaunchError::Command { command, error });
            }
            _ => return Err(io::Error::other("it exited at once").into()),
        }
        spawn("events", move || {
            // The loop also ends if the supervisor was killed.
            while let Ok(Some(heard)) = receive(&mut reader) {
                if !events(heard) {
                    return;
                }
            }
            events(SupervisorEvent::Gone);
        })?;
        Ok(running)
    }

    /// Returns the PID of the command.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the PID of the supervisor, which is above all processes of the command.
    pub fn supervisor(&self) -> Pid {
        Pid(i32::try_from(self.supervisor.id()).unwrap_or_default())
    }

    /// Returns why the command runs without the requested hook.
    pub fn no_hook(&self) -> Option<&str> {
        self.no_hook.as_deref()
    }

    /// Returns the handle for requests.
    pub fn handle(&self) -> &CommandHandle {
        &self.handle
    }

    /// Leaves all processes running, unless they were requested to end.
    pub fn release(self) {
        self.handle.send(&SupervisorCommand::Release);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // When the connection is closed, the supervisor ends all processes and itself.
        let _ = self.handle.0.shutdown(std::net::Shutdown::Write);
        let _ = self.supervisor.wait();
    }
}

fn name(word: &OsStr) -> String {
    printable(&word.to_string_lossy())
}
