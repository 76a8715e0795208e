//! Lets only one thread at a time call the performance counters, for all GPUs. Does not call NVML.
//!
//! NVML is documented as safe for threads, but its code for these counters is not: with two threads in it at once,
//! driver 580.159 on an H200 ends the process with a segmentation fault in `nvmlGpmMetricsGet`.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::background::lock;

/// A call that takes longer hung in the driver. Nobody waits for it.
const HUNG: Duration = Duration::from_secs(1);

/// When the current holder got the turn.
static HOLDER: Mutex<Option<Instant>> = Mutex::new(None);
static FREED: Condvar = Condvar::new();

/// The right to call the counters. Dropping it lets the next thread call.
pub(super) struct CounterTurn(());

impl CounterTurn {
    /// Waits for the turn. `None` if a call hung in the driver.
    #[expect(
        clippy::disallowed_methods,
        reason = "on a GPU's own thread: whether another thread's call hung"
    )]
    pub(super) fn take() -> Option<Self> {
        let mut holder = lock(&HOLDER);
        while let Some(since) = *holder {
            let rest = HUNG.checked_sub(since.elapsed())?;
            let (guard, _) = FREED
                .wait_timeout(holder, rest)
                .unwrap_or_else(PoisonError::into_inner);
            holder = guard;
        }
        *holder = Some(Instant::now());
        Some(Self(()))
    }
}

impl Drop for CounterTurn {
    fn drop(&mut self) {
        *lock(&HOLDER) = None;
        FREED.notify_one();
    }
}
