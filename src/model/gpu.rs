//! Sums up the readings of a GPU between two samples: its utilisation piece by piece on pipetop's axis of time, and the
//! sums of its counters.
//!
//! Uses fixed memory; neither computes the rates of a window nor judges.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use crate::model::interval::Total;
use crate::sample::{GpuCounters, GpuSample, GpuTraffic};
use crate::units::{Bytes, Share, keep_newest};

/// Number of newest pieces kept of each GPU: nine minutes and more at the driver's 140 to 200 ms.
const MAX_PIECES: usize = 4096;
/// Part of the history's time that the counters must cover to correct it.
const MIN_COVERED: f64 = 0.5;
/// Largest factor by which the counters can raise the history's busy time. An H200's history shows 0.92 to 0.99 of
/// the time that its counters do, in jobs that keep it busy for 20 % and more.
const MAX_RAISE: f64 = 1.2;
/// Longest piece in seconds. The driver's longest sample period is 1 s; after a longer gap, samples were missed.
const MAX_PIECE_SECONDS: f64 = 2.5;

/// A stretch of time. A kernel ran for a part of it, but it is not known which part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    /// Seconds since pipetop started.
    pub from: f64,
    pub to: f64,
    /// Share of the stretch without a kernel.
    pub idle: f64,
}

/// The summed readings of one GPU.
#[derive(Debug, Clone, Default)]
pub(crate) struct GpuSums {
    /// Sum of figures in percent, each counted as if it covered one second.
    history: Total,
    current: Total,
    /// Oldest first; there may be gaps between them.
    pub(crate) pieces: VecDeque<Piece>,
    /// Driver time of the newest sample, in us.
    newest_us: Option<u64>,
    counters: CounterSums,
    /// Energy used, in joules, between readings of it.
    energy: Total,
    /// Seconds between all samples.
    seconds: f64,
    /// Traffic in bytes, by [`Figure`].
    traffic: [Total; 9],
    /// Time in calls of the driver, in seconds.
    driver: Total,
    /// Share of time with a kernel, by GPU instance of a partitioned (MIG) GPU.
    parts: BTreeMap<u32, CounterSums>,
}

