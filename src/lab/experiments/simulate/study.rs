//! Combines runs with several seeds, and with other numbers of workers.

use std::time::Duration;

use super::{MAX_WORKERS, SimulatedRun, SimulationSettings, run};
use crate::units::Share;

/// Batches to simulate for a row with another number of workers: about the first number over all runs of the row, but
/// at least the second in each run. Enough for a steady state, and not slower than the runs themselves.
const MAX_BATCHES: f64 = 200_000.0;
const ENOUGH_EACH: f64 = 5000.0;
/// Maximum number of rows for other numbers of workers.
const ROWS: usize = 8;

/// Runs of the same settings with different seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    pub settings: SimulationSettings,
    /// At least one.
    pub runs: Vec<SimulatedRun>,
    /// The means over these runs.
    pub now: WhatIf,
    /// Rows by number of workers, including that of the settings.
    pub what_if: Vec<WhatIf>,
}

/// Means over runs with another number of workers, for the time since the first batch; `None` if there was none.
#[derive(Debug, Clone, PartialEq)]
pub struct WhatIf {
    pub workers: u32,
    /// Simulated time: less than the study's if that would take too long.
    pub span: Duration,
    pub batches_per_s: Option<f64>,
    pub stall: Option<Share>,
    pub empty: Option<Share>,
}

/// The mean over runs, with the minimum and maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Study {
    /// Simulates `runs` runs, at least one, with the seeds `first_seed`, `first_seed + 1` and so on.
    pub fn of(settings: &SimulationSettings, first_seed: u64, runs: u32) -> Self {
        let seeds = || (0..u64::from(runs.max(1))).map(|place| first_seed.wrapping_add(place));
        let outcomes: Vec<SimulatedRun> = seeds().map(|seed| run(settings, seed)).collect();
        let now = WhatIf::of(settings.workers, settings.span, &outcomes);
        let what_if = |workers| {
            if workers == now.workers {
                return now.clone();
            }
            let mut settings = SimulationSettings {
                workers,
                ..settings.clone()
            };
            settings.span = enough(&settings, runs);
            let outcomes: Vec<SimulatedRun> = seeds().map(|seed| run(&settings, seed)).collect();
            WhatIf::of(workers, settings.span, &outcomes)
        };
        let what_if = counts(settings).into_iter().map(what_if).collect();
        Self {
            settings: settings.clone(),
            runs: outcomes,
            what_if,
            now,
        }
    }

    /// Returns the number of steps done.
    pub fn batches(&self) -> Band {
        let done = |run: &SimulatedRun| run.batches as f64;
        let all = self.runs.iter().map(done);
        Band {
            mean: mean(&self.runs, |run| Some(done(run))).unwrap_or(0.0),
            low: all.clone().fold(f64::INFINITY, f64::min),
            high: all.fold(0.0, f64::max),
        }
    }

    /// Returns the mean of a figure over the runs in which it is known.
    pub fn mean(&self, figure: impl Fn(&SimulatedRun) -> Option<f64>) -> Option<f64> {
        mean(&self.runs, figure)
    }

    /// Returns the period of the waits that more than half of the runs have; `None` if there is no such period.
    pub fn period_batches(&self) -> Option<u32> {
        let shown = |period| {
            let same = |run: &&SimulatedRun| run.period_batches == period;
            self.runs.iter().filter(same).count()
        };
        let most = self.runs.iter().map(|run| run.period_batches);
        most.max_by_key(|period| shown(*period))
            .filter(|period| shown(*period) * 2 > self.runs.len())
            .flatten()
    }

    /// Returns the batches ready in equal parts of the span, averaged over the runs.
    pub fn ready_over_time(&self) -> Vec<f64> {
        let parts = self.runs.first().map_or(0, |run| run.ready_over_time.len());
        let part = |at: usize| mean(&self.runs, |run| run.ready_over_time.get(at).copied());
        (0..parts).filter_map(part).collect()
    }
}

impl WhatIf {
    fn of(workers: u32, span: Duration, runs: &[SimulatedRun]) -> Self {
        Self {
            workers,
            span,
            batches_per_s: mean(runs, |run| run.batches_per_s),
            stall: mean(runs, |run| run.stall.map(|share| share.0)).map(Share),
            empty: mean(runs, |run| run.empty.map(|share| share.0)).map(Share),
        }
    }
}

/// Returns the time to simulate for a row with another number of workers.
fn enough(settings: &SimulationSettings, runs: u32) -> Duration {
    let batches = ENOUGH_EACH.max(MAX_BATCHES / f64::from(runs.max(1)));
    let seconds = settings.load.as_secs_f64() + batches / settings.bound();
    Duration::try_from_secs_f64(seconds).map_or(settings.span, |time| time.min(settings.span))
}

/// Returns the numbers of workers for the rows: powers of two up to the first that is more than the trainer needs, the
/// number that just matches its pace, and the one in the settings.
fn counts(settings: &SimulationSettings) -> Vec<u32> {
    let matches = settings.load.as_secs_f64() / settings.step.as_secs_f64();
    let matching = (1..=MAX_WORKERS).find(|count| f64::from(*count) >= matches);
    let mut counts: Vec<u32> = (0..)
        .map_while(|power| 1_u32.checked_shl(power))
        .take_while(|count| *count <= MAX_WORKERS)
        .collect();
    let useful = matching.map_or(counts.len(), |matching| {
        counts.partition_point(|count| *count <= matching) + 1
    });
    counts.truncate(useful);
    // Drops the lowest numbers, which are the least informative.
    let kept = counts.len().saturating_sub(ROWS - 2);
    counts.drain(..kept);
    counts.extend(matching);
    counts.push(settings.workers);
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Returns the mean of a figure; `None` if no run knows it.
fn mean(runs: &[SimulatedRun], figure: impl Fn(&SimulatedRun) -> Option<f64>) -> Option<f64> {
    crate::units::mean(runs.iter().filter_map(figure))
}
