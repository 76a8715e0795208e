//! The time between two samples, and by how much counters grew in it.
//!
//! Does not depend on what the counters are for.

use std::time::Duration;

use crate::sample::{HostSample, Sample};
use crate::units::{ProcessKey, Share, whole};

/// The time between two samples, in seconds since pipetop started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleInterval {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) seconds: f64,
    /// The part of the time on a CPU that a hypervisor took; zero if that is not known.
    pub(crate) stolen: Share,
    /// Ticks between boot and pipetop's start, and ticks per second.
    clock: Option<(u64, u64)>,
}

impl SampleInterval {
    pub(crate) fn new(older: &Sample, newer: &Sample) -> Self {
        Self {
            from: older.at.since_start.as_secs_f64(),
            to: newer.at.since_start.as_secs_f64(),
            seconds: newer.at.seconds_since(&older.at),
            stolen: stolen(&older.host, &newer.host).unwrap_or_default(),
            clock: newer
                .host
                .boot_ticks_at_start
                .zip(newer.host.ticks_per_second.filter(|ticks| *ticks > 0)),
        }
    }

    /// Returns whether the starts of processes can be placed on this axis of time.
    pub(crate) fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// Returns when a process started, in seconds since pipetop started; negative if it was there before.
    pub(crate) fn start_of(&self, process: ProcessKey) -> Option<f64> {
        let (boot, per_second) = self.clock?;
        Some((process.start_ticks as f64 - boot as f64) / per_second as f64)
    }
}

fn stolen(older: &HostSample, newer: &HostSample) -> Option<Share> {
    let stolen = seconds_grown(older.cpu_stolen, newer.cpu_stolen)?;
    Share::of(stolen, seconds_grown(older.cpu_busy, newer.cpu_busy)?)
}

/// Returns the seconds by which a counted time grew; `None` if either is missing or it went backwards.
pub(crate) fn seconds_grown(older: Option<Duration>, newer: Option<Duration>) -> Option<f64> {
    Some(newer?.checked_sub(older?)?.as_secs_f64())
}

/// Returns by how much a count grew; `None` if either is missing or it went backwards.
pub(crate) fn count_grown(older: Option<u64>, newer: Option<u64>) -> Option<f64> {
    Some(newer?.checked_sub(older?)? as f64)
}

/// An amount, and the seconds for which it was known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Total {
    amount: f64,
    seconds: f64,
}

impl Total {
    pub(crate) fn add(&mut self, amount: Option<f64>, seconds: f64) {
        if let Some(amount) = amount {
            self.amount += amount;
            self.seconds += seconds;
        }
    }

    /// Returns the seconds for which the amount was known.
    pub(crate) fn seconds(self) -> f64 {
        self.seconds
    }

    /// Returns the amount; `None` if nothing was known.
    pub(crate) fn known(self) -> Option<f64> {
        (self.seconds > 0.0).then_some(self.amount)
    }

    /// Like [`Total::known`], for an amount that is a count.
    pub(crate) fn whole(self) -> Option<u64> {
        Some(whole(self.known()?) as u64)
    }

    pub(crate) fn per_second(self) -> Option<f64> {
        Some(self.known()? / self.seconds)
    }
}
