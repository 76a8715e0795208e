//! The clock of all sources. Other modules read time from samples.

use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

use crate::units::Moment;

/// Measures time since pipetop started. Cheap to copy into every thread.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the sources' clock begins here")]
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub fn since_start(self) -> Duration {
        self.start.elapsed()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the wall clock is part of a moment"
    )]
    pub fn now(self) -> Moment {
        Moment {
            since_start: self.since_start(),
            wall: SystemTime::now(),
        }
    }
}

/// Returns the CPU time that the calling thread has used.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or_default(),
        time.tv_nsec.try_into().unwrap_or_default(),
    )
}
