//! When a poll of all threads of a job is due: a job may have thousands.
//!
//! Does not know what is polled.

use std::time::Duration;

use crate::source::clock::thread_cpu;

/// The pause after a poll is at least this many times as long as the poll took.
const REST: u32 = 250;

#[derive(Debug, Default)]
pub(super) struct Paced {
    due: Duration,
}

impl Paced {
    /// Polls if that is due, and again after `pause` or later. Otherwise returns `None`.
    pub(super) fn call<T>(
        &mut self,
        now: Duration,
        pause: Duration,
        poll: impl FnOnce() -> T,
    ) -> Option<T> {
        if now < self.due {
            return None;
        }
        let before = thread_cpu();
        let polled = poll();
        let took = thread_cpu().saturating_sub(before);
        self.due = now + pause.max(took.saturating_mul(REST));
        Some(polled)
    }
}
