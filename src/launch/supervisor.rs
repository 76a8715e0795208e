//! The supervisor: the process between pipetop and the command. It owns what must not be left behind however pipetop
//! ends: the command with everything below it, and the hook's directory.
//!
//! It is the parent of whatever loses its own below the command, so nothing gets away by starting in the
//! background. It has no terminal: what a terminal sends to pipetop does not reach the command by itself.

#![expect(
    clippy::disallowed_methods,
    reason = "the process waits for real processes, and knows no samples"
)]

use std::io::{BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group,
    set_child_subreaper, setsid, wait, waitid,
};

use super::Hook;
use super::descendants::{Leftovers, signal_below};
use super::protocol::{Ending, LaunchSpec, SupervisorCommand, SupervisorEvent, receive, send};
use crate::units;

/// What is left so long after pipetop went away is killed.
const GRACE: Duration = Duration::from_secs(5);
/// What has not ended so long after it was killed never will: it hangs in the kernel.
const HOPELESS: Duration = Duration::from_secs(5);
/// Between two tries to kill what starts new processes meanwhile.
const AGAIN: Duration = Duration::from_millis(50);
/// Signals that ask a command to end.
pub(super) const ENDING: [Signal; 4] = [Signal::INT, Signal::QUIT, Signal::HUP, Signal::TERM];
/// Names this very program in a [`LaunchSpec`].
pub const OWN_PROGRAM: &str = "/proc/self/exe";
/// Where the hook can lie where the directory for temporary files is of no use.
const MEMORY: &str = "/dev/shm";

/// Runs the supervisor: takes commands from `control` until pipetop or the command is gone.
pub fn supervise(control: OwnedFd) {
    let _ = rustix::thread::set_name(c"pipetop-run");
    // Each may be so already; and no terminal, no parent of orphans is still a supervisor.
    let _ = setsid();
    let _ = set_child_subreaper(Some(getpid()));
    // It came through the start of this program, and shall not go on into the command.
    if fcntl_setfd(&control, FdFlags::CLOEXEC).is_err() {
        return;
    }
    let control = UnixStream::from(control);
    let Ok(commands) = control.try_clone() else {
        return;
    };
    let mut commands = BufReader::new(commands);
    let Ok(Some(SupervisorCommand::Start(spec))) = receive(&mut commands) else {
        return;
    };
    let hooked = spec.probe.is_some() && !is_own(&spec);
    let (hook, no_hook) = match hooked.then(install) {
        None => (None, None),
        Some(Ok(hook)) => (Some(hook), None),
        Some(Err(why)) => (None, Some(why.to_string())),
    };
    let mut control = control;
    let command = match spawn(&spec, hook.as_ref()) {
        Ok(pid) => pid,
        Err(error) => {
            let error = error.raw_os_error().unwrap_or_default();
            let _ = send(&mut control, &SupervisorEvent::Refused { error });
            return;
        }
    };
    let pid = units::Pid(command.as_raw_nonzero().get());
    let _ = send(&mut control, &SupervisorEvent::Started { pid, no_hook });
    let (events, come) = mpsc::channel();
    let sender = events.clone();
    std::thread::spawn(move || {
        // Whatever cannot be understood is as good as nobody there.
        while let Ok(Some(command)) = receive(&mut commands) {
            if sender.send(Event::Asked(command)).is_err() {
                return;
            }
        }
        let _ = sender.send(Event::Alone);
    });
    std::thread::spawn(move || watch_children(&events));
    let mut keeping = Keeping {
        control,
        command: Some(command),
        told_to_end: false,
        signalled: None,
        ending: None,
        leftovers: Leftovers::default(),
    };
    keeping.run(&come);
    drop(hook);
}

enum Event {
    Asked(SupervisorCommand),
    /// Pipetop is gone.
    Alone,
    /// A child can be reaped; the thread goes on on request.
    Child(SyncSender<()>),
    Childless,
}

/// Waits for children that end, and for the end of all.
fn watch_children(events: &mpsc::Sender<Event>) {
    loop {
        // Left in place, so that its number is not given away before the command is known to have ended.
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => {
                let (reaped, go_on) = mpsc::sync_channel(1);
                if events.send(Event::Child(reaped)).is_err() || go_on.recv().is_err() {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                let _ = events.send(Event::Childless);
                return;
            }
        }
    }
}

