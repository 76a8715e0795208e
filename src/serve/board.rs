//! The state of each watched job and of the machine: takes samples, returns metrics and reports.
//!
//! Shared by the threads that sample and those that answer requests. Does not start threads or use files and sockets.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use super::exposition::Format;
use super::job::{Job, Machine};
use super::metrics::{METRICS, values};
use super::totals::{GpuTotals, JobTotals, add_gpus};
use crate::background::lock;
use crate::engine::{Engine, State, WINDOW};
use crate::report::Report;
use crate::sample::Sample;
use crate::units::ProcessKey;

#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<BoardState>);

#[derive(Debug, Default)]
struct BoardState {
    /// By the process that represents each job.
    jobs: BTreeMap<ProcessKey, BoardJob>,
    machine: Option<(Engine, BTreeMap<u32, GpuTotals>)>,
    /// The machine was searched for jobs at least once.
    searched: bool,
    /// Number of searches that are running. While one is running, only the jobs that searches find are kept.
    searches: usize,
}

#[derive(Debug)]
struct BoardJob {
    /// Name of the run in its metrics. `None` before its first sample.
    run: Option<String>,
    engine: Engine,
    totals: JobTotals,
}

impl BoardState {
    /// Returns the run name of a job with this ID. Two jobs with the same ID from a scheduler get different names.
    fn name(&self, id: &str, job: ProcessKey) -> String {
        let mut others = self.jobs.iter().filter(|(key, _)| **key != job);
        if others.any(|(_, other)| other.run.as_deref() == Some(id)) {
            return format!("{id}-{}-{}", job.pid, job.start_ticks);
        }
        id.to_owned()
    }
}

impl Board {
    fn known(&self) -> MutexGuard<'_, BoardState> {
        lock(&self.0)
    }

    /// Starts watching a job, or restarts with one whose ranks have changed: the totals of remaining ranks are kept.
    pub(super) fn begin(&self, job: ProcessKey) {
        let mut known = self.known();
        let before = known.jobs.remove(&job);
        let (run, totals) = before.map_or_else(Default::default, |it| (it.run, it.totals));
        let watched = BoardJob {
            run,
            engine: Engine::new(WINDOW),
            totals,
        };
        known.jobs.insert(job, watched);
    }

    /// Adds a sample of a job. Returns `false` if the job has ended; it is then removed.
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

    pub(super) fn search_begins(&self) {
        self.known().searches += 1;
    }

    /// Ends a search. Its jobs are no longer watched, so they are no longer served.
    pub(super) fn search_ends(&self) {
        let mut known = self.known();
        known.searches -= 1;
        if known.searches == 0 {
            known.jobs.clear();
        }
    }

    /// Adds a sample from a screen or a command that watches one job.
    pub(crate) fn take(&self, sample: &Sample) {
        self.machine(sample.clone());
        self.searched();
        if self.known().searches > 0 {
            return;
        }
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

    /// Returns whether the machine was read and searched for jobs.
    pub(super) fn is_ready(&self) -> bool {
        let known = self.known();
        known.searched && known.machine.is_some()
    }

    pub(super) fn metrics(&self, format: Format) -> String {
        let known = self.known();
        let job = |watched: &BoardJob| {
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
        format.write(METRICS, &values(&jobs, machine.as_ref()))
    }

    /// Returns the results of `of` for the state of each job.
    pub(crate) fn each<T>(&self, of: impl Fn(&State) -> Option<T>) -> Vec<T> {
        let known = self.known();
        let jobs = known.jobs.values();
        jobs.filter_map(|job| of(job.engine.state())).collect()
    }

    /// Returns the report on each job, or only on the job with the trainer `pid`.
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
