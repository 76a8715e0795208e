//! The receiving end of the probe protocol: reports of jobs that were launched with our address.
//!
//! The socket has an abstract name, so that no file is left behind, even after a crash; only processes of the same
//! network namespace reach it. A separate thread drains it. The kernel identifies the sender (`SCM_CREDENTIALS`), not
//! the text of the message: a job in a container counts under the PID that pipetop sees. Messages of another user
//! (unless that user or ours is root) and anything that is not a probe message are refused. Does not depend on the
//! watched job: the caller names the process.

mod report;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSliceMut};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials,
    bind, recvmsg, setsockopt, socket, sockopt,
};

use crate::background::{Joined, lock};
use crate::probe::{self, Message};
use crate::source::clock::Clock;
use crate::units::Pid;
use report::Accounts;
pub use report::ProbeReport;

/// Size of the buffer in bytes. A longer datagram would be cut in the middle of a number, so it is refused.
const LARGEST: usize = 64 * 1024;

/// Receives reports. Dropping it ends the thread and closes the socket.
#[derive(Debug)]
pub struct Listener {
    address: String,
    socket: Arc<UnixDatagram>,
    accounts: Arc<Mutex<Accounts>>,
    stop: Arc<AtomicBool>,
    _thread: Joined,
}

impl Listener {
    /// Starts to listen, under an unused name.
    ///
    /// # Errors
    /// Returns an error if no socket or no thread can be created.
    pub fn bind() -> io::Result<Self> {
        let random = RandomState::new().hash_one(probe::now());
        let name = format!("pipetop-{}-{random:016x}", std::process::id());
        let socket: OwnedFd = socket(
            AddressFamily::Unix,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        // Set before the socket has a name, so that no datagram arrives without its sender.
        setsockopt(&socket, sockopt::PassCred, &true)?;
        bind(
            socket.as_raw_fd(),
            &UnixAddr::new_abstract(name.as_bytes())?,
        )?;
        let socket = Arc::new(UnixDatagram::from(socket));
        let accounts = Arc::new(Mutex::new(Accounts::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let shared = (
            Arc::clone(&socket),
            Arc::clone(&accounts),
            Arc::clone(&stop),
        );
        let thread = Joined::start("probe", move || listen(&shared.0, &shared.1, &shared.2))?;
        Ok(Self {
            address: format!("@{name}"),
            socket,
            accounts,
            stop,
            _thread: thread,
        })
    }

    /// Returns the value for the job's [`probe::VARIABLE`].
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the reports of this process, and clears its list of steps. `None` if it has reported nothing.
    pub fn take(&self, pid: Pid) -> Option<ProbeReport> {
        lock(&self.accounts).take(pid)
    }

    /// Returns the processes that have reported a step or a notice and have not been dropped.
    pub fn writers(&self) -> Vec<Pid> {
        lock(&self.accounts).writers()
    }

    /// Returns the number of datagrams refused so far.
    pub fn refused(&self) -> u64 {
        lock(&self.accounts).refused
    }

    /// Returns why nothing more is received. `None` while it listens.
    pub fn broken(&self) -> Option<Errno> {
        lock(&self.accounts).broken
    }

    /// Simulates a failure to receive.
    #[cfg(test)]
    pub fn simulate_failure(&self, error: Errno) {
        lock(&self.accounts).broken = Some(error);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes a blocked receive; if this fails, the thread is not blocked.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Receives until `stop` is set.
fn listen(socket: &UnixDatagram, accounts: &Mutex<Accounts>, stop: &AtomicBool) {
    let mut buffer = vec![0; LARGEST];
    let mut control = nix::cmsg_space!(UnixCredentials);
    let own = rustix::process::getuid().as_raw();
    let trusted = |uid: u32| uid == own || uid == 0 || own == 0;
    loop {
        let received = receive(socket, &mut buffer, &mut control);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let message = match received {
            Ok(received) => received
                .filter(|(_, sender)| trusted(sender.uid()))
                .and_then(|(length, sender)| {
                    Some((Pid(sender.pid()), Message::parse(&buffer[..length])?))
                }),
            Err(Errno::EINTR) => continue,
            Err(error) => {
                lock(accounts).broken = Some(error);
                return;
            }
        };
        let mut accounts = lock(accounts);
        match message {
            Some((pid, message)) => accounts.add(pid, message, probe::now()),
            None => accounts.refused += 1,
        }
    }
}

/// Receives a datagram and returns its length and its sender. `None` if it was cut, comes from outside our PID
/// namespace, or carries more than its sender: anybody may send anything, so this is not an error.
fn receive(
    socket: &UnixDatagram,
    buffer: &mut [u8],
    control: &mut [u8],
) -> nix::Result<Option<(usize, UnixCredentials)>> {
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(control), flags)?;
    // There is only room for the sender: the kernel drops attached descriptors and sets MSG_CTRUNC.
    if received
        .flags
        .intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC)
    {
        return Ok(None);
    }
    let sender = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmCredentials(sender) => Some(sender),
        _ => None,
    });
    let sender = sender.filter(|sender| sender.pid() > 0);
    Ok(sender.map(|sender| (received.bytes, sender)))
}

/// Converts times of the protocol's clock to times of the sources' clock.
#[derive(Debug, Clone, Copy)]
pub struct ProbeClock {
    /// Start of the sources' clock, on the protocol's clock.
    start: Duration,
}

impl ProbeClock {
    pub fn new(clock: Clock) -> Self {
        Self {
            start: Duration::from_nanos(probe::now()).saturating_sub(clock.since_start()),
        }
    }

    /// Returns the time since the sources' clock started; 0 for earlier times.
    pub fn at(self, time: Duration) -> Duration {
        time.saturating_sub(self.start)
    }
}

#[cfg(test)]
mod tests;