struct Keeping {
    control: UnixStream,
    /// While it has not been reaped.
    command: Option<Pid>,
    /// It was sent a signal that asks it to end.
    told_to_end: bool,
    /// The newest signal that it was sent.
    signalled: Option<i32>,
    /// When what is left is killed.
    ending: Option<Instant>,
    /// Cleared up once all have ended.
    leftovers: Leftovers,
}

impl Keeping {
    fn run(&mut self, come: &mpsc::Receiver<Event>) {
        loop {
            let event = match self.ending {
                None => come.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => come.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(Event::Asked(SupervisorCommand::Signal { number, group })) => {
                    self.signal(number, group);
                }
                Ok(Event::Asked(SupervisorCommand::End { grace })) => self.end(grace),
                // Who was asked to end is not let go before that.
                Ok(Event::Asked(SupervisorCommand::Release)) if self.ending.is_none() => return,
                Ok(Event::Asked(SupervisorCommand::Start(_) | SupervisorCommand::Release)) => {}
                Ok(Event::Alone) => self.end(GRACE),
                Ok(Event::Child(go_on)) => {
                    self.reap();
                    let _ = go_on.send(());
                }
                Ok(Event::Childless) => {
                    self.tell(&SupervisorEvent::Gone);
                    return;
                }
                Err(RecvTimeoutError::Timeout) => return self.kill(come),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn tell(&mut self, event: &SupervisorEvent) {
        // Pipetop may be gone: the thread that reads its commands tells.
        let _ = send(&mut self.control, event).and_then(|()| self.control.flush());
    }

    fn signal(&mut self, number: i32, group: bool) {
        if let (Some(command), Some(signal)) = (self.command, Signal::from_named_raw(number)) {
            let sent = if group {
                kill_process_group(command, signal)
            } else {
                kill_process(command, signal)
            };
            // It may have ended without being reaped.
            let _ = sent;
            self.told_to_end |= ENDING.contains(&signal);
            self.signalled = Some(number);
        }
    }

    /// Asks the command to end, and what is below it once it has: workers must not vanish under a trainer that
    /// still saves its state.
    fn end(&mut self, grace: Duration) {
        let at = Instant::now() + grace;
        self.ending = Some(self.ending.map_or(at, |before| before.min(at)));
        self.leftovers.remember(getpid());
        match self.command {
            Some(command) => {
                let _ = kill_process(command, Signal::TERM);
            }
            None => signal_below(getpid(), Signal::TERM),
        }
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if Some(pid) != self.command {
                continue;
            }
            self.command = None;
            let ending = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Ending::Code(code),
                (None, signal) => Ending::Signal(signal.unwrap_or_default()),
            };
            self.tell(&SupervisorEvent::Ended(ending));
            // What it leaves behind has lost the one who would have ended it.
            let killed = matches!(ending, Ending::Signal(by) if Some(by) == self.signalled);
            if self.ending.is_some() || self.told_to_end || killed {
                self.end(GRACE);
            }
        }
    }

    /// Kills until nothing is left.
    fn kill(&mut self, come: &mpsc::Receiver<Event>) {
        let hopeless = Instant::now() + HOPELESS;
        self.leftovers.remember(getpid());
        while Instant::now() < hopeless {
            signal_below(getpid(), Signal::KILL);
            match come.recv_timeout(AGAIN) {
                Ok(Event::Child(go_on)) => {
                    self.reap();
                    let _ = go_on.send(());
                }
                Ok(Event::Childless) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        self.tell(&SupervisorEvent::Gone);
    }
}

fn install() -> std::io::Result<Hook> {
    Hook::install().or_else(|error| Hook::install_in(Path::new(MEMORY)).map_err(|_| error))
}

fn is_own(spec: &LaunchSpec) -> bool {
    spec.command
        .first()
        .is_some_and(|program| program == OWN_PROGRAM)
}

/// Starts the command in a process group of its own, with our input and outputs.
fn spawn(spec: &LaunchSpec, hook: Option<&Hook>) -> std::io::Result<Pid> {
    let missing = || std::io::Error::from(rustix::io::Errno::NOENT);
    let (program, arguments) = spec.command.split_first().ok_or_else(missing)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(spec.environment.iter().cloned())
        .env_remove(crate::probe::VARIABLE)
        .stdin(Stdio::inherit())
        .process_group(0);
    if is_own(spec) {
        // It reports by itself.
        command.arg0("pipetop");
        command.envs(
            spec.probe
                .iter()
                .map(|probe| (crate::probe::VARIABLE, probe)),
        );
    }
    if let (Some(hook), Some(probe)) = (hook, &spec.probe) {
        command.envs(hook.environment(probe, &spec.overrides));
    }
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(missing)
}
