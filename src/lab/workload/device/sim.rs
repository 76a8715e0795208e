//! The simulated device: it has the timing of an accelerator and computes nothing.
//!
//! A timeline is enough: the end of each copy and each step is known when it is queued, so a separate thread for the
//! device could only sleep until then. Instead the caller sleeps, once, where a driver would make it wait, which avoids
//! the wake-up of another thread. Moves no bytes and uses no CPU time.
//! Does not depend on CUDA.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Device, DeviceError, DeviceOptions, StepTimes, in_flight};
use crate::lab::workload::clock::{nanoseconds, sleep_until};
use crate::probe;

/// Measured speed of copies over the usual link (PCI Express 4.0, 16 lanes). A byte per nanosecond is a GB per second.
const PINNED_BYTES_PER_NANOSECOND: u64 = 25;
const PAGEABLE_BYTES_PER_NANOSECOND: u64 = 6;

#[derive(Debug)]
pub(super) struct Sim {
    options: DeviceOptions,
    engines: Engines,
    /// The end and the time of the copies of batches that wait for their step, oldest first.
    copied: VecDeque<(u64, Duration)>,
    /// The end and the times of started steps that were not yet waited for, oldest first.
    started: VecDeque<(u64, StepTimes)>,
}

/// The end of all operations queued on each engine.
#[derive(Debug, Default)]
struct Engines {
    copy: u64,
    compute: u64,
}

impl Sim {
    pub(super) fn new(options: &DeviceOptions) -> Self {
        Self {
            options: options.clone(),
            engines: Engines::default(),
            copied: VecDeque::new(),
            started: VecDeque::new(),
        }
    }

    fn copy_time(&self, bytes: usize) -> Duration {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let rate = if self.options.pin_memory {
            PINNED_BYTES_PER_NANOSECOND
        } else {
            PAGEABLE_BYTES_PER_NANOSECOND
        };
        let own = Duration::from_nanos(bytes / rate);
        self.options.copy.unwrap_or(own)
    }
}

impl Device for Sim {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn copy(&mut self, batch: &[u8]) -> Result<(), DeviceError> {
        in_flight(self.copied.len() + self.started.len())?;
        let took = self.copy_time(batch.len());
        let end = if self.options.pin_memory {
            self.engines.pinned_copy(probe::now(), took)
        } else {
            let end = self.engines.pageable_copy(probe::now(), took);
            sleep_until(end);
            end
        };
        self.copied.push_back((end, took));
        Ok(())
    }

    fn step(&mut self) -> Result<(), DeviceError> {
        let batch = self.copied.pop_front();
        let (copied, copy) = batch.ok_or_else(DeviceError::no_batch)?;
        let busy = self.options.step;
        let end = self.engines.step(probe::now(), copied, busy);
        self.started.push_back((end, StepTimes { copy, busy }));
        Ok(())
    }

    fn finish(&mut self) -> Result<StepTimes, DeviceError> {
        let step = self.started.pop_front();
        let (end, times) = step.ok_or_else(DeviceError::no_step)?;
        sleep_until(end);
        Ok(times)
    }
}

/// Each method queues an operation and returns the time of its end.
impl Engines {
    /// Queues a copy in parallel with the steps.
    fn pinned_copy(&mut self, now: u64, takes: Duration) -> u64 {
        self.copy = after(now.max(self.copy), takes);
        self.copy
    }

    /// Queues a copy in the order of the compute stream, like `.to(device)` in a training loop: after the started steps.
    fn pageable_copy(&mut self, now: u64, takes: Duration) -> u64 {
        self.copy = after(now.max(self.copy).max(self.compute), takes);
        self.copy
    }

    /// Queues a step after the copy of its batch.
    fn step(&mut self, now: u64, batch: u64, takes: Duration) -> u64 {
        self.compute = after(now.max(batch).max(self.compute), takes);
        self.compute
    }
}

fn after(start: u64, takes: Duration) -> u64 {
    start.saturating_add(nanoseconds(takes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn options(step: Duration, copy: Option<Duration>, pin_memory: bool) -> DeviceOptions {
        DeviceOptions {
            step,
            copy,
            pin_memory,
            batch_bytes: 1 << 20,
        }
    }

    #[test]
    fn a_pinned_copy_overlaps_the_previous_step() {
        let mut engines = Engines::default();
        let first = engines.pinned_copy(0, ms(4));
        assert_eq!(first, 4 * MS);
        assert_eq!(engines.step(0, first, ms(10)), 14 * MS);
        // Queued at once: ready long before the first step ends, so the second follows it without a gap.
        let second = engines.pinned_copy(MS, ms(4));
        assert_eq!(second, 8 * MS);
        assert_eq!(engines.step(2 * MS, second, ms(10)), 24 * MS);
    }

    #[test]
    fn a_pageable_copy_waits_for_the_step_before() {
        let mut engines = Engines::default();
        let first = engines.pageable_copy(0, ms(4));
        assert_eq!(engines.step(first, first, ms(10)), 14 * MS);
        let second = engines.pageable_copy(5 * MS, ms(4));
        assert_eq!(second, 18 * MS);
        assert_eq!(engines.step(second, second, ms(10)), 28 * MS);
    }

    #[test]
    fn an_idle_engine_starts_when_it_is_asked_and_a_late_batch_is_waited_for() {
        let mut engines = Engines::default();
        assert_eq!(engines.step(0, 0, ms(10)), 10 * MS);
        assert_eq!(engines.step(0, 0, ms(10)), 20 * MS);
        assert_eq!(engines.step(50 * MS, 0, ms(10)), 60 * MS);
        let batch = engines.pinned_copy(70 * MS, ms(30));
        assert_eq!(engines.step(70 * MS, batch, ms(10)), 110 * MS);
        assert_eq!(engines.step(0, 0, Duration::MAX), u64::MAX);
    }

    #[test]
    fn the_bandwidth_decides_unless_a_time_is_set() {
        let batch = 150_000_000;
        let pinned = Sim::new(&options(ms(1), None, true));
        assert_eq!(pinned.copy_time(batch), ms(6));
        let pageable = Sim::new(&options(ms(1), None, false));
        assert_eq!(pageable.copy_time(batch), ms(25));
        let fixed = Sim::new(&options(ms(1), Some(ms(3)), false));
        assert_eq!(fixed.copy_time(batch), ms(3));
    }

    #[test]
    fn calls_in_the_wrong_order_are_errors() {
        let mut sim = Sim::new(&options(ms(0), None, true));
        assert_eq!(sim.step(), Err(DeviceError::no_batch()));
        assert_eq!(sim.finish(), Err(DeviceError::no_step()));
        sim.copy(&[0]).unwrap();
        sim.copy(&[0]).unwrap();
        assert!(sim.copy(&[0]).is_err());
        sim.step().unwrap();
        assert!(sim.copy(&[0]).is_err());
        sim.finish().unwrap();
        sim.copy(&[0]).unwrap();
    }

    #[test]
    fn steps_take_their_time_on_the_real_clock_and_no_less() {
        let mut sim = Sim::new(&options(ms(10), Some(ms(4)), true));
        let start = probe::now();
        sim.copy(&[0; 64]).unwrap();
        for _ in 0..5 {
            sim.step().unwrap();
            sim.copy(&[0; 64]).unwrap();
            let times = sim.finish().unwrap();
            assert_eq!((times.copy, times.busy), (ms(4), ms(10)));
        }
        assert!(probe::now() - start >= 54 * MS);
    }
}
