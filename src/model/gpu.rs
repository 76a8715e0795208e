//! What passes on a GPU between two samples: its utilisation piece by piece on our axis of time, and the sums
//! of what its counters said.
//!
//! Fixed memory; no rate of a window, no opinion.

use std::collections::{BTreeMap, VecDeque};

use crate::model::interval::Total;
use crate::sample::{GpuCounters, GpuSample, GpuTraffic};
use crate::units::{Bytes, Share};

/// Pieces that are kept of each GPU, the newest: nine minutes of the driver's usual 140 ms.
const KEPT: usize = 4096;
/// Seconds. The driver's longest sample period is one; what lies further apart was missed.
const LONGEST: f64 = 2.5;

/// A stretch of time in which a kernel ran for a part of it; which part is not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    /// Seconds since pipetop started.
    pub from: f64,
    pub to: f64,
    /// Share of it without a kernel.
    pub idle: f64,
}

/// Readings of one GPU, summed up.
#[derive(Debug, Clone, Default)]
pub(crate) struct GpuSums {
    /// Of figures in percent, each as if it were of one second.
    history: Total,
    current: Total,
    /// Oldest first; they may have gaps between them.
    pub(crate) pieces: VecDeque<Piece>,
    /// Driver time of the newest sample, in us.
    newest_us: Option<u64>,
    counters: CounterSums,
    /// Joules.
    energy: Total,
    /// Bytes, by [`Figure`].
    traffic: [Total; 9],
    /// Seconds in calls of the driver.
    driver: Total,
    /// Share of time with a kernel, of each GPU instance of a divided GPU.
    parts: BTreeMap<u32, CounterSums>,
}

impl GpuSums {
    /// Adds a reading; `before` is the one before it, `seconds` the time between their samples.
    pub(crate) fn add(&mut self, before: Option<&GpuSample>, gpu: &GpuSample, seconds: f64) {
        if let Some(before) = before {
            self.add_growth(before, gpu, seconds);
        }
        let known = before.map(|before| &before.util_samples);
        for (time, percent) in gpu.util_samples.since(known) {
            self.history.add(sane(*percent), 1.0);
            if let Some(zero) = gpu.driver_zero_us {
                self.add_piece(*time, zero, *percent);
            }
            self.newest_us = Some(*time);
        }
        self.current.add(gpu.util_percent.and_then(sane), 1.0);
        if let Some(counters) = &gpu.counters
            && let Some(seconds) = self.counters.add(counters)
            && self.newest_us.is_none()
            && let Some(busy) = counters.graphics
        {
            // Where there is no history the counters tell of longer pieces.
            let to = counters.to.since_start.as_secs_f64();
            self.keep(Piece {
                from: to - seconds,
                to,
                idle: busy.complement().0,
            });
        }
        for part in &gpu.instances {
            if let (Some(number), Some(counters)) = (part.gpu_instance, &part.counters) {
                self.parts.entry(number).or_default().add(counters);
            }
        }
    }

    fn add_growth(&mut self, before: &GpuSample, gpu: &GpuSample, seconds: f64) {
        // Counters that went backwards began anew with the driver.
        let grown = before.energy_joules.zip(gpu.energy_joules);
        let used = grown.map(|(older, newer)| newer - older);
        self.energy.add(used.filter(|used| *used >= 0.0), seconds);
        let spent = gpu.driver_time.checked_sub(before.driver_time);
        let spent = spent.map(|spent| spent.as_secs_f64());
        self.driver.add(spent, seconds);
        if let (Some(older), Some(newer)) = (&before.traffic, &gpu.traffic) {
            let seconds = newer.read_at.seconds_since(&older.read_at);
            for (figure, of) in COUNTED.into_iter().filter(|_| seconds > 0.0) {
                let bytes = of(older).zip(of(newer));
                let bytes = bytes.and_then(|(older, newer)| newer.0.checked_sub(older.0));
                self.traffic[figure as usize].add(bytes.map(|bytes| bytes as f64), seconds);
            }
        }
    }

