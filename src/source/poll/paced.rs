//! When costly work is due: a poll of all threads of a job, which may have thousands, and a search that mostly finds
//! nothing.
//!
//! Does not know what is polled or searched.

use std::time::Duration;

use crate::source::clock::thread_cpu;

/// The pause after a poll is at least this many times as long as the poll took.
const REST: u32 = 250;

/// Number of searches in a row without a result after which they become rarer.
const IN_VAIN: u32 = 8;
/// The pause between them is then this many times as long.
const SELDOM: u32 = 4;

/// Returns a pause from `now` on, between half of `mean` and one and a half times `mean`: polls at irregular moments
/// are not in step with the job.
pub(super) fn odd_pause(now: Duration, mean: Duration) -> Duration {
    let odd = f64::from(now.subsec_nanos() % 1000) / 1000.0;
    mean.mul_f64(0.5 + odd)
}

#[derive(Debug, Default)]
pub(super) struct Paced {
    due: Duration,
}

impl Paced {
    pub(super) fn is_due(&self, now: Duration) -> bool {
        now >= self.due
    }

    /// Polls if a poll is due; the next one is due after `pause` or later. Returns `None` if none is due.
    pub(super) fn call<T>(
        &mut self,
        now: Duration,
        pause: Duration,
        poll: impl FnOnce() -> T,
    ) -> Option<T> {
        if !self.is_due(now) {
            return None;
        }
        let before = thread_cpu();
        let polled = poll();
        let took = thread_cpu().saturating_sub(before);
        self.due = now + pause.max(took.saturating_mul(REST));
        Some(polled)
    }
}

/// How many searches in a row found nothing.
#[derive(Debug, Default)]
pub(super) struct InVain {
    searches: u32,
}

impl InVain {
    pub(super) fn record(&mut self, found: bool) {
        self.searches = if found {
            0
        } else {
            self.searches.saturating_add(1)
        };
    }

    /// Returns the pause until the next search: `usual`, or longer if the last ones found nothing.
    pub(super) fn pause(&self, usual: Duration) -> Duration {
        if self.searches < IN_VAIN {
            usual
        } else {
            usual * SELDOM
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_finds_nothing_is_repeated_seldom_until_it_finds_something() {
        let usual = Duration::from_millis(250);
        let mut search = InVain::default();
        for _ in 0..IN_VAIN {
            assert_eq!(search.pause(usual), usual);
            search.record(false);
        }
        assert_eq!(search.pause(usual), Duration::from_secs(1));
        search.record(true);
        assert_eq!(search.pause(usual), usual);
    }
}
