//! The past on one axis of time, in fixed memory: what the screen draws over time, each reading with its begin
//! and end, the older the coarser, gaps kept as gaps.
//!
//! Knows nothing of how a figure is measured or drawn.

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
pub use point::{GpuPoint, GpuReading, Known, Point, RankPoint, RankReading, Reading, WorkerPlace};

/// Readings that are kept at most: the newest 3600 as they came, then those that lie twice as far back half as
/// finely.
#[cfg(any(test, feature = "testing"))]
pub const HISTORY: usize = downsampling::MOST;

/// All that is drawn over time.
#[derive(Debug, Clone)]
pub struct History {
    points: Downsampled<Point>,
    /// By worker place, so that a re-made worker keeps it.
    places: Places,
    pub(super) marks: Marks,
    /// The newest minutes in fine.
    timeline: Timeline,
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl History {
    pub fn new() -> Self {
        Self {
            points: Downsampled::new(),
            places: Places::default(),
            marks: Marks::default(),
            timeline: Timeline::default(),
        }
    }

    /// Adds the reading that ended at `to`. Where time ran backwards, what was kept lies ahead and is forgotten.
    pub(crate) fn push(&mut self, to: Duration, rates: &Rates) {
        self.add(Reading::of(to, rates));
    }

    /// Adds one reading.
    pub fn add(&mut self, reading: Reading) {
        let mut last = self.points.newest().map_or(f64::MIN, |point| point.to);
        if reading.to <= last {
            *self = Self {
                // It has begun anew itself.
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
        // Two readings follow each other, whatever is lost where a number is written down.
        let from = reading.from.max(last);
        self.points.push(Point::new(reading, from, &taken.slots));
    }

    /// What happened when.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Takes in the polls and the waits that a sample brought since the one before.
    pub fn add_polls(&mut self, before: Option<&Sample>, sample: &Sample) {
        self.timeline.add(before, sample);
    }

    /// The newest minutes, poll by poll.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Adds a mark.
    pub fn mark(&mut self, mark: Mark) {
        self.marks.add(mark);
    }

    /// Readings that are kept; the older ones hold several.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    pub fn is_empty(&self) -> bool {
        self.points.newest().is_none()
    }

    /// Where it begins and ends, in seconds since pipetop started. `None` while there is nothing.
    pub fn span(&self) -> Option<(f64, f64)> {
        Some((self.points.oldest()?.from, self.points.newest()?.to))
    }

    /// GPUs that the newest reading has.
    pub fn gpus(&self) -> usize {
        self.points.newest().map_or(0, |point| point.gpus.len())
    }

    /// Places of workers that are known.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// Anything is known of the worker there.
    pub fn knows(&self, place: WorkerPlace) -> bool {
        self.places.slot(place).is_some()
    }

    /// The newest `seconds`, or those that ended by `until`, in so many cells, filled from the left. `None` where there
    /// is nothing to draw, or nothing to draw it in.
    pub fn axis(&self, until: Option<Duration>, seconds: f64, cells: usize) -> Option<Axis> {
        let newest = match until {
            Some(until) => self.points.ended_by(until.as_secs_f64())?,
            None => self.points.newest()?,
        };
        let oldest = self.points.oldest()?;
        let ends = |point: &Point| (point.from, point.to);
        Axis::ending(ends(oldest), ends(newest), seconds, cells)
    }

    /// The cell that shows what was read at that time; `None` where it lies outside.
    pub fn cell(&self, axis: &Axis, at: Duration) -> Option<usize> {
        let at = at.as_secs_f64();
        match self.points.around(at) {
            Some(point) if point.to - at < EARLY => axis.cell_of(point.from, point.to),
            // It is shown as one with what followed.
            _ => axis.cell_of(at, at),
        }
    }

    /// The mean of a figure over the time of each cell, of what is known in it.
    pub fn means(&self, axis: &Axis, pick: impl Fn(&Point) -> Option<f64>) -> Vec<Option<f64>> {
        let points = self.points.between(axis.from(), axis.to());
        axis.map(points, pick, |(one, weight), (other, more)| {
            (one * weight + other * more) / (weight + more)
        })
    }

    /// What a worker did at the end of each cell.
    pub fn states(&self, axis: &Axis, place: WorkerPlace) -> Vec<Option<WorkerNow>> {
        let slot = self.places.slot(place);
        let points = self.points.between(axis.from(), axis.to());
        axis.map(points, |point| point.worker(slot?), |_, (newer, _)| newer)
    }
}

/// Seconds by which a time may be off that was written down more coarsely.
const EARLY: f64 = 1e-6;

impl Reading {
    /// What the panels draw, of the rates of the time that ended at `to`.
    fn of(to: Duration, rates: &Rates) -> Self {
        let to = to.as_secs_f64();
        let job = rates.job.as_ref();
        let ranks = job.map_or(&[][..], |job| &job.ranks);
        let rank = |(place, rank): (usize, &RankRates)| RankReading {
            number: rank.number(place),
            wait: rank.wait.map(|wait| wait.share.0),
            queue: rank
                .main_loader()
                .and_then(|loader| Some(loader.queue?.occupancy?.0)),
        };
        let gpu = |gpu: &crate::model::rates::GpuRates| GpuReading {
            util_percent: gpu.util_percent,
            sm_active: gpu.counters.sm_active.map(|share| share.0),
            dram: gpu.counters.dram.map(|share| share.0),
            power_watts: gpu.now.power_watts,
            // What the driver samples only now and then would be drawn as if it were of this time.
            pcie_rx: gpu
                .pcie_rx
                .filter(|_| gpu.pcie_age.is_none())
                .map(|rate| rate.0),
        };
        Self {
            from: to - rates.seconds,
            to,
            ranks: ranks.iter().enumerate().map(rank).collect(),
            disk_read: job.and_then(|job| job.read).map(|read| read.0),
            gpus: rates.gpus.iter().map(gpu).collect(),
            workers: ranks.iter().flat_map(workers).collect(),
        }
    }
}

/// Of two at one place, the one that started last comes last.
fn workers(rank: &RankRates) -> impl Iterator<Item = (WorkerPlace, WorkerNow)> {
    rank.loaders.iter().flat_map(|loader| {
        loader.workers.iter().map(|worker| {
            let place = WorkerPlace {
                rank: rank.key,
                loader: loader.id,
                id: worker.id,
            };
            (place, worker.now)
        })
    })
}
