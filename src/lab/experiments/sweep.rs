//! Finds how many workers are enough: runs a job with one number of workers after the other, and separates the start of
//! each run from its steady state: the first batches are not typical of later ones.

pub mod command;
mod json;
pub mod text;

use std::fmt;
use std::sync::mpsc;
use std::time::Duration;

use super::taken;
use crate::engine::Engine;
use crate::job::Target;
use crate::lab::experiments::launched;
use crate::lab::workload::cpus_allowed;
use crate::probe::Step;
use crate::sample::Sample;
use crate::source::sampler::{Options, Sampler};
use crate::units::{Pid, Share, counted};

pub use json::{csv, json};

/// A row with at least this part of the best rate needs no more workers.
const GOOD_ENOUGH: f64 = 0.95;

/// The result of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRow {
    pub tried: Tried,
    /// Time from the start of the loader to its first batch; for a command, the wait for that batch.
    pub first_batch: Duration,
    /// Figures of the steady state. `None` if there were too few steps.
    pub steady: Option<Steady>,
    /// CPU time of all workers in cores. `None` if it could not be read.
    pub worker_cpu: Option<f64>,
    /// CPU time of other programs meanwhile, in cores. `None` if it could not be read.
    pub others_cpu: Option<f64>,
    /// The settings that did not take effect, so that the row is not valid. `None` = all did.
    pub not_set: Option<String>,
}

/// The settings of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    pub workers: u32,
    /// `None` = not changed; the same for `pin_memory`.
    pub prefetch_factor: Option<u32>,
    pub pin_memory: Option<bool>,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.workers, "worker"))?;
        if let Some(factor) = self.prefetch_factor {
            write!(f, ", prefetch factor {factor}")?;
        }
        match self.pin_memory {
            Some(true) => write!(f, ", pinned memory"),
            Some(false) => write!(f, ", pageable memory"),
            None => Ok(()),
        }
    }
}

/// Figures of the steps after the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    pub steps: u64,
    pub batches_per_s: f64,
    pub wait: Share,
    /// Mean time of a step without the wait.
    pub step: Duration,
    /// Mean time of a batch's copy to the device. `None` if the device does not report it.
    pub copy: Option<Duration>,
}

/// All rows and the conclusions from them.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    pub rows: Vec<SweepRow>,
    /// Rows with the same number of workers and other prefetch factors.
    pub prefetch: Vec<SweepRow>,
    /// Rows with the same number of workers, with pageable and with pinned memory.
    pub memory: Vec<SweepRow>,
    /// CPUs that workers may use at once, by affinity and quota.
    pub cpus_allowed: u32,
}

impl SweepRow {
    /// Returns batches per second with these settings. `None` if they did not take effect, or there were too few steps.
    fn rate(&self) -> Option<f64> {
        let steady = self.steady.filter(|_| self.not_set.is_none())?;
        Some(steady.batches_per_s)
    }
}

/// Returns the numbers in their order, without those that came before.
fn each_once(numbers: &[u32]) -> impl Iterator<Item = u32> {
    let is_new = |(place, number): &(usize, &u32)| !numbers[..*place].contains(number);
    numbers
        .iter()
        .enumerate()
        .filter(is_new)
        .map(|(_, number)| *number)
}

impl Sweep {
    /// Runs each number of workers, then the other comparisons with the number that is enough. A setting that is given
    /// twice is measured once.
    ///
    /// # Errors
    /// Returns an error if one of the runs fails.
    pub fn of<E>(
        counts: &[u32],
        prefetch_factors: &[u32],
        compares_memory: bool,
        mut run: impl FnMut(Tried) -> Result<SweepRow, E>,
    ) -> Result<Self, E> {
        let tried = |workers| Tried {
            workers,
            prefetch_factor: None,
            pin_memory: None,
        };
        let mut found = Self {
            rows: vec![],
            prefetch: vec![],
            memory: vec![],
            cpus_allowed: cpus_allowed(),
        };
        for workers in each_once(counts) {
            found.rows.push(run(tried(workers))?);
        }
        let Some(workers) = found.enough() else {
            return Ok(found);
        };
        for factor in each_once(prefetch_factors) {
            found.prefetch.push(run(Tried {
                prefetch_factor: Some(factor),
                ..tried(workers)
            })?);
        }
        let both = compares_memory.then_some([false, true]);
        for pinned in both.into_iter().flatten() {
            found.memory.push(run(Tried {
                pin_memory: Some(pinned),
                ..tried(workers)
            })?);
        }
        Ok(found)
    }

    /// Returns the fewest workers that are about as good as the best, if more were tried: otherwise more may be better.
    pub fn knee(&self) -> Option<u32> {
        let enough = self.enough()?;
        let more = |row: &SweepRow| row.tried.workers > enough;
        self.rows.iter().any(more).then_some(enough)
    }

    /// Returns the fewest workers that are about as good as the best.
    pub fn enough(&self) -> Option<u32> {
        self.enough_of(|_| true)
    }

