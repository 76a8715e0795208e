//! The real time, in which the jobs run.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the seconds of `CLOCK_MONOTONIC`, the clock of the script's marks.
pub(crate) fn now() -> f64 {
    of(ClockId::Monotonic)
}

/// Returns the seconds since 1970.
pub(crate) fn wall() -> f64 {
    of(ClockId::Realtime)
}

fn of(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

pub(crate) fn sleep(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "another process is waited for")]
    std::thread::sleep(time);
}
