//! The listening end of the probe protocol: what jobs that were launched with our address tell of their steps.
//!
//! The socket has an abstract name, so that no file is left behind however pipetop ends; only processes of
//! the same network namespace reach it. A thread of its own drains it. Whose steps they are is what the
//! kernel says of the sender (`SCM_CREDENTIALS`), not what the text claims: a job in a container counts
//! under the number that pipetop knows it by. What another user sends is passed over (from root, and by root,
//! everything is taken), and so is what is no probe message. Knows nothing of the watched job: who asks
//! names the process.

mod report;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSliceMut};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, UnixCredentials,
    bind, recvmsg, setsockopt, socket, sockopt,
};

use crate::probe::{self, Message};
use crate::source::clock::Clock;
use crate::units::Pid;
use report::Accounts;
pub use report::ProbeReport;

/// Room for a datagram. A longer one would be cut in the middle of a number: it is refused.
const LARGEST: usize = 64 * 1024;

/// Hears what is reported; dropping it ends the thread and closes the socket.
#[derive(Debug)]
pub struct Listener {
    address: String,
    socket: Arc<UnixDatagram>,
    accounts: Arc<Mutex<Accounts>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Begins to listen, under a name that nobody has.
    ///
    /// # Errors
    /// Where no socket or no thread can be made.
    pub fn bind() -> io::Result<Self> {
        let random = RandomState::new().hash_one(probe::now());
        let name = format!("pipetop-{}-{random:016x}", std::process::id());
        let socket: OwnedFd = socket(
            AddressFamily::Unix,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        // Before there is a name to send to, so that no datagram comes without its sender.
        setsockopt(&socket, sockopt::PassCred, &true)?;
        bind(
            socket.as_raw_fd(),
            &UnixAddr::new_abstract(name.as_bytes())?,
        )?;
        let socket = Arc::new(UnixDatagram::from(socket));
        let accounts = Arc::new(Mutex::new(Accounts::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let listening = Listening {
            socket: Arc::clone(&socket),
            accounts: Arc::clone(&accounts),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new()
            .name("probe".into())
            .spawn(move || listening.run())?;
        Ok(Self {
            address: format!("@{name}"),
            socket,
            accounts,
            stop,
            thread: Some(thread),
        })
    }

    /// What a job finds in [`probe::VARIABLE`].
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What this process has reported; its list of steps is handed over and begins anew. `None` where it has
    /// reported nothing.
    pub fn take(&self, pid: Pid) -> Option<ProbeReport> {
        lock(&self.accounts).take(pid)
    }

    /// Who has reported a step or a notice, and not yet been forgotten.
    pub fn writers(&self) -> Vec<Pid> {
        lock(&self.accounts).writers()
    }

    /// Datagrams that were passed over so far.
    pub fn refused(&self) -> u64 {
        lock(&self.accounts).refused()
    }

    /// Why nothing more is received: what was reported is all that will be. `None` while it listens.
    pub fn broken(&self) -> Option<Errno> {
        lock(&self.accounts).broken
    }

    /// As if receiving had failed.
    #[cfg(test)]
    pub fn break_off(&self, error: Errno) {
        lock(&self.accounts).broken = Some(error);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes a receive that waits; where it fails the thread is not waiting.
        let _ = self.socket.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// Accounts stay usable where a thread panicked while it held them.
fn lock(accounts: &Mutex<Accounts>) -> MutexGuard<'_, Accounts> {
    accounts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's part.
struct Listening {
    socket: Arc<UnixDatagram>,
    accounts: Arc<Mutex<Accounts>>,
    stop: Arc<AtomicBool>,
}

impl Listening {
    fn run(self) {
        let mut buffer = vec![0; LARGEST];
        let mut control = nix::cmsg_space!(UnixCredentials);
        let own = rustix::process::getuid().as_raw();
        let trusted = |uid: u32| uid == own || uid == 0 || own == 0;
        loop {
            let received = receive(&self.socket, &mut buffer, &mut control);
            if self.stop.load(Ordering::Relaxed) {
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
                    lock(&self.accounts).broken = Some(error);
                    return;
                }
            };
            let mut accounts = lock(&self.accounts);
            match message {
                Some((pid, message)) => accounts.add(pid, message, probe::now()),
                None => accounts.refuse(),
            }
        }
    }
}

/// The next datagram's length and who sent it. `None` where it was cut, comes from outside of our process
/// namespace, or carries more than its sender: anybody may send anything, so this is no error.
fn receive(
    socket: &UnixDatagram,
    buffer: &mut [u8],
    control: &mut [u8],
) -> nix::Result<Option<(usize, UnixCredentials)>> {
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(control), flags)?;
    // There is room for the sender alone: the kernel keeps descriptors that somebody attaches, and sets MSG_CTRUNC.
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

/// Places the protocol's times in the sources' time.
#[derive(Debug, Clone, Copy)]
pub struct Timeline {
    /// When the sources' clock began, in the protocol's nanoseconds.
    start: u64,
}

impl Timeline {
    pub fn new(clock: Clock) -> Self {
        let since = u64::try_from(clock.since_start().as_nanos()).unwrap_or(u64::MAX);
        Self {
            start: probe::now().saturating_sub(since),
        }
    }

    /// Since the sources' clock began; 0 where it was before that.
    pub fn at(self, time: u64) -> Duration {
        Duration::from_nanos(time.saturating_sub(self.start))
    }
}

#[cfg(test)]
mod tests;