    /// Returns the fewest that are enough or, if these are more than may run at once, the fewest that are about as good
    /// as the best of those that may.
    pub fn advised(&self) -> Option<u32> {
        let is_allowed = |workers: u32| workers <= self.cpus_allowed.max(1);
        let enough = self.enough().filter(|enough| is_allowed(*enough));
        enough.or_else(|| self.enough_of(|row| is_allowed(row.tried.workers)))
    }

    fn enough_of(&self, counts: impl Fn(&SweepRow) -> bool) -> Option<u32> {
        let rows = || self.rows.iter().filter(|row| counts(row));
        let best = rows().filter_map(SweepRow::rate).max_by(f64::total_cmp)?;
        let good = |row: &&SweepRow| row.rate().is_some_and(|rate| rate >= GOOD_ENOUGH * best);
        rows().filter(good).map(|row| row.tried.workers).min()
    }

    /// Returns the speed-up over the first row.
    pub fn speedup(&self, row: &SweepRow) -> Option<f64> {
        Some(row.rate()? / self.rows.first()?.rate()?)
    }

    /// Whether the row has more workers than may run at once, about which a loader warns.
    pub fn is_above_cpus(&self, row: &SweepRow) -> bool {
        row.tried.workers > self.cpus_allowed
    }
}

fn figures(steps: &[Step]) -> Option<Steady> {
    let count = u32::try_from(steps.len()).ok().filter(|count| *count > 1)?;
    let whole = taken(steps);
    let waited: u64 = steps.iter().map(|step| step.wait_to - step.wait_from).sum();
    let waited = Duration::from_nanos(waited);
    let copies: Option<u64> = steps.iter().map(|step| step.copy).sum();
    Some(Steady {
        steps: u64::from(count),
        batches_per_s: f64::from(count) / whole.as_secs_f64(),
        wait: Share::of(waited.as_secs_f64(), whole.as_secs_f64())?,
        step: whole.saturating_sub(waited) / count,
        copy: copies.map(|copies| Duration::from_nanos(copies) / count),
    })
}

/// A job that is also watched from outside, as only that shows the CPU time of each worker.
type WatchedWorkers = (Sampler, mpsc::Receiver<Sample>);

/// Watches the job. `None` if that is not possible.
fn watch(options: &Options, pid: Pid) -> Option<WatchedWorkers> {
    let (send, samples) = mpsc::channel();
    let job = launched(&options.proc_root, pid);
    let options = Options {
        target: Target::Launched(pid),
        ..options.clone()
    };
    let sampler = Sampler::start(options, job, move |sample| send.send(sample).is_ok());
    Some((sampler.ok()?, samples))
}

/// Returns what was observed while there were at least this many workers.
fn observed((sampler, samples): WatchedWorkers, count: u32) -> Engine {
    drop(sampler);
    let mut engine = Engine::new(Duration::MAX);
    // Earlier samples are dropped: a worker that is not in the first one has no rate.
    for sample in samples {
        if sample.workers() >= count as usize {
            engine.push(sample);
        }
    }
    engine
}

/// Returns the CPU time of all workers, in cores.
fn worker_cpu(engine: &Engine) -> Option<f64> {
    let rank = engine.state().model.window()?.job.as_ref()?.ranks.first()?;
    let cores: Option<f64> = rank.workers().map(|worker| worker.cpu).sum();
    // Without workers the sum is -0.0.
    cores.map(|cores| cores + 0.0)
}

