//! The running command as pipetop sees it: what can be asked of it, and what is heard of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd};

use super::order::{News, Order, Request, receive, send};
use crate::units::{Pid, printable};

/// What has not ended so long after it was asked to is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Where the command's output goes.
#[derive(Debug)]
pub enum Output {
    /// To where ours goes.
    Through,
    /// To where our errors go: standard output is the report's.
    Errors,
    /// To the end of this file.
    File(File),
}

/// A command that runs; dropping it ends it, unless it was released.
#[derive(Debug)]
pub struct Running {
    guard: Child,
    /// `None` where it never ran.
    orders: Option<Orders>,
    pid: Pid,
    no_hook: Option<String>,
}

/// What can be asked of a command that runs.
#[derive(Debug)]
pub struct Orders(UnixStream);

impl Orders {
    /// Sends a signal to the command, or to its process group.
    pub fn signal(&self, number: i32, group: bool) {
        self.order(&Order::Signal { number, group });
    }

    /// Asks it to end; what is left after ten seconds is killed.
    pub fn end(&self) {
        self.order(&Order::End { grace: GRACE });
    }

    fn order(&self, order: &Order) {
        // A guard that is gone has ended everything.
        let _ = send(&mut &self.0, order);
    }
}

/// Why a command does not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot run `{command}`: {}", reason(*error))]
    Command { command: String, error: i32 },
    #[error("cannot start a process: {0}")]
    Guard(#[from] io::Error),
}

impl LaunchError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        let error = match self {
            Self::Guard(_) => return "raise the limit of processes (ulimit -u)".to_owned(),
            Self::Command { error, .. } => *error,
        };
        match Errno::from_raw_os_error(error) {
            Errno::NOENT => "check its name, its path, and the interpreter in its first line",
            Errno::ACCESS => "make it executable (chmod +x), or name its interpreter: python FILE",
            Errno::NOEXEC => "name its interpreter, as in `sh FILE` or `python FILE`",
            _ => "`env` with the same words says the same",
        }
        .to_owned()
    }

    /// The exit code that `env` and shells have for it.
    pub fn code(&self) -> u8 {
        match self {
            Self::Command { error, .. } if Errno::from_raw_os_error(*error) == Errno::NOENT => 127,
            Self::Command { .. } => 126,
            Self::Guard(_) => 1,
        }
    }
}

fn reason(error: i32) -> String {
    match Errno::from_raw_os_error(error) {
        Errno::NOENT => "no such command".to_owned(),
        Errno::ACCESS => "it is not executable".to_owned(),
        Errno::NOEXEC => "it is no program, and has no line that names its interpreter".to_owned(),
        other => io::Error::from(other).to_string(),
    }
}

impl Running {
    /// Starts the command. What is heard of it afterwards goes to `news`, until that answers that nobody listens
    /// any more.
    ///
    /// # Errors
    /// Where it cannot be run.
    pub fn start(
        request: Request,
        stdin: bool,
        output: Output,
        mut news: impl FnMut(News) -> bool + Send + 'static,
    ) -> Result<Self, LaunchError> {
        let name = request.command.first().map(|word| name(word));
        let (mut ours, theirs) = UnixStream::pair()?;
        // The one descriptor beside its standard ones that the guard gets.
        fcntl_setfd(&theirs, FdFlags::empty()).map_err(io::Error::from)?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("pipetop")
            .arg("builtin-guard")
            .arg(format!("--control={}", theirs.as_raw_fd()))
            .stdin(if stdin {
                Stdio::inherit()
            } else {
                Stdio::null()
            });
        match output {
            Output::Through => {}
            Output::Errors => {
                let errors = io::stderr().as_fd().try_clone_to_owned()?;
                command.stdout(errors);
            }
            Output::File(file) => {
                command.stderr(file.try_clone()?).stdout(file);
            }
        }
        let guard = command.spawn()?;
        drop(theirs);
        let mut told = BufReader::new(ours.try_clone()?);
        let mut running = Self {
            guard,
            orders: None,
            pid: Pid(0),
            no_hook: None,
        };
        send(&mut ours, &Order::Start(request))?;
        match receive(&mut told)? {
            Some(News::Started { pid, no_hook }) => {
                running.pid = pid;
                running.no_hook = no_hook;
                running.orders = Some(Orders(ours));
            }
            Some(News::Refused { error }) => {
                let command = name.unwrap_or_default();
                return Err(LaunchError::Command { command, error });
            }
            _ => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
        std::thread::Builder::new()
            .name("news".into())
            .spawn(move || {
                // Also where the guard was killed there is no more to hear.
                while let Ok(Some(heard)) = receive(&mut told) {
                    if !news(heard) {
                        return;
                    }
                }
                news(News::Gone);
            })?;
        Ok(running)
    }

    /// The command's process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The process that everything of the command is below of.
    pub fn guard(&self) -> Pid {
        Pid(i32::try_from(self.guard.id()).unwrap_or_default())
    }

    /// Why it runs without the hook although it was to have it.
    pub fn no_hook(&self) -> Option<&str> {
        self.no_hook.as_deref()
    }

    /// What can be asked of it, for somebody else.
    ///
    /// # Errors
    /// Where too many files are open.
    pub fn orders(&self) -> io::Result<Orders> {
        let orders = self.orders.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Orders(orders.0.try_clone()?))
    }

    /// Asks it to end; what is left after ten seconds is killed.
    pub fn end(&self) {
        if let Some(orders) = &self.orders {
            orders.end();
        }
    }

    /// Tells it that the terminal is gone, as the terminal would.
    pub fn hang_up(&self) {
        if let Some(orders) = &self.orders {
            orders.signal(rustix::process::Signal::HUP.as_raw(), true);
        }
    }

    /// Lets everything go on that runs, unless it was asked to end.
    pub fn release(self) {
        if let Some(orders) = &self.orders {
            orders.order(&Order::Release);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The guard ends what there is and goes, when it hears no more of us.
        if let Some(Orders(control)) = self.orders.take() {
            let _ = control.shutdown(std::net::Shutdown::Write);
        }
        let _ = self.guard.wait();
    }
}

fn name(word: &OsStr) -> String {
    printable(&word.to_string_lossy())
}
