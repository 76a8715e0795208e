//! The simulated device: keeps the times that an accelerator would take and computes nothing.
//!
//! A timeline is all it needs: each operation begins when its engine and what it depends on are free, and whoever
//! waits for it sleeps until its end. So copies and steps go on beside the trainer as on a GPU, and no CPU is
//! used.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Device, DeviceError, DeviceOptions, StepTimes};
use crate::workload::clock::{nanoseconds, now, sleep_until};

/// Bytes in a second that copies reach: about those of PCIe 4.0 x16.
const PINNED: f64 = 25e9;
const PAGEABLE: f64 = 6e9;

#[derive(Debug)]
pub(super) struct Sim {
    options: DeviceOptions,
    timeline: Timeline,
}

/// Moments on the protocol's clock, in nanoseconds.
#[derive(Debug, Default)]
struct Timeline {
    /// When the copy engine and the compute engine have done all that they were given.
    copied: u64,
    computed: u64,
    /// Copies that no step has taken yet: when each ends, and how long it takes.
    waiting: VecDeque<(u64, u64)>,
    /// The step that was started: when it ends, its copy's time and its own.
    running: Option<(u64, StepTimes)>,
}

impl Timeline {
    /// Gives the copy engine something to do; says when it is done.
    fn copy(&mut self, now: u64, takes: u64) -> u64 {
        self.copied = self.copied.max(now) + takes;
        self.waiting.push_back((self.copied, takes));
        self.copied
    }

    /// Starts a step on the oldest copy, once that is there.
    fn step(&mut self, now: u64, takes: u64) {
        let (there, copy) = self.waiting.pop_front().unwrap_or_default();
        self.computed = self.computed.max(now).max(there) + takes;
        let times = StepTimes {
            copy: Duration::from_nanos(copy),
            busy: Duration::from_nanos(takes),
        };
        self.running = Some((self.computed, times));
    }
}

impl Sim {
    pub(super) fn new(options: DeviceOptions) -> Self {
        Self {
            options,
            timeline: Timeline::default(),
        }
    }

    fn copy_time(&self, bytes: usize) -> u64 {
        let rate = if self.options.pin_memory {
            PINNED
        } else {
            PAGEABLE
        };
        let own = Duration::try_from_secs_f64(bytes as f64 / rate).unwrap_or_default();
        nanoseconds(self.options.copy.unwrap_or(own))
    }
}

impl Device for Sim {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn copy(&mut self, batch: &[u8]) -> Result<(), DeviceError> {
        let takes = self.copy_time(batch.len());
        let end = self.timeline.copy(now(), takes);
        if !self.options.pin_memory {
            sleep_until(end);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), DeviceError> {
        self.timeline.step(now(), nanoseconds(self.options.step));
        Ok(())
    }

    fn finish(&mut self) -> Result<StepTimes, DeviceError> {
        let (end, times) = self.timeline.running.take().unwrap_or_default();
        sleep_until(end);
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_copy_that_is_given_early_runs_beside_the_step() {
        let mut line = Timeline::default();
        assert_eq!(line.copy(0, 5 * MS), 5 * MS);
        line.step(0, 20 * MS);
        assert_eq!(line.running.map(|(end, _)| end), Some(25 * MS));
        // While that runs the next batch is copied, and its step waits for nothing.
        assert_eq!(line.copy(6 * MS, 5 * MS), 11 * MS);
        line.step(25 * MS, 20 * MS);
        assert_eq!(line.running.map(|(end, _)| end), Some(45 * MS));
    }

    #[test]
    fn a_step_waits_for_its_own_copy() {
        let mut line = Timeline::default();
        line.copy(10 * MS, 30 * MS);
        line.step(10 * MS, 5 * MS);
        let (end, times) = line.running.unwrap();
        assert_eq!(end, 45 * MS);
        assert_eq!(
            (times.copy, times.busy),
            (Duration::from_millis(30), Duration::from_millis(5))
        );
    }
}
