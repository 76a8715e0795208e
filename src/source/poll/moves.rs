//! When a trainer's datasets yielded batches: whether they still do.

use std::time::Duration;

/// Without a batch for this many times the usual time between two, and for `MIN_IDLE`, no dataset yields any more.
const IDLE_FACTOR: u32 = 3;
const MIN_IDLE: Duration = Duration::from_millis(300);

/// When batches were yielded.
#[derive(Debug, Default)]
pub(super) struct Moves {
    now: Duration,
    last: Option<Duration>,
    /// Average time between two batches, over the newest.
    usual: Duration,
}

impl Moves {
    /// Sets the time of what follows.
    pub(super) fn at(&mut self, now: Duration) {
        self.now = now;
    }

    /// Returns when the newest batch was seen, if that was after this time.
    pub(super) fn since(&self, from: Duration) -> Option<Duration> {
        self.last.filter(|last| *last > from)
    }

    pub(super) fn moved(&mut self) {
        let pause = self
            .last
            .map_or(Duration::ZERO, |last| self.now.saturating_sub(last));
        self.usual = (7 * self.usual + pause) / 8;
        self.last = Some(self.now);
    }

    /// Returns when the last batch was yielded; `None` while batches are yielded as usual.
    pub(super) fn idle_since(&self) -> Option<Duration> {
        let last = self.last?;
        let least = (IDLE_FACTOR * self.usual).max(MIN_IDLE);
        (self.now.saturating_sub(last) >= least).then_some(last)
    }
}
