//! The thread that writes to the terminal, so that a blocked terminal blocks nothing else.
//!
//! Its queue has no limit; the event loop skips frames while it is busy, so at most one frame is
//! queued. Must not know what the bytes mean.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{Action, QueueSelector, tcflow, tcflush};

use crate::background::{lock, spawn};

/// Called with whether there is output left to write.
type OnChange = Box<dyn Fn(bool) + Send>;

pub(super) struct TerminalWriter {
    state: Mutex<WriterState>,
    changed: Condvar,
}

struct WriterState {
    /// Bytes that the thread has not taken yet.
    queue: Vec<u8>,
    /// The thread is in `write`.
    writing: bool,
    /// The thread runs.
    started: bool,
    /// The error that ended writing. `None` while the terminal is there.
    failed: Option<Errno>,
    on_change: Option<OnChange>,
}

impl WriterState {
    fn is_busy(&self) -> bool {
        self.failed.is_none() && (self.writing || !self.queue.is_empty())
    }

    fn notify(&self) {
        if let Some(on_change) = &self.on_change {
            on_change(self.is_busy());
        }
    }
}

/// The only writer, as there is only one standard output.
pub(super) static WRITER: TerminalWriter = TerminalWriter {
    state: Mutex::new(WriterState {
        queue: Vec::new(),
        writing: false,
        started: false,
        failed: None,
        on_change: None,
    }),
    changed: Condvar::new(),
};

impl TerminalWriter {
    /// Starts the thread, once.
    pub(super) fn start(&'static self) -> io::Result<()> {
        let mut state = self.state();
        if !state.started {
            spawn("terminal", || self.run())?;
            state.started = true;
        }
        Ok(())
    }

    /// Calls `on_change` with whether output is waiting, now and at each change.
    pub(super) fn watch(&self, on_change: impl Fn(bool) + Send + 'static) {
        let mut state = self.state();
        state.on_change = Some(Box::new(on_change));
        state.notify();
    }

    /// Queues bytes and returns at once.
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if let Some(errno) = state.failed {
            return Err(errno.into());
        }
        state.queue.extend_from_slice(bytes);
        state.notify();
        self.changed.notify_all();
        Ok(())
    }

    /// Waits at most this long until everything is written; returns whether it is.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let busy = |state: &mut WriterState| state.is_busy();
        let waited = self
            .changed
            .wait_timeout_while(self.state(), longest, busy)
            .unwrap_or_else(PoisonError::into_inner);
        !waited.1.timed_out()
    }

    /// Discards unwritten bytes and what the kernel has queued.
    pub(super) fn discard(&self) {
        self.state().queue.clear();
        let terminal = rustix::stdio::stdout();
        // Errors mean that the terminal is gone. On Linux (n_tty) the flush does not wake a blocked write; stopping and
        // restarting output does.
        let _ = tcflush(terminal, QueueSelector::OFlush)
            .and_then(|()| tcflow(terminal, Action::OOff))
            .and_then(|()| tcflow(terminal, Action::OOn));
    }

    fn run(&self) {
        let mut bytes = Vec::new();
        loop {
            {
                let nothing = |state: &mut WriterState| state.queue.is_empty();
                let waited = self.changed.wait_while(self.state(), nothing);
                let mut state = waited.unwrap_or_else(PoisonError::into_inner);
                std::mem::swap(&mut bytes, &mut state.queue);
                state.writing = true;
            }
            let written = write(&bytes);
            bytes.clear();
            let mut state = self.state();
            state.writing = false;
            if let Err(errno) = written {
                state.failed = Some(errno);
                state.queue.clear();
            }
            state.notify();
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        lock(&self.state)
    }
}

/// Bypasses `std::io::stdout`: its lock would be held while the terminal is blocked.
fn write(mut bytes: &[u8]) -> Result<(), Errno> {
    let terminal = rustix::stdio::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(terminal, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // Another program that shares the terminal has made it non-blocking.
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
