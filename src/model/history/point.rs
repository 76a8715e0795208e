//! One reading as the history keeps it: small, and joined with its neighbour when it is old.

use super::downsampling::Entry;
use crate::sample::WorkerNow;
use crate::units::ProcessKey;

/// What the history keeps of one reading. `None` means not known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The time that it covers, in seconds since pipetop started.
    pub from: f64,
    pub to: f64,
    pub ranks: Vec<RankPoint>,
    /// Bytes read per second by the job from block devices.
    pub disk_read: Known,
    /// CPU time of the job, in cores.
    pub cpu_cores: Known,
    /// By position in `Sample::gpus`.
    pub gpus: Vec<GpuPoint>,
    /// If two are at one place, the later one counts.
    pub workers: Vec<(WorkerPlace, WorkerNow)>,
}

/// Maximum number of ranks in one point, over all jobs in its time.
const RANKS: usize = 64;

/// A figure in four bytes; its seven digits are more than any screen shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known(f32);

impl Default for Known {
    fn default() -> Self {
        Self(f32::NAN)
    }
}

impl From<Option<f64>> for Known {
    #[expect(clippy::cast_possible_truncation, reason = "that is the point of it")]
    fn from(value: Option<f64>) -> Self {
        value.map_or_else(Self::default, |value| Self(value as f32))
    }
}

impl Known {
    /// Returns the figure; `None` if it was not known.
    pub fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(f64::from(self.0))
    }

    /// Returns the mean over both times of what is known.
    fn joined(self, own: f64, newer: Self, its: f64) -> Self {
        let mean = match (self.get(), newer.get()) {
            (Some(one), Some(other)) => Some((one * own + other * its) / (own + its)),
            (one, other) => one.or(other),
        };
        mean.into()
    }
}

/// One reading, or several that were joined.
#[derive(Debug, Clone, Default)]
pub struct Point {
    /// The time that it covers, in seconds since pipetop started.
    pub from: f64,
    pub to: f64,
    pub disk_read: Known,
    pub cpu_cores: Known,
    ranks: Box<[RankPoint]>,
    pub gpus: Box<[GpuPoint]>,
    /// By slot of the worker's place.
    workers: Box<[Option<WorkerNow>]>,
}

/// A rank in one reading or in several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankPoint {
    /// Number of the rank: a job that is started again continues the past of the one before.
    pub number: u32,
    /// Share of the time spent waiting for data.
    pub wait: Known,
    /// Mean number of ready batches of its busiest loader, as a share of the capacity.
    pub queue: Known,
    /// Share of the time that the device computed, as reported by the rank.
    pub device_busy: Known,
}

/// A GPU in one reading or in several.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GpuPoint {
    pub util_percent: Known,
    /// Share of the time that multiprocessors had work (`sm_active`), and used share of the device memory's bandwidth
    /// (`dram`).
    pub sm_active: Known,
    pub dram: Known,
    pub power_watts: Known,
    /// Bytes per second received over PCIe.
    pub pcie_rx: Known,
}

impl Point {
    /// Returns the point of one reading; `slots` are those of the reading's workers.
    pub(super) fn new(reading: Reading, from: f64, slots: &[Option<usize>]) -> Self {
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
            disk_read: reading.disk_read,
            cpu_cores: reading.cpu_cores,
            ranks: reading.ranks.into(),
            gpus: reading.gpus.into(),
            workers: workers.into(),
        }
    }

    pub fn rank(&self, number: u32) -> Option<&RankPoint> {
        self.ranks.iter().find(|rank| rank.number == number)
    }

    /// Returns whether there is any data on the ranks.
    pub(super) fn has_rank_data(&self) -> bool {
        let tells = |rank: &RankPoint| rank.wait.get().or(rank.queue.get()).is_some();
        self.ranks.iter().any(tells)
    }

    pub(super) fn worker(&self, slot: usize) -> Option<WorkerNow> {
        self.workers.get(slot).copied().flatten()
    }

    /// Clears slots that now belong to other workers.
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

    /// Joins known figures by their mean, weighted by time; a worker has its state at the end.
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
        let rank = |other: &RankPoint| match self.rank(other.number) {
            Some(one) => RankPoint {
                number: one.number,
                wait: mean(one.wait, other.wait),
                queue: mean(one.queue, other.queue),
                device_busy: mean(one.device_busy, other.device_busy),
            },
            None => *other,
        };
        let gone = self.ranks.iter().copied();
        let gone = gone.filter(|one| newer.rank(one.number).is_none());
        let worker = |slot: usize| newer.worker(slot).or(self.worker(slot));
        Self {
            from: self.from,
            to: newer.to,
            disk_read: mean(self.disk_read, newer.disk_read),
            cpu_cores: mean(self.cpu_cores, newer.cpu_cores),
            ranks: newer
                .ranks
                .iter()
                .map(rank)
                .chain(gone)
                .take(RANKS)
                .collect(),
            gpus: (0..self.gpus.len().max(newer.gpus.len()))
                .filter_map(gpu)
                .collect(),
            workers: (0..self.workers.len().max(newer.workers.len()))
                .map(worker)
                .collect(),
        }
    }
}

/// Identifies a worker on screen, also after it was started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerPlace {
    pub rank: ProcessKey,
    pub loader: u64,
    pub id: u32,
}

impl WorkerPlace {
    pub fn new(rank: ProcessKey, loader: u64, id: u32) -> Self {
        Self { rank, loader, id }
    }
}
