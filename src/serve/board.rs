//! What is known of each watched job and of the machine: samples go in, metrics and reports come out.
//!
//! Shared by the threads that read and those who ask. Knows nothing of threads, files and sockets.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::exposition::Format;
use super::job::{Job, Machine};
use super::metrics::families;
use super::totals::{GpuTotals, Totals, add_gpus};
use crate::engine::{Engine, State};
use crate::report::Report;
use crate::sample::Sample;
use crate::units::ProcessKey;

/// What a verdict speaks of.
const WINDOW: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By the process that stands for each.
    jobs: BTreeMap<ProcessKey, Watched>,
    machine: Option<(Engine, BTreeMap<u32, GpuTotals>)>,
    /// Jobs were looked for.
    searched: bool,
}

#[derive(Debug)]
struct Watched {
    /// What its metrics call it. `None` before its first sample.
    run: Option<String>,
    engine: Engine,
    totals: Totals,
}

impl Known {
    /// What to call a job that says this of itself: two that a scheduler started as one are told apart here.
    fn name(&self, id: &str, job: ProcessKey) -> String {
        let mut others = self.jobs.iter().filter(|(key, _)| **key != job);
        if others.any(|(_, other)| other.run.as_deref() == Some(id)) {
            return format!("{id}-{}-{}", job.pid, job.start_ticks);
        }
        id.to_owned()
    }
}

impl Board {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with a job, or anew with one that has other ranks by now: what was counted of those that stay stays.
    pub(super) fn begin(&self, job: ProcessKey) {
        let mut known = self.known();
        let before = known.jobs.remove(&job);
        let (run, totals) = before.map_or_else(Default::default, |it| (it.run, it.totals));
        let watched = Watched {
            run,
            engine: Engine::new(WINDOW),
            totals,
        };
        known.jobs.insert(job, watched);
    }

    /// Takes a job's sample in. `false` = it has ended, and is known no more.
    pub(super) fn job(&self, job: ProcessKey, sample: Sample) -> bool {
        let mut known = self.known();
        if sample.job.as_ref().is_none_or(|job| job.ended) {
            known.jobs.remove(&job);
            return false;
        }
        let run = sample.job.as_ref().and_then(|job| job.run.as_ref());
        let run = run.map(|run| known.name(&run.id, job));
        if let Some(watched) = known.jobs.get_mut(&job) {
            watched.run = watched.run.take().or(run);
            watched.totals.add(watched.engine.push(sample));
        }
        true
    }

    pub(super) fn forget(&self, job: ProcessKey) {
        self.known().jobs.remove(&job);
    }

    pub(super) fn is_watched(&self, job: ProcessKey) -> bool {
        self.known().jobs.contains_key(&job)
    }

    pub(super) fn machine(&self, sample: Sample) {
        let mut known = self.known();
        let new = || (Engine::new(WINDOW), BTreeMap::new());
        let (engine, gpus) = known.machine.get_or_insert_with(new);
        add_gpus(gpus, engine.push(sample));
    }

    /// Takes in the sample of whoever watches one job, and that alone.
    pub(crate) fn take(&self, sample: &Sample) {
        self.machine(sample.clone());
        self.searched();
        let job = sample.job.as_ref().map(|job| job.key);
        self.known().jobs.retain(|key, _| Some(*key) == job);
        if let Some(job) = job {
            if !self.is_watched(job) {
                self.begin(job);
            }
            self.job(job, sample.clone());
        }
    }

    pub(super) fn searched(&self) {
        self.known().searched = true;
    }

    /// The machine was read, and jobs were looked for.
    pub(super) fn is_ready(&self) -> bool {
        let known = self.known();
        known.searched && known.machine.is_some()
    }

    pub(super) fn metrics(&self, format: Format) -> String {
        let known = self.known();
        let job = |watched: &Watched| {
            let state = watched.engine.state();
            Some(Job {
                run: watched.run.clone()?,
                report: state.report()?,
                totals: watched.totals.clone(),
            })
        };
        let jobs: Vec<Job> = known.jobs.values().filter_map(job).collect();
        let machine = known.machine.as_ref().and_then(|(engine, gpus)| {
            let sample = engine.state().model.sample()?;
            Some(Machine {
                report: engine.state().report()?,
                gpus: gpus.clone(),
                own: sample.own,
                at: sample.at.wall,
            })
        });
        drop(known);
        format.write(&families(&jobs, machine.as_ref()))
    }

    /// What `of` makes of the state of each job.
    pub(crate) fn each<T>(&self, of: impl Fn(&State) -> Option<T>) -> Vec<T> {
        let known = self.known();
        let jobs = known.jobs.values();
        jobs.filter_map(|job| of(job.engine.state())).collect()
    }

    /// The report on each job; on the one of this trainer, where it is named.
    pub(super) fn reports(&self, pid: Option<i32>) -> Vec<Report> {
        let reports = self.each(State::report).into_iter();
        let wanted = |report: &Report| {
            let job = report.job.as_ref();
            job.is_some_and(|job| {
                let mut ranks = job.ranks.iter();
                pid.is_none_or(|pid| ranks.any(|rank| rank.pid.0 == pid))
            })
        };
        reports.filter(wanted).collect()
    }
}