impl GpuSums {
    /// Adds a reading; `before` is the previous one, `seconds` the time between their samples.
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
            // Without a driver history, the counters supply the pieces, which are longer.
            let to = counters.to.since_start.as_secs_f64();
            let idle = busy.complement().0;
            self.keep(to - seconds, to, idle);
        }
        for part in &gpu.instances {
            if let (Some(number), Some(counters)) = (part.gpu_instance, &part.counters) {
                self.parts.entry(number).or_default().add(counters);
            }
        }
    }

    fn add_growth(&mut self, before: &GpuSample, gpu: &GpuSample, seconds: f64) {
        // Counters that went backwards were reset with the driver.
        let grown = before.energy_joules.zip(gpu.energy_joules);
        let used = grown.map(|(older, newer)| newer - older);
        let read_at = before.energy_read_at.zip(gpu.energy_read_at);
        let apart = read_at.map_or(0.0, |(older, newer)| newer.seconds_since(&older));
        let used = used.filter(|used| *used >= 0.0 && apart > 0.0);
        self.energy.add(used, apart);
        self.seconds += seconds;
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

    fn add_piece(&mut self, time_us: u64, driver_start_us: u64, percent: f64) {
        let since_start = |driver_us: u64| {
            driver_us
                .checked_sub(driver_start_us)
                .map(|us| us as f64 / 1e6)
        };
        let before = self.newest_us.filter(|before| *before < time_us);
        let (Some(from), Some(to)) = (before.and_then(since_start), since_start(time_us)) else {
            return;
        };
        if sane(percent).is_some() && to - from <= MAX_PIECE_SECONDS {
            self.keep(from, to, 1.0 - percent / 100.0);
        }
    }

    fn keep(&mut self, from: f64, to: f64, idle: f64) {
        keep_newest(&mut self.pieces, Piece { from, to, idle }, MAX_PIECES);
    }

    /// Returns the pieces of the newest `seconds`.
    pub(crate) fn since(&self, seconds: f64) -> VecDeque<Piece> {
        let from = self.pieces.back().map_or(0.0, |newest| newest.to - seconds);
        let pieces = self.pieces.iter();
        pieces.filter(|piece| piece.from >= from).copied().collect()
    }

    /// Returns the mean of the driver's history in percent; `None` if there is no history.
    pub(crate) fn history(&self) -> Option<f64> {
        self.history.per_second()
    }

    /// Returns the pieces, with their idle time corrected to the time without a kernel, as the counters show it in
    /// total.
    pub(crate) fn without_kernel(&self) -> Cow<'_, VecDeque<Piece>> {
        self.corrected(0.0)
    }

    /// Returns the pieces, with their idle time corrected to the time in which the GPU does not even copy.
    pub(crate) fn at_rest(&self) -> Cow<'_, VecDeque<Piece>> {
        self.corrected(1.0)
    }

    /// Scales the busy time of the pieces to the total that the counters show, by a factor from `least` to
    /// [`MAX_RAISE`]: the history also counts the time in which only copies ran, and misses some of the time between
    /// short kernels.
    fn corrected(&self, least: f64) -> Cow<'_, VecDeque<Piece>> {
        let Some(factor) = self.kernels().and_then(|kernels| {
            let factor = kernels / (self.history()? / 100.0);
            factor.is_finite().then(|| factor.clamp(least, MAX_RAISE))
        }) else {
            return Cow::Borrowed(&self.pieces);
        };
        let corrected = self.pieces.iter().map(|piece| Piece {
            idle: (1.0 - factor * (1.0 - piece.idle)).max(0.0),
            ..*piece
        });
        Cow::Owned(corrected.collect())
    }

    /// Returns the share of time with a kernel: from the counters if they cover enough of the time, else from the
    /// history.
    pub(crate) fn busy(&self) -> Option<Share> {
        let history = self.history().and_then(|percent| Share::of(percent, 100.0));
        let counted = || self.counters.mean(Figure::Graphics);
        let busy = self.kernels().or_else(|| Some(history?.0)).or_else(counted);
        busy.map(|busy| Share(busy).clamped())
    }

    /// Returns the share of time in which the GPU only copied: its history counts that time, the counters do not.
    /// `None` without either of them.
    pub(crate) fn copies_only(&self) -> Option<Share> {
        let busy = self.history()? / 100.0;
        Some(Share(busy - self.kernels()?).clamped())
    }

    /// Returns the counters' share of time with a kernel, if they cover enough of the history's time.
    fn kernels(&self) -> Option<f64> {
        let pieces = self.pieces.iter();
        let seconds: f64 = pieces.map(|piece| piece.to - piece.from).sum();
        let counted = self.counters.sums[Figure::Graphics as usize];
        (counted.seconds() >= MIN_COVERED * seconds && seconds > 0.0)
            .then(|| counted.per_second())
            .flatten()
    }

    /// Returns the mean utilisation in percent, from the best source that is available.
    pub(crate) fn percent(&self) -> Option<f64> {
        let counted = || Some(100.0 * self.counters.mean(Figure::Graphics)?);
        self.history()
            .or_else(|| self.current.per_second())
            .or_else(counted)
    }

    /// Returns the energy used between all samples, in joules, by the time between readings of it.
    pub(crate) fn energy(&self) -> Option<f64> {
        Some(self.energy.per_second()? * self.seconds)
    }

    /// Returns a figure's counted traffic in bytes per second.
    pub(crate) fn traffic(&self, which: Figure) -> Option<f64> {
        self.traffic[which as usize].per_second()
    }

    /// Returns the share of the time spent in calls of the driver.
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

/// The figures that are also counted in bytes.
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

/// Means of the counters, each weighted by the time that it covers.
#[derive(Debug, Clone, Default)]
pub(crate) struct CounterSums {
    /// End of the newest counters that were added, in seconds.
    newest: f64,
    /// By [`Figure`]: figure times seconds.
    sums: [Total; 9],
}

impl CounterSums {
    /// Adds counters and returns the seconds that they cover; `None` if they were added before.
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
