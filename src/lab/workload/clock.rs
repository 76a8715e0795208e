//! Time for the built-in job: the clock of the probe protocol, and sleeping until a time on it.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

pub use crate::probe::now;
pub use crate::units::nanoseconds;

/// Sleeps until `moment`; returns at once if it has passed.
pub fn sleep_until(moment: u64) {
    let request = Timespec {
        tv_sec: i64::try_from(moment / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(moment % 1_000_000_000).unwrap_or_default(),
    };
    while let Err(Errno::INTR) = clock_nanosleep_absolute(ClockId::Monotonic, &request) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sleeps_to_a_moment_and_not_to_one_that_has_passed() {
        let from = now();
        sleep_until(from.saturating_sub(1_000_000_000));
        sleep_until(from + 3_000_000);
        assert!(now() - from >= 3_000_000);
    }
}
