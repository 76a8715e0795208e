//! Rates of a GPU between two samples: means of what was read, growth of what is counted.
//!
//! Does not depend on the job.

use std::collections::VecDeque;

use crate::model::gpu::{CounterSums, Figure, GpuSums, Piece};
use crate::model::oscillation::{Oscillation, oscillation};
use crate::model::rates::sequential::{self, Bounds};
use crate::model::window::WindowSums;
use crate::sample::{GpuSample, Sample};
use crate::units::{BytesPerSecond, Share};

/// Age in seconds below which a reading is never called stale.
const FRESH: f64 = 2.0;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct GpuRates {
    /// The complete newest reading.
    pub now: GpuSample,
    /// Mean utilisation in this time, in percent.
    pub util_percent: Option<f64>,
    /// Share of time in which a kernel ran: from the performance counters if there are any, else from the driver's sample
    /// history, which also counts copies.
    pub busy: Option<Share>,
    /// Share of time in which it only copied. `None` without counters.
    pub copies_only: Option<Share>,
    /// Bounds of the share of time without a kernel, for judging early. `None` if no piece covers less than the whole
    /// time.
    pub early_idle: Option<Bounds>,
    /// Age of the reading in seconds, if it is older than the interval explains.
    pub stale_seconds: Option<f64>,
    /// Performance counters over this time (Hopper and newer).
    pub counters: CounterRates,
    /// Without counters, an estimate of how much of the GPU was in use: utilisation times power over its limit. Must be
    /// shown as an estimate.
    pub load_estimate: Option<Share>,
    /// Energy used in this time.
    pub energy_joules: Option<f64>,
    /// Received and sent over PCIe: by the counters, by counted bytes, else as the driver last sampled it.
    pub pcie_rx: Option<BytesPerSecond>,
    pub pcie_tx: Option<BytesPerSecond>,
    /// Seconds since the driver sampled that, if there is no better source.
    pub pcie_age: Option<f64>,
    /// Over all links to other GPUs together.
    pub nvlink_rx: Option<BytesPerSecond>,
    pub nvlink_tx: Option<BytesPerSecond>,
    /// Alternation between full load and rest.
    pub swing: Option<Oscillation>,
    /// Share of time with a kernel of each part of a partitioned (MIG) GPU, in the order of `now.instances`.
    pub parts: Vec<Option<Share>>,
    /// Share of this time that pipetop spent in calls of the driver.
    pub driver_time: Option<Share>,
}

/// Means over the time; `None` if the GPU or its driver does not report them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CounterRates {
    /// Multiprocessors with at least one warp.
    pub sm_active: Option<Share>,
    /// Resident warps over the maximum number.
    pub sm_occupancy: Option<Share>,
    pub tensor: Option<Share>,
    /// Used share of the device memory's bandwidth.
    pub dram: Option<Share>,
}

/// GPUs that oscillate too slowly for the window, each with the pieces of the time that shows it.
pub(super) type SlowOscillations = Vec<(u32, VecDeque<Piece>)>;

pub(super) fn rows(
    newer: &Sample,
    sums: &WindowSums,
    session: &WindowSums,
) -> (Vec<GpuRates>, SlowOscillations) {
    let mut slow = SlowOscillations::new();
    let row = |gpu: &GpuSample| {
        let age = gpu.read_at.map(|read| newer.at.seconds_since(&read));
        let nothing = GpuSums::default();
        let seen = sums.gpu(gpu).unwrap_or(&nothing);
        let mut row = self::row(gpu, seen);
        row.stale_seconds = age.filter(|age| *age > FRESH.max(2.0 * sums.last_step));
        let sampled = gpu.traffic.and_then(|traffic| traffic.pcie_sampled);
        if let Some(sampled) = sampled.filter(|_| row.pcie_rx.is_none()) {
            row.pcie_rx = Some(sampled.rx);
            row.pcie_tx = Some(sampled.tx);
            row.pcie_age = Some(newer.at.seconds_since(&sampled.read_at));
        }
        if let Some(longer) = session.gpu(gpu).filter(|_| row.swing.is_none())
            && let Some(found) = oscillation(&longer.pieces)
        {
            row.swing = Some(found);
            slow.push((gpu.index, longer.since(found.seconds)));
        }
        row
    };
    let rows = newer.gpus.iter().map(row).collect();
    (rows, slow)
}

