//! One reading as the history keeps it: small, and made one with its neighbour when it is old.

use super::WorkerPlace;
use super::levels::Entry;
use crate::sample::WorkerNow;

/// What is to be kept of one reading. `None` = not known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The time that it covers, in seconds since pipetop started.
    pub from: f64,
    pub to: f64,
    /// Of the rank shown first: share of the time spent waiting for data.
    pub wait: Option<f64>,
    /// Mean ready batches of its busiest loader, as a share of the capacity.
    pub queue: Option<f64>,
    /// Mean ready batches of its busiest loader.
    pub ready: Option<f64>,
    /// Bytes read per second by the job from block devices.
    pub disk_read: Option<f64>,
    /// By position in `Sample::gpus`.
    pub gpus: Vec<GpuReading>,
    /// Of two at one place, the later counts.
    pub workers: Vec<(WorkerPlace, WorkerNow)>,
}

/// What is to be kept of one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GpuReading {
    pub util_percent: Option<f64>,
    /// Shares of the time: multiprocessors with work, bandwidth of the device memory.
    pub sm_active: Option<f64>,
    pub dram: Option<f64>,
    pub power_watts: Option<f64>,
    /// Bytes a second that came over the bus.
    pub pcie_rx: Option<f64>,
}

/// A figure in four bytes; seven digits are more than any screen shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known(f32);

impl Known {
    #[expect(clippy::cast_possible_truncation, reason = "that is the point of it")]
    fn new(value: Option<f64>) -> Self {
        Self(value.map_or(f32::NAN, |value| value as f32))
    }

    /// `None` where it was not known.
    pub fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(f64::from(self.0))
    }

    /// The mean over both times, of what is known.
    fn joined(self, own: f64, newer: Self, its: f64) -> Self {
        match (self.get(), newer.get()) {
            (Some(one), Some(other)) => Self::new(Some((one * own + other * its) / (own + its))),
            (one, other) => Self::new(one.or(other)),
        }
    }
}

/// One reading, or several as one.
#[derive(Debug, Clone)]
pub struct Point {
    /// In seconds since pipetop started.
    pub from: f64,
    pub to: f64,
    pub wait: Known,
    pub queue: Known,
    pub ready: Known,
    pub disk_read: Known,
    pub gpus: Box<[GpuPoint]>,
    /// By slot of the worker's place.
    workers: Box<[Option<WorkerNow>]>,
}

/// A GPU in one reading, or in several.
#[derive(Debug, Clone, Copy)]
pub struct GpuPoint {
    pub util_percent: Known,
    pub sm_active: Known,
    pub dram: Known,
    pub power_watts: Known,
    pub pcie_rx: Known,
}

impl Point {
    /// `slots` are those of the reading's workers.
    pub(super) fn new(reading: Reading, from: f64, slots: &[Option<usize>]) -> Self {
        let gpu = |gpu: GpuReading| GpuPoint {
            util_percent: Known::new(gpu.util_percent),
            sm_active: Known::new(gpu.sm_active),
            dram: Known::new(gpu.dram),
            power_watts: Known::new(gpu.power_watts),
            pcie_rx: Known::new(gpu.pcie_rx),
        };
        let last = slots.iter().flatten().max();
        let mut workers = vec![None; last.map_or(0, |last| last + 1)];
        for ((_, now), slot) in reading.workers.iter().zip(slots) {
            if let Some(slot) = slot {
                workers[*slot] = Some(*now);
            }
        }
        Self {
            from,
            to: reading.to,
            wait: Known::new(reading.wait),
            queue: Known::new(reading.queue),
            ready: Known::new(reading.ready),
            disk_read: Known::new(reading.disk_read),
            gpus: reading.gpus.into_iter().map(gpu).collect(),
            workers: workers.into(),
        }
    }

    pub(super) fn worker(&self, slot: usize) -> Option<WorkerNow> {
        self.workers.get(slot).copied().flatten()
    }

    /// Who comes to these slots was not there before.
    pub(super) fn free(&mut self, slots: &[usize]) {
        for slot in slots {
            if let Some(worker) = self.workers.get_mut(*slot) {
                *worker = None;
            }
        }
    }
}

impl Entry for Point {
    fn from(&self) -> f64 {
        self.from
    }

    fn to(&self) -> f64 {
        self.to
    }

    /// Means weighted by time of what is known; a worker as it was at the end.
    fn joined(self, newer: Self) -> Self {
        let (own, its) = (self.to - self.from, newer.to - newer.from);
        let mean = |one: Known, other: Known| one.joined(own, other, its);
        let gpu = |place: usize| match (self.gpus.get(place), newer.gpus.get(place)) {
            (Some(one), Some(other)) => Some(GpuPoint {
                util_percent: mean(one.util_percent, other.util_percent),
                sm_active: mean(one.sm_active, other.sm_active),
                dram: mean(one.dram, other.dram),
                power_watts: mean(one.power_watts, other.power_watts),
                pcie_rx: mean(one.pcie_rx, other.pcie_rx),
            }),
            (one, other) => one.or(other).copied(),
        };
        let worker = |slot: usize| newer.worker(slot).or(self.worker(slot));
        Self {
            from: self.from,
            to: newer.to,
            wait: mean(self.wait, newer.wait),
            queue: mean(self.queue, newer.queue),
            ready: mean(self.ready, newer.ready),
            disk_read: mean(self.disk_read, newer.disk_read),
            gpus: (0..self.gpus.len().max(newer.gpus.len()))
                .filter_map(gpu)
                .collect(),
            workers: (0..self.workers.len().max(newer.workers.len()))
                .map(worker)
                .collect(),
        }
    }
}
