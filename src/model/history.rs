//! The past on one axis of time, in fixed memory: what the screen draws over time. Each reading has a start and an end;
//! older readings are coarser, and gaps stay gaps.
//!
//! Does not depend on how a figure is measured or drawn.

mod axis;
mod downsampling;
mod places;
mod point;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::model::marks::{Mark, Marks};
use crate::model::rates::{RankRates, Rates};
use crate::model::timeline::Timeline;
use crate::sample::{Sample, WorkerNow};

pub use axis::Axis;
use downsampling::Downsampled;
use places::Places;
pub use point::{GpuPoint, Known, Point, RankPoint, Reading, WorkerPlace};

/// Maximum number of readings kept: the newest 3600 as they came, then older ones, at half the resolution for each
/// doubling of their age.
#[cfg(any(test, feature = "testing"))]
pub const HISTORY: usize = downsampling::MAX_ENTRIES;

/// Everything that is drawn over time.
#[derive(Debug, Clone, Default)]
pub struct History {
    points: Downsampled<Point>,
    /// Slots by worker place, so that a worker that is started again keeps its slot.
    places: Places,
    pub(super) marks: Marks,
    /// The newest minutes in full resolution.
    timeline: Timeline,
}

impl History {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the reading that ended at `to`. If time ran backwards, the readings so far would be in the future and are
    /// dropped.
    pub(crate) fn push(&mut self, to: Duration, rates: &Rates) {
        self.add(Reading::of(to, rates));
    }

    /// Adds one reading.
    pub fn add(&mut self, reading: Reading) {
        let mut last = self.points.newest().map_or(f64::MIN, |point| point.to);
        if reading.to <= last {
            *self = Self {
                // The timeline handles time that runs backwards itself.
                timeline: std::mem::take(&mut self.timeline),
                ..Self::new()
            };
            last = f64::MIN;
        }
        let taken = self.places.take(&reading);
        if !taken.freed.is_empty() {
            for point in self.points.each_mut() {
                point.free(&taken.freed);
            }
        }
        // Readings must not overlap, even if times were rounded when they were recorded.
        let from = reading.from.max(last);
        self.points.push(Point::new(reading, from, &taken.slots));
    }

    /// Returns the marks: which event happened when.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Adds the polls and the waits that are new in `sample` since the one before.
    pub fn add_polls(&mut self, before: Option<&Sample>, sample: &Sample) {
        self.timeline.add(before, sample);
    }

    /// Returns the newest minutes, poll by poll.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Adds a mark.
    pub fn mark(&mut self, mark: Mark) {
        self.marks.add(mark);
    }

