//! Decides when a run is over. This can be later than the end of the command, which may leave training in the
//! background.

use std::time::Duration;

/// Time after which a process left in the background is no longer expected to start training.
const MAX_START: Duration = Duration::from_secs(30);

/// What is known about the end of a run. Times are those of the samples.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExitTracker {
    now: Duration,
    trains: bool,
    /// Whether any training was seen so far.
    found: bool,
    ended_at: Option<Duration>,
}

impl ExitTracker {
    /// Records whether something trains below the command, from a sample.
    pub fn seen(&mut self, now: Duration, trains: bool) {
        self.now = now;
        self.trains = trains;
        self.found |= trains;
    }

    /// Records that the command itself has ended, but has left processes running.
    pub fn ended(&mut self) {
        self.ended_at.get_or_insert(self.now);
    }

    /// Stops waiting for the processes that are left.
    pub fn forget(&mut self) {
        (self.trains, self.found) = (false, true);
    }

    /// Whether there is nothing left to wait for.
    pub fn is_over(&self) -> bool {
        let Some(ended_at) = self.ended_at else {
            return false;
        };
        let may_begin = !self.found && self.now.saturating_sub(ended_at) < MAX_START;
        !self.trains && !may_begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_run_is_over_with_the_command_and_what_trains_below_it() {
        let mut rest = ExitTracker::default();
        rest.seen(seconds(1), true);
        assert!(!rest.is_over());
        rest.ended();
        assert!(!rest.is_over(), "its training goes on in the background");
        rest.seen(seconds(2), false);
        assert!(rest.is_over());
    }

    #[test]
    fn background_processes_get_time_to_start() {
        let mut rest = ExitTracker::default();
        rest.seen(seconds(1), false);
        rest.ended();
        assert!(!rest.is_over());
        rest.seen(seconds(30), false);
        assert!(!rest.is_over());
        rest.seen(seconds(31), false);
        assert!(rest.is_over());
        let mut forgotten = ExitTracker::default();
        forgotten.ended();
        forgotten.forget();
        assert!(forgotten.is_over());
    }
}