fn row(gpu: &GpuSample, seen: &GpuSums) -> GpuRates {
    let sums = seen.counters();
    let share = |figure| sums.mean(figure).map(|share| Share(share).clamped());
    let rate = |figure| {
        let rate = sums.mean(figure).or_else(|| seen.traffic(figure));
        rate.map(BytesPerSecond)
    };
    let counters = CounterRates {
        sm_active: share(Figure::SmActive),
        sm_occupancy: share(Figure::SmOccupancy),
        tensor: share(Figure::Tensor),
        dram: share(Figure::Dram),
    };
    let util_percent = seen.percent();
    let guess = load_estimate(util_percent, gpu.power_watts, gpu.power_limit_watts);
    let parts = gpu.instances.iter().map(|part| {
        let sums: &CounterSums = seen.part(part.gpu_instance?)?;
        sums.mean(Figure::Graphics)
            .map(|share| Share(share).clamped())
    });
    GpuRates {
        now: gpu.clone(),
        util_percent,
        busy: seen.busy(),
        copies_only: seen.copies_only(),
        early_idle: sequential::idle(&seen.without_kernel()),
        stale_seconds: None,
        load_estimate: guess.filter(|_| counters.sm_active.is_none()),
        counters,
        energy_joules: seen.energy(),
        pcie_rx: rate(Figure::PcieRx),
        pcie_tx: rate(Figure::PcieTx),
        pcie_age: None,
        nvlink_rx: rate(Figure::NvlinkRx),
        nvlink_tx: rate(Figure::NvlinkTx),
        swing: oscillation(&seen.pieces),
        parts: parts.collect(),
        driver_time: seen.driver(),
    }
}