    /// Returns the number of readings kept; older ones are several readings joined.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    pub fn is_empty(&self) -> bool {
        self.points.newest().is_none()
    }

    /// Returns where the history starts and ends, in seconds since pipetop started; `None` if it is empty.
    pub fn span(&self) -> Option<(f64, f64)> {
        Some((self.first()?.from, self.points.newest()?.to))
    }

    /// Returns the first reading that is shown. For a job that was just found, this is the first one with data on its
    /// ranks.
    fn first(&self) -> Option<&Point> {
        let oldest = self.points.oldest()?;
        let mut early = self
            .points
            .between(oldest.from, f64::MAX)
            .take(READINGS_WITHOUT_RANKS);
        early.find(|point| point.has_rank_data()).or(Some(oldest))
    }

    /// Returns the number of GPUs in the newest reading.
    pub fn gpus(&self) -> usize {
        self.points.newest().map_or(0, |point| point.gpus.len())
    }

    /// Returns the number of worker places that have a slot.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there is any data on the worker at this place.
    pub fn has_worker(&self, place: WorkerPlace) -> bool {
        self.places.slot(place).is_some()
    }

    /// Returns an axis of `cells` cells over the newest `seconds` (or over those that ended by `until`), filled from
    /// the left. `None` if there is nothing to draw or no cell to draw it in.
    pub fn axis(&self, until: Option<Duration>, seconds: f64, cells: usize) -> Option<Axis> {
        let newest = match until {
            Some(until) => self.points.ended_by(until.as_secs_f64())?,
            None => self.points.newest()?,
        };
        let oldest = self.first()?;
        let ends = |point: &Point| (point.from, point.to);
        Axis::ending(ends(oldest), ends(newest), seconds, cells)
    }

    /// Returns the cell that shows what was read at `at`; `None` if that is outside of the axis.
    pub fn cell(&self, axis: &Axis, at: Duration) -> Option<usize> {
        let at = at.as_secs_f64();
        match self.points.around(at) {
            Some(point) if point.to - at < TIME_TOLERANCE => axis.cell_of(point.from, point.to),
            // That reading is drawn as one with the readings after it.
            _ => axis.cell_of(at, at),
        }
    }

    /// Returns the mean of a figure over each cell, weighted by time, of what is known in it.
    pub fn means(&self, axis: &Axis, pick: impl Fn(&Point) -> Option<f64>) -> Vec<Option<f64>> {
        let points = self.points.between(axis.from(), axis.to());
        axis.map(points, pick, |(one, weight), (other, more)| {
            (one * weight + other * more) / (weight + more)
        })
    }

    /// Returns what a worker did at the end of each cell. The states are `Unknown` only if no cell has another.
    pub fn states(&self, axis: &Axis, place: WorkerPlace) -> Vec<Option<WorkerNow>> {
        let slot = self.places.slot(place);
        let points = self.points.between(axis.from(), axis.to());
        let mut states = axis.map(points, |point| point.worker(slot?), |_, (newer, _)| newer);
        let unknown = |state: &Option<WorkerNow>| *state == Some(WorkerNow::Unknown);
        if states
            .iter()
            .flatten()
            .any(|now| *now != WorkerNow::Unknown)
        {
            // `Unknown` only means that it was not seen yet.
            states
                .iter_mut()
                .filter(|state| unknown(state))
                .for_each(|state| *state = None);
        }
        states
    }
}

/// Number of first readings that may lack data on the ranks.
const READINGS_WITHOUT_RANKS: usize = 5;
/// Seconds by which a time may be off because it was recorded with fewer digits.
const TIME_TOLERANCE: f64 = 1e-6;

impl Reading {
    /// Returns the part of the rates up to `to` that the panels draw.
    fn of(to: Duration, rates: &Rates) -> Self {
        let to = to.as_secs_f64();
        let (job, ranks) = (rates.job.as_ref(), rates.ranks());
        let rank = |rank: &RankRates| RankPoint {
            number: rank.number,
            wait: rank.wait_share().map(|wait| wait.0).into(),
            queue: rank
                .main_loader()
                .and_then(|loader| Some(loader.queue?.occupancy?.0))
                .into(),
            device_busy: rank
                .device
                .as_ref()
                .and_then(|device| Some(device.busy?.0))
                .into(),
        };
        let gpu = |gpu: &crate::model::rates::GpuRates| GpuPoint {
            util_percent: gpu.util_percent.into(),
            sm_active: gpu.counters.sm_active.map(|share| share.0).into(),
            dram: gpu.counters.dram.map(|share| share.0).into(),
            power_watts: gpu.now.power_watts.into(),
            // The driver's rare samples would be drawn as if they covered this time.
            pcie_rx: gpu
                .pcie_rx
                .filter(|_| gpu.pcie_age.is_none())
                .map(|rate| rate.0)
                .into(),
        };
        Self {
            from: to - rates.seconds,
            to,
            ranks: ranks.iter().map(rank).collect(),
            disk_read: job.and_then(|job| job.read).map(|read| read.0).into(),
            cpu_cores: job.and_then(|job| job.cpu_cores).into(),
            gpus: rates.gpus.iter().map(gpu).collect(),
            workers: ranks.iter().flat_map(workers).collect(),
        }
    }
}

/// If two workers share a place, the one that started last comes last.
fn workers(rank: &RankRates) -> impl Iterator<Item = (WorkerPlace, WorkerNow)> {
    rank.loaders.iter().flat_map(|loader| {
        loader.workers.iter().map(|worker| {
            let place = WorkerPlace::new(rank.key, loader.id, worker.id);
            (place, worker.now)
        })
    })
}
