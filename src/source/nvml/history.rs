//! The driver's own history of the utilisation: samples with their times, each reported once.

use std::time::UNIX_EPOCH;

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::Sampling;
use nvml_wrapper::enums::device::SampleValue;

use super::errors::Troubles;
use super::plausible::percent;
use crate::sample::GpuSample;
use crate::units::Moment;

/// Maximum age, in us, of the samples that are used at the first poll: older ones belong to an earlier window.
const MAX_AGE_AT_START_US: u64 = 1_000_000;
/// Largest difference, in us, between the driver's time stamps and the machine's clock at which both are taken for the
/// same clock.
const SAME_CLOCK_US: u64 = 20_000_000;

#[derive(Debug, Default)]
pub(super) struct UtilHistory {
    /// Driver time of the newest sample read, in us.
    seen: u64,
    zero: Option<u64>,
}

impl UtilHistory {
    /// Puts the samples since the last poll into `sample`, oldest first.
    pub(super) fn read(
        &mut self,
        device: &Device<'_>,
        at: Moment,
        sample: &mut GpuSample,
        troubles: &mut Troubles,
    ) {
        let now = now_us(at);
        // A clock that was set back, or a wrong time stamp, must not hide the samples that follow.
        self.seen = self.seen.min(now);
        let answer = device.samples(Sampling::GpuUtilization, self.seen);
        let answer = troubles.ask("util_history", answer).into_iter().flatten();
        let number = |value| match value {
            SampleValue::F64(number) => number,
            SampleValue::U32(number) => f64::from(number),
            SampleValue::U64(number) => number as f64,
            SampleValue::I64(number) => number as f64,
        };
        let mut samples: Vec<_> = answer
            .filter(|sample| sample.timestamp > self.seen)
            .filter_map(|sample| Some((sample.timestamp, percent(number(sample.value))?)))
            .collect();
        samples.sort_by_key(|(time, _)| *time);
        if self.seen == 0
            && let Some((newest, _)) = samples.last()
        {
            let oldest = newest.saturating_sub(MAX_AGE_AT_START_US);
            samples.retain(|(time, _)| *time > oldest);
        }
        if let Some((newest, _)) = samples.last() {
            self.seen = *newest;
            self.zero = zero(*newest, at, self.zero);
        }
        sample.driver_zero_us = self.zero;
        sample.util_samples = samples.into();
    }

    /// Converts a driver time in us to the time since pipetop started.
    pub(super) fn place(&self, driver_us: u64) -> Option<std::time::Duration> {
        let since = driver_us.checked_sub(self.zero?)?;
        Some(std::time::Duration::from_micros(since))
    }
}

/// Returns the driver time at which pipetop started: from the machine's clock if the driver uses it, else from the
/// newest sample. A sample is read a little late, so the largest value of all polls is kept.
fn zero(newest: u64, at: Moment, before: Option<u64>) -> Option<u64> {
    let since = u64::try_from(at.since_start.as_micros()).ok()?;
    let now = now_us(at);
    if now.abs_diff(newest) <= SAME_CLOCK_US {
        return now.checked_sub(since);
    }
    newest.checked_sub(since).max(before)
}

pub(super) fn now_us(at: Moment) -> u64 {
    let now = at.wall.duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_micros());
    u64::try_from(now).unwrap_or(u64::MAX)
}
