//! When a run is over: not always with the command itself, which may leave a training behind.

use std::time::Duration;

/// What a command leaves in the background trains after so long, or not at all.
const LONGEST_START: Duration = Duration::from_secs(30);

/// What is known of the end. Times are those of the samples.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExitTracker {
    now: Duration,
    trains: bool,
    /// A training was seen.
    found: bool,
    ended_at: Option<Duration>,
}

impl ExitTracker {
    /// A sample says whether something trains below the command.
    pub fn seen(&mut self, now: Duration, trains: bool) {
        self.now = now;
        self.trains = trains;
        self.found |= trains;
    }

    /// The command itself has ended, and left something running.
    pub fn ended(&mut self) {
        self.ended_at.get_or_insert(self.now);
    }

    /// What is left is of no matter any more.
    pub fn forget(&mut self) {
        (self.trains, self.found) = (false, true);
    }

    /// There is nothing to wait for.
    pub fn is_over(&self) -> bool {
        let Some(ended_at) = self.ended_at else {
            return false;
        };
        let may_begin = !self.found && self.now.saturating_sub(ended_at) < LONGEST_START;
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
    fn what_is_left_in_the_background_has_time_to_begin() {
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
