//! The supervisor: the process between pipetop and the command. It owns what must not be left behind, however pipetop
//! ends: the command with everything below it, and the hook's directory.
//!
//! It adopts every orphan below the command, so no process escapes by starting in the background. It has no terminal:
//! signals that a terminal sends to pipetop do not reach the command by themselves.

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

/// Time after the loss of pipetop at which remaining processes are killed.
const GRACE: Duration = Duration::from_secs(5);
/// Time after the first kill at which remaining processes are given up: they hang in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two attempts to kill processes that keep starting new ones.
const KILL_INTERVAL: Duration = Duration::from_millis(50);
/// Signals that request a command to end.
pub(super) const ENDING: [Signal; 4] = [Signal::INT, Signal::QUIT, Signal::HUP, Signal::TERM];
/// Program in a [`LaunchSpec`] that means pipetop itself.
pub const OWN_PROGRAM: &str = "/proc/self/exe";
/// Fallback for the hook if the directory for temporary files cannot be used.
const MEMORY: &str = "/dev/shm";

/// Runs the supervisor: handles commands from `control` until pipetop or the command is gone.
pub fn supervise(control: OwnedFd) {
    let _ = rustix::thread::set_name(c"pipetop-run");
    // Each may fail because it was already done; the supervisor also works without it.
    let _ = setsid();
    let _ = set_child_subreaper(Some(getpid()));
    // The supervisor has inherited this descriptor, but the command must not.
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
    let (events, received) = mpsc::channel();
    let sender = events.clone();
    std::thread::spawn(move || {
        // A message that cannot be parsed counts as a closed connection.
        while let Ok(Some(command)) = receive(&mut commands) {
            if sender.send(SupervisorInput::Command(command)).is_err() {
                return;
            }
        }
        let _ = sender.send(SupervisorInput::Disconnected);
    });
    std::thread::spawn(move || watch_children(&events));
    let mut supervisor = Supervisor {
        control,
        command: Some(command),
        asked_to_end: false,
        signalled: None,
        ending: None,
        leftovers: Leftovers::default(),
    };
    supervisor.run(&received);
    drop(hook);
}

enum SupervisorInput {
    Command(SupervisorCommand),
    /// The connection to pipetop is closed.
    Disconnected,
    /// A child can be reaped; the thread continues when it is answered.
    Child(SyncSender<()>),
    NoChildren,
}

/// Waits for children to end, until there are none.
fn watch_children(events: &mpsc::Sender<SupervisorInput>) {
    loop {
        // NOWAIT: not reaped here, so that the PID is not reused before the command is known to have ended.
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => {
                let (reaped, go_on) = mpsc::sync_channel(1);
                if events.send(SupervisorInput::Child(reaped)).is_err() || go_on.recv().is_err() {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                let _ = events.send(SupervisorInput::NoChildren);
                return;
            }
        }
    }
}

struct Supervisor {
    control: UnixStream,
    /// The command's PID until it has been reaped.
    command: Option<Pid>,
    /// Whether it was sent a signal that requests it to end.
    asked_to_end: bool,
    /// The newest signal that it was sent.
    signalled: Option<i32>,
    /// When the remaining processes are killed.
    ending: Option<Instant>,
    /// Removed once all processes have ended.
    leftovers: Leftovers,
}

impl Supervisor {
    fn run(&mut self, received: &mpsc::Receiver<SupervisorInput>) {
        loop {
            let event = match self.ending {
                None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => received.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(SupervisorInput::Command(SupervisorCommand::Signal { number, group })) => {
                    self.signal(number, group);
                }
                Ok(SupervisorInput::Command(SupervisorCommand::End { grace })) => self.end(grace),
                // A command that was requested to end is not released any more.
                Ok(SupervisorInput::Command(SupervisorCommand::Release))
                    if self.ending.is_none() =>
                {
                    return;
                }
                Ok(SupervisorInput::Command(
                    SupervisorCommand::Start(_) | SupervisorCommand::Release,
                )) => {}
                Ok(SupervisorInput::Disconnected) => self.end(GRACE),
                Ok(SupervisorInput::Child(go_on)) => {
                    self.reap();
                    let _ = go_on.send(());
                }
                Ok(SupervisorInput::NoChildren) => {
                    self.send_event(&SupervisorEvent::Gone);
                    return;
                }
                Err(RecvTimeoutError::Timeout) => return self.kill(received),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn send_event(&mut self, event: &SupervisorEvent) {
        // Pipetop may be gone: the thread that reads its commands detects that.
        let _ = send(&mut self.control, event).and_then(|()| self.control.flush());
    }

    fn signal(&mut self, number: i32, group: bool) {
        if let (Some(command), Some(signal)) = (self.command, Signal::from_named_raw(number)) {
            let sent = if group {
                kill_process_group(command, signal)
            } else {
                kill_process(command, signal)
            };
            // The command may have ended without being reaped.
            let _ = sent;
            self.asked_to_end |= ENDING.contains(&signal);
            self.signalled = Some(number);
        }
    }

    /// Requests the command to end, and, once it has ended, the processes below it: workers must not disappear while a
    /// trainer still saves its state.
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
            self.send_event(&SupervisorEvent::Ended(ending));
            // The processes that the command leaves behind have lost the parent that would have ended them.
            let killed = matches!(ending, Ending::Signal(by) if Some(by) == self.signalled);
            if self.ending.is_some() || self.asked_to_end || killed {
                self.end(GRACE);
            }
        }
    }

    /// Kills repeatedly until nothing is left.
    fn kill(&mut self, received: &mpsc::Receiver<SupervisorInput>) {
        let deadline = Instant::now() + KILL_TIMEOUT;
        self.leftovers.remember(getpid());
        while Instant::now() < deadline {
            signal_below(getpid(), Signal::KILL);
            match received.recv_timeout(KILL_INTERVAL) {
                Ok(SupervisorInput::Child(go_on)) => {
                    self.reap();
                    let _ = go_on.send(());
                }
                Ok(SupervisorInput::NoChildren) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        self.send_event(&SupervisorEvent::Gone);
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

/// Starts the command in its own process group, with our input and outputs.
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
        // pipetop itself reports without the hook.
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