    fn add_piece(&mut self, time_us: u64, zero_us: u64, percent: f64) {
        let ours = |driver_us: u64| driver_us.checked_sub(zero_us).map(|us| us as f64 / 1e6);
        let before = self.newest_us.filter(|before| *before < time_us);
        let (Some(from), Some(to)) = (before.and_then(ours), ours(time_us)) else {
            return;
        };
        if sane(percent).is_some() && to - from <= LONGEST {
            let idle = 1.0 - percent / 100.0;
            self.keep(Piece { from, to, idle });
        }
    }

    fn keep(&mut self, piece: Piece) {
        if self.pieces.len() == KEPT {
            self.pieces.pop_front();
        }
        self.pieces.push_back(piece);
    }

    /// The pieces of the newest `seconds`.
    pub(crate) fn since(&self, seconds: f64) -> VecDeque<Piece> {
        let from = self.pieces.back().map_or(0.0, |newest| newest.to - seconds);
        let pieces = self.pieces.iter();
        pieces.filter(|piece| piece.from >= from).copied().collect()
    }

    /// Mean of the driver's history in percent; `None` where it has none.
    pub(crate) fn history(&self) -> Option<f64> {
        self.history.per_second()
    }

    /// The best mean there is, in percent.
    pub(crate) fn percent(&self) -> Option<f64> {
        let counted = || Some(100.0 * self.counters.mean(Figure::Graphics)?);
        self.history()
            .or_else(|| self.current.per_second())
            .or_else(counted)
    }

    /// Joules used.
    pub(crate) fn energy(&self) -> Option<f64> {
        self.energy.known()
    }

    /// Bytes in a second, as they were counted.
    pub(crate) fn traffic(&self, which: Figure) -> Option<f64> {
        self.traffic[which as usize].per_second()
    }

    /// Share of the time spent in calls of the driver.
    pub(crate) fn driver(&self) -> Option<Share> {
        let share = self.driver.per_second()?;
        Some(Share(share).clamped())
    }

    pub(crate) fn counters(&self) -> &CounterSums {
        &self.counters
    }

    pub(crate) fn part(&self, gpu_instance: u32) -> Option<&CounterSums> {
        self.parts.get(&gpu_instance)
    }
}

type BytesOf = fn(&GpuTraffic) -> Option<Bytes>;

/// What is also counted in bytes.
const COUNTED: [(Figure, BytesOf); 4] = [
    (Figure::PcieRx, |traffic| traffic.pcie_rx),
    (Figure::PcieTx, |traffic| traffic.pcie_tx),
    (Figure::NvlinkRx, |traffic| traffic.nvlink_rx),
    (Figure::NvlinkTx, |traffic| traffic.nvlink_tx),
];

fn sane(percent: f64) -> Option<f64> {
    (0.0..=100.0).contains(&percent).then_some(percent)
}

/// The figures of the performance counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    Graphics,
    SmActive,
    SmOccupancy,
    Tensor,
    Dram,
    PcieRx,
    PcieTx,
    NvlinkRx,
    NvlinkTx,
}

/// Means of the counters, weighted with the time that each is of.
#[derive(Debug, Clone, Default)]
pub(crate) struct CounterSums {
    /// End of the newest that was added, in seconds.
    newest: f64,
    /// By [`Figure`]: figure x seconds.
    sums: [Total; 9],
}

impl CounterSums {
    /// The seconds that are new; `None` where these were added before.
    fn add(&mut self, counters: &GpuCounters) -> Option<f64> {
        let to = counters.to.since_start.as_secs_f64();
        let seconds = counters.to.seconds_since(&counters.from);
        if to <= self.newest || seconds <= 0.0 {
            return None;
        }
        self.newest = to;
        let figures = [
            counters.graphics.map(|share| share.0),
            counters.sm_active.map(|share| share.0),
            counters.sm_occupancy.map(|share| share.0),
            counters.tensor.map(|share| share.0),
            counters.dram.map(|share| share.0),
            counters.pcie_rx.map(|rate| rate.0),
            counters.pcie_tx.map(|rate| rate.0),
            counters.nvlink_rx.map(|rate| rate.0),
            counters.nvlink_tx.map(|rate| rate.0),
        ];
        for (sum, figure) in self.sums.iter_mut().zip(figures) {
            sum.add(figure.map(|figure| figure * seconds), seconds);
        }
        Some(seconds)
    }

    pub(crate) fn mean(&self, figure: Figure) -> Option<f64> {
        self.sums[figure as usize].per_second()
    }
}