fn load_estimate(
    util_percent: Option<f64>,
    watts: Option<f64>,
    limit: Option<f64>,
) -> Option<Share> {
    let power = Share::of(watts?, limit?)?;
    Some(Share(util_percent? / 100.0 * power.0).clamped())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::literals::{machine, moment};
    use crate::sample::{GpuCounters, GpuInstance, GpuTraffic, PcieSampled, Tail};
    use crate::units::Bytes;

    fn gpu(sample: &mut Sample) -> &mut GpuSample {
        &mut sample.gpus[0]
    }

    fn traffic(at: f64) -> GpuTraffic {
        GpuTraffic {
            read_at: moment(at),
            pcie_rx: None,
            pcie_tx: None,
            nvlink_rx: None,
            nvlink_tx: None,
            pcie_sampled: None,
        }
    }

    fn counters(from: f64, to: f64, share: f64) -> GpuCounters {
        GpuCounters {
            from: moment(from),
            to: moment(to),
            graphics: Some(Share(share)),
            sm_active: Some(Share(share / 2.0)),
            sm_occupancy: None,
            tensor: None,
            dram: Some(Share(0.1)),
            pcie_rx: Some(BytesPerSecond(1e9 * share)),
            pcie_tx: None,
            nvlink_rx: None,
            nvlink_tx: None,
        }
    }

    fn row(older: &Sample, newer: &Sample) -> GpuRates {
        let mut rates = crate::model::between(older, newer).unwrap();
        rates.gpus.remove(0)
    }

    fn close(value: Option<f64>, expected: f64) {
        let value = value.expect("known");
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    }

    #[test]
    fn what_is_counted_grows_over_its_own_time() {
        let (mut older, mut newer) = (machine(10.0), machine(14.0));
        for (sample, joules) in [(&mut older, 1000.0), (&mut newer, 2200.0)] {
            let at = sample.at;
            gpu(sample).energy_joules = Some(joules);
            gpu(sample).energy_read_at = Some(at);
        }
        gpu(&mut older).traffic = Some(GpuTraffic {
            pcie_rx: Some(Bytes(1_000)),
            nvlink_tx: Some(Bytes(500)),
            ..traffic(9.5)
        });
        gpu(&mut newer).traffic = Some(GpuTraffic {
            pcie_rx: Some(Bytes(9_000)),
            nvlink_tx: Some(Bytes(100)),
            ..traffic(13.5)
        });
        gpu(&mut newer).driver_time = Duration::from_millis(8);
        let row = row(&older, &newer);
        close(row.energy_joules, 1200.0);
        close(row.pcie_rx.map(|rate| rate.0), 2000.0);
        assert_eq!(row.nvlink_tx, None, "a counter that began anew");
        assert_eq!(row.pcie_age, None);
        close(row.driver_time.map(|share| share.0), 0.002);
    }

    #[test]
    fn energy_is_that_of_the_whole_time_though_it_is_read_seldom() {
        // 400 W, read 4, 9 and 14 s after the start of 15 s.
        let samples: Vec<_> = (0..=15_u8)
            .map(|at| {
                let mut sample = machine(f64::from(at));
                let read = [14.0, 9.0, 4.0]
                    .into_iter()
                    .find(|read| *read <= f64::from(at));
                gpu(&mut sample).energy_joules = read.map(|read| 1e6 + 400.0 * read);
                gpu(&mut sample).energy_read_at = read.map(moment);
                sample
            })
            .collect();
        let rates = crate::model::rates_of(&samples).unwrap();
        close(rates.gpus[0].energy_joules, 6000.0);
    }

    #[test]
    fn energy_is_unknown_without_the_time_of_its_readings() {
        let (mut older, mut newer) = (machine(10.0), machine(14.0));
        for sample in [&mut older, &mut newer] {
            gpu(sample).energy_joules = Some(1000.0);
        }
        assert_eq!(row(&older, &newer).energy_joules, None);
    }

    #[test]
    fn a_sampled_rate_stands_in_with_its_age() {
        let (older, mut newer) = (machine(10.0), machine(14.0));
        gpu(&mut newer).traffic = Some(GpuTraffic {
            pcie_sampled: Some(PcieSampled {
                read_at: moment(11.0),
                rx: BytesPerSecond(5e9),
                tx: BytesPerSecond(1e9),
            }),
            ..traffic(14.0)
        });
        let row = row(&older, &newer);
        assert_eq!(row.pcie_rx, Some(BytesPerSecond(5e9)));
        close(row.pcie_age, 3.0);
    }

    /// As on an H200: the history misses some of the time between short kernels, and counts copies.
    #[test]
    fn time_with_a_kernel_is_what_the_counters_say() {
        let between = |history: f64, kernels: f64| {
            let samples: Vec<_> = (0..15)
                .map(|at| {
                    let mut sample = machine(f64::from(at));
                    let us = 1_000_000 * u64::try_from(at).unwrap();
                    gpu(&mut sample).driver_zero_us = Some(1);
                    gpu(&mut sample).util_samples = vec![(us + 1, history)].into();
                    let from = f64::from(at) - 1.0;
                    gpu(&mut sample).counters =
                        (at > 0).then(|| counters(from, from + 1.0, kernels));
                    sample
                })
                .collect();
            crate::model::rates_of(&samples).unwrap().gpus.remove(0)
        };
        let short = between(63.0, 0.67);
        close(short.util_percent, 63.0);
        close(short.busy.map(|share| share.0), 0.67);
        close(short.copies_only.map(|share| share.0), 0.0);
        let copies = between(100.0, 0.25);
        close(copies.busy.map(|share| share.0), 0.25);
        close(copies.copies_only.map(|share| share.0), 0.75);
        assert!(copies.early_idle.expect("pieces").low.0 > 0.4);
    }

    #[test]
    fn counters_are_weighted_with_their_time_and_counted_once() {
        let samples: Vec<_> = [
            (10.0, 9.0, 0.9),
            (11.0, 10.0, 1.0),
            (12.0, 10.0, 1.0),
            (14.0, 11.0, 0.2),
        ]
        .into_iter()
        .map(|(at, from, share)| {
            let mut sample = machine(at);
            let to = if at > 13.0 { 14.0 } else { 11.0_f64.min(at) };
            gpu(&mut sample).counters = Some(counters(from, to, share));
            gpu(&mut sample).util_samples.newest.clear();
            gpu(&mut sample).util_percent = None;
            sample
        })
        .collect();
        let rates = crate::model::rates_of(&samples).unwrap();
        let row = &rates.gpus[0];
        // One second at 1.0 and three seconds at 0.2.
        close(row.busy.map(|busy| busy.0), 0.4);
        close(row.util_percent, 40.0);
        close(row.counters.sm_active.map(|share| share.0), 0.2);
        close(row.pcie_rx.map(|rate| rate.0), 4e8);
        assert_eq!(row.counters.tensor, None);
        assert_eq!(row.load_estimate, None, "no guess where it is measured");
    }

    #[test]
    fn without_counters_the_load_is_a_guess_and_without_power_none() {
        let (older, mut newer) = (machine(10.0), machine(12.0));
        gpu(&mut newer).power_watts = Some(350.0);
        gpu(&mut newer).power_limit_watts = Some(700.0);
        let guess = row(&older, &newer).load_estimate;
        close(guess.map(|share| share.0), 0.2);
        gpu(&mut newer).power_limit_watts = None;
        assert_eq!(row(&older, &newer).load_estimate, None);
    }

    #[test]
    fn each_part_of_a_divided_gpu_has_its_busy_share() {
        let (older, mut newer) = (machine(10.0), machine(12.0));
        let part = |number, counters| GpuInstance {
            gpu_instance: Some(number),
            counters,
            ..GpuInstance::default()
        };
        gpu(&mut newer).instances = vec![part(1, Some(counters(10.0, 12.0, 0.7))), part(5, None)];
        let parts = row(&older, &newer).parts;
        assert_eq!(parts, [Some(Share(0.7)), None]);
    }

    #[test]
    fn an_oscillating_history_is_mapped_to_our_time_axis() {
        let mut samples = Vec::new();
        for second in 0..12_u32 {
            let mut sample = machine(100.0 + f64::from(second));
            let now = 5_000_000 + u64::from(second) * 1_000_000;
            // One second at full load, one at rest; the driver's clock has another zero.
            let percent = if second % 2 == 0 { 100.0 } else { 0.0 };
            let utils = (1..=5).map(|n| (now + n * 200_000, percent));
            gpu(&mut sample).util_samples = Tail::new(5 * u64::from(second + 1), utils);
            gpu(&mut sample).driver_zero_us = Some(0);
            samples.push(sample);
        }
        let rates = crate::model::rates_of(&samples).unwrap();
        let swing = rates.gpus[0].swing.expect("it swings");
        assert!((swing.period - 2.0).abs() < 0.05, "{swing:?}");
        assert!(swing.regular);
    }
}
