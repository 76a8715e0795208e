//! The main thread's waits for the interpreter's lock, and what the thread that holds it runs.
//!
//! Does not depend on loaders.

use std::collections::BTreeMap;
use std::time::Duration;

use super::blocked::{Blocked, SystemCall};
use super::count_activity;
use super::python_view::PythonView;
use super::thread_view::{Polled, ThreadView};
use crate::source::python::Stacks;

/// Time between two looks at the thread that holds the lock.
const HOLDER_AFTER: Duration = Duration::from_millis(200);

#[derive(Debug, Default)]
pub(super) struct GilWait {
    /// Number of times the thread had been put on a CPU when it was last seen to wait for the lock; `None` once it has
    /// run since.
    run_before: Option<u64>,
    /// Functions of the thread that held the lock meanwhile.
    pub(super) holders: BTreeMap<String, u64>,
    holder_at: Duration,
}

impl GilWait {
    /// Returns whether `thread` waits for the lock: it sleeps on the lock's futex, or was woken from that, as happens every
    /// 5 ms, and has not been on a CPU since. Locks of PyTorch, the driver and queues are other futexes. `None` if the lock
    /// is not known. `times`: how often the thread has been put on a CPU.
    pub(super) fn poll(
        &mut self,
        thread: &ThreadView,
        poll: Polled,
        times: Option<u64>,
        python: &PythonView,
    ) -> Option<bool> {
        let before = self.run_before.take();
        let stacks = python.attached().filter(|stacks| stacks.has_gil())?;
        let waits = match poll.blocked {
            Blocked::Lock => {
                let futex = thread.call().and_then(SystemCall::futex);
                futex.is_some_and(|futex| stacks.waits_for_gil(futex))
            }
            _ => poll.is_about_to_run(before, times),
        };
        self.run_before = times.filter(|_| waits);
        Some(waits)
    }

    /// Counts the function of the thread that holds the lock.
    pub(super) fn poll_holder(&mut self, now: Duration, python: &mut PythonView) {
        if now.saturating_sub(self.holder_at) < HOLDER_AFTER {
            return;
        }
        self.holder_at = now;
        if let Some(Ok(Some(function))) = python.stacks(now, None).map(Stacks::gil_holder) {
            count_activity(&mut self.holders, function);
        }
    }

    /// Forgets the thread polled so far, as another one is polled from now on.
    pub(super) fn switch_thread(&mut self) {
        self.run_before = None;
    }
}
