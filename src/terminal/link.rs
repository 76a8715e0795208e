//! The way to the terminal: a thread of its own writes, so that a terminal that takes nothing keeps nobody waiting.
//!
//! Knows bytes; knows no frame. It holds what it is given until the terminal takes it: who draws asks first whether
//! the way is free, and so there is never more than one frame on it.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{Action, QueueSelector, tcflow, tcflush};

/// Hears that the way is taken, and that it is free again.
type Told = Box<dyn Fn(bool) + Send>;

pub(super) struct Link {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Not yet taken by the thread.
    waiting: Vec<u8>,
    /// The thread is at it.
    writing: bool,
    /// The thread runs.
    started: bool,
    /// The terminal takes nothing any more.
    failed: Option<Errno>,
    told: Option<Told>,
}

impl State {
    fn is_busy(&self) -> bool {
        self.failed.is_none() && (self.writing || !self.waiting.is_empty())
    }

    fn tell(&self) {
        if let Some(told) = &self.told {
            told(self.is_busy());
        }
    }
}

/// There is one standard output.
pub(super) static LINK: Link = Link {
    state: Mutex::new(State {
        waiting: Vec::new(),
        writing: false,
        started: false,
        failed: None,
        told: None,
    }),
    changed: Condvar::new(),
};

impl Link {
    /// Starts the thread, once.
    pub(super) fn start(&'static self) -> io::Result<()> {
        let mut state = self.state();
        if !state.started {
            std::thread::Builder::new()
                .name("terminal".into())
                .spawn(|| self.work())?;
            state.started = true;
        }
        Ok(())
    }

    /// From now on `told` hears whether the way is taken.
    pub(super) fn watch(&self, told: impl Fn(bool) + Send + 'static) {
        let mut state = self.state();
        state.told = Some(Box::new(told));
        state.tell();
    }

    /// Sends bytes on their way, and does not wait for them.
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if let Some(errno) = state.failed {
            return Err(errno.into());
        }
        state.waiting.extend_from_slice(bytes);
        state.tell();
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until everything is written, but not longer than this; says whether it is.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let busy = |state: &mut State| state.is_busy();
        let waited = self
            .changed
            .wait_timeout_while(self.state(), longest, busy)
            .unwrap_or_else(PoisonError::into_inner);
        !waited.1.timed_out()
    }

    /// Throws away what nobody reads, also what the kernel holds of it.
    pub(super) fn drop_all(&self) {
        self.state().waiting.clear();
        let terminal = rustix::stdio::stdout();
        // Of a terminal that is gone there is nothing to throw away. A write that waits does not notice that there
        // is room again; that the output was held up and goes on, it does (Linux, n_tty).
        let _ = tcflush(terminal, QueueSelector::OFlush)
            .and_then(|()| tcflow(terminal, Action::OOff))
            .and_then(|()| tcflow(terminal, Action::OOn));
    }

    fn work(&self) {
        let mut bytes = Vec::new();
        loop {
            {
                let nothing = |state: &mut State| state.waiting.is_empty();
                let waited = self.changed.wait_while(self.state(), nothing);
                let mut state = waited.unwrap_or_else(PoisonError::into_inner);
                std::mem::swap(&mut bytes, &mut state.waiting);
                state.writing = true;
            }
            let written = write(&bytes);
            bytes.clear();
            let mut state = self.state();
            state.writing = false;
            if let Err(errno) = written {
                state.failed = Some(errno);
                state.waiting.clear();
            }
            state.tell();
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Not through `std::io::stdout`: its lock would be held for as long as the terminal takes nothing.
fn write(mut bytes: &[u8]) -> Result<(), Errno> {
    let terminal = rustix::stdio::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(terminal, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // Somebody who shares the terminal has asked it not to block.
            Err(Errno::AGAIN) => {
                let mut ready = [PollFd::from_borrowed_fd(terminal, PollFlags::OUT)];
                match poll(&mut ready, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno),
                }
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