fn others_cpu(engine: &Engine) -> Option<f64> {
    let rates = engine.state().model.window()?;
    rates.used_by_others(rates.job.as_ref()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workers: u32, batches_per_s: f64) -> SweepRow {
        SweepRow {
            tried: Tried {
                workers,
                prefetch_factor: None,
                pin_memory: Some(true),
            },
            first_batch: Duration::from_millis(50),
            steady: Some(Steady {
                steps: 100,
                batches_per_s,
                wait: Share(0.2),
                step: Duration::from_millis(10),
                copy: None,
            }),
            worker_cpu: None,
            others_cpu: None,
            not_set: None,
        }
    }

    fn sweep(rates: &[(u32, f64)]) -> Sweep {
        Sweep {
            rows: rates
                .iter()
                .map(|(workers, rate)| row(*workers, *rate))
                .collect(),
            prefetch: vec![],
            memory: vec![],
            cpus_allowed: 4,
        }
    }

    #[test]
    fn the_knee_is_where_more_workers_stop_helping() {
        let sweep = sweep(&[(1, 10.0), (2, 19.8), (4, 38.0), (8, 39.0), (16, 36.0)]);
        assert_eq!(sweep.knee(), Some(4));
        assert_eq!(sweep.speedup(&sweep.rows[2]), Some(3.8));
        let above: Vec<u32> = sweep
            .rows
            .iter()
            .filter(|row| sweep.is_above_cpus(row))
            .map(|row| row.tried.workers)
            .collect();
        assert_eq!(above, [8, 16]);
    }

    #[test]
    fn a_document_has_no_knee_where_the_text_has_none() {
        let knee = |rates: &[(u32, f64)]| json(&sweep(rates))["knee"].as_u64();
        assert_eq!(knee(&[(1, 10.0), (2, 10.0)]), Some(1));
        for without in [&[(1, 10.0)][..], &[(1, 10.0), (2, 20.0)]] {
            assert!(text::conclusion(&sweep(without)).contains("no knee"));
            assert_eq!(knee(without), None);
        }
    }

    /// Four may run at once.
    #[test]
    fn only_a_number_that_was_tried_is_advised() {
        let advised = |rates: &[(u32, f64)]| json(&sweep(rates))["advised"].as_u64();
        assert_eq!(advised(&[(2, 10.0), (4, 20.0), (8, 20.5)]), Some(4));
        assert_eq!(advised(&[(2, 10.0), (8, 30.0)]), Some(2));
        assert_eq!(advised(&[(1, 10.0), (3, 20.0), (8, 30.0)]), Some(3));
        assert_eq!(advised(&[(6, 10.0), (8, 30.0)]), None);
    }

    #[test]
    fn a_spreadsheet_holds_every_comparison() {
        let mut sweep = sweep(&[(1, 10.0), (2, 20.0)]);
        let of = |prefetch_factor, pin_memory| {
            let mut row = row(2, 20.0);
            (row.tried.prefetch_factor, row.tried.pin_memory) = (prefetch_factor, pin_memory);
            row
        };
        sweep.prefetch = vec![of(Some(4), None)];
        sweep.memory = vec![of(None, Some(false)), of(None, Some(true))];
        let csv = csv(&sweep);
        let cells = |name: &str| -> Vec<&str> {
            let mut lines = csv.lines().map(|line| line.split(','));
            let place = lines
                .next()
                .and_then(|mut head| head.position(|cell| cell == name));
            let place = place.unwrap_or_else(|| panic!("no {name} in {csv}"));
            lines.filter_map(|mut row| row.nth(place)).collect()
        };
        let compared = ["workers", "workers", "prefetch", "memory", "memory"];
        assert_eq!(cells("comparison"), compared, "{csv}");
        assert_eq!(cells("workers"), ["1", "2", "2", "2", "2"], "{csv}");
        assert_eq!(cells("prefetch_factor"), ["", "", "4", "", ""], "{csv}");
        let pinned = ["true", "true", "", "false", "true"];
        assert_eq!(cells("pin_memory"), pinned, "{csv}");
        assert_eq!(cells("copy_ms"), [""; 5], "{csv}");
    }

    #[test]
    fn a_number_that_is_given_twice_is_measured_once() {
        let mut tried = vec![];
        let found = Sweep::of(&[2, 1, 2, 1], &[4, 4], false, |one| {
            tried.push((one.workers, one.prefetch_factor));
            Ok::<_, ()>(row(one.workers, 10.0))
        });
        assert_eq!(tried, [(2, None), (1, None), (1, Some(4))]);
        assert_eq!(found.map(|found| found.rows.len()), Ok(2));
    }

    #[test]
    fn a_row_without_a_steady_state_is_no_baseline() {
        let mut sweep = sweep(&[(1, 10.0), (2, 20.0)]);
        sweep.rows[0].steady = None;
        assert_eq!(sweep.speedup(&sweep.rows[1]), None);
        assert_eq!(sweep.enough(), Some(2));
    }

    #[test]
    fn a_row_that_was_not_set_is_not_enough() {
        let mut sweep = sweep(&[(1, 20.0), (2, 20.0)]);
        sweep.rows[0].not_set = Some("num_workers was 2".to_owned());
        assert_eq!(sweep.enough(), Some(2));
    }

    #[test]
    fn more_workers_than_the_cpus_allow_are_not_advised() {
        let conclusion = |rates: &[(u32, f64)]| text::conclusion(&sweep(rates));
        assert!(conclusion(&[(1, 10.0), (2, 20.0)]).contains("no knee up to 2 workers: try more"));
        let full = conclusion(&[(2, 20.0), (4, 40.0)]);
        assert!(!full.contains("try more"), "{full}");
        assert!(full.contains("the CPUs allow no more"), "{full}");
        // Workers that sleep leave CPU time for others.
        let mut asleep = sweep(&[(2, 20.0), (4, 40.0)]);
        asleep.rows[1].worker_cpu = Some(0.4);
        assert!(text::conclusion(&asleep).contains("try more"));
    }

    #[test]
    fn more_workers_are_not_advised_where_the_trainer_hardly_waits() {
        let mut sweep = sweep(&[(1, 10.0), (2, 20.0)]);
        for steady in sweep.rows.iter_mut().filter_map(|row| row.steady.as_mut()) {
            steady.wait = Share(0.01);
        }
        let conclusion = text::conclusion(&sweep);
        assert!(
            conclusion.contains("no knee up to 2 workers, and the trainer hardly waits"),
            "{conclusion}"
        );
    }

    #[test]
    fn a_machine_that_others_keep_busy_is_mentioned() {
        let mut found = sweep(&[(1, 10.0), (2, 20.0)]);
        found.rows[1].others_cpu = Some(0.7);
        assert!(!text::conclusion(&found).contains("other programs"));
        found.rows[1].others_cpu = Some(1.8);
        assert!(text::conclusion(&found).contains("other programs used up to 1.8 CPUs"));
    }
}
