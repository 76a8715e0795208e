//! Threads that end with their owner, and locks that stay usable after a panic.
//!
//! Does not know what the threads do.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use tokio::runtime::Runtime;

/// A thread that takes messages. Dropping this closes its channel, which tells it to end, and waits for it.
#[derive(Debug)]
pub(crate) struct OwnedThread<T = ()> {
    messages: Sender<T>,
    _thread: Joined,
}

/// A thread that is waited for when this is dropped. Fields are dropped in order: what tells the thread to end must be
/// dropped before.
#[derive(Debug)]
pub(crate) struct Joined(Option<JoinHandle<()>>);

/// Starts a thread with the name that debuggers and `ps` show. It ends on its own, or with the program.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work)
}

/// Creates an async runtime for one thread: the one that calls its `block_on`.
pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

impl<T: Send + 'static> OwnedThread<T> {
    /// Starts `work`, which must end once its channel is closed.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(&Receiver<T>) + Send + 'static,
    ) -> io::Result<Self> {
        let (messages, taken) = mpsc::channel();
        Ok(Self {
            messages,
            _thread: Joined::start(name, move || work(&taken))?,
        })
    }

    pub(crate) fn send(&self, message: T) {
        // If the thread has ended, nobody needs the message.
        let _ = self.messages.send(message);
    }
}

impl Joined {
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Ok(Self(Some(spawn(name, work)?)))
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // The panic hook has already reported a panic in that thread.
            let _ = thread.join();
        }
    }
}

/// Locks the mutex, even if a thread has panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
