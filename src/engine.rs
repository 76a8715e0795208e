//! Owns the windows and the judge: takes samples, returns the state.
//!
//! Reads no clock, file or screen. The same samples result in the same state, whether they come from a live job, a
//! recording or memory.

mod journal;
mod verdict_changes;

use std::time::Duration;

use crate::model::Model;
use crate::report::Report;
use crate::sample::{Gap, Sample};
use crate::verdict::{Judge, Kind, Verdict};
use journal::Journal;
use verdict_changes::VerdictChanges;

/// The time that the verdict on a running job covers.
pub const WINDOW: Duration = Duration::from_secs(10);

/// Takes samples one after the other.
#[derive(Debug, Clone)]
pub struct Engine {
    window: Duration,
    state: State,
    judge: Judge,
    verdict_changes: VerdictChanges,
    journal: Journal,
}

/// The state after a sample.
#[derive(Debug, Clone)]
pub struct State {
    #[doc(hidden)]
    pub model: Model,
    /// `None` before the first sample.
    verdict: Option<Verdict>,
    /// When a job that had not ended was last seen.
    lived: Option<Duration>,
}

impl Engine {
    /// Returns an engine whose verdict covers the newest `window` of time; with [`Duration::MAX`] all time since the
    /// job was first seen.
    pub fn new(window: Duration) -> Self {
        Self {
            window,
            state: State {
                model: Model::new(window),
                verdict: None,
                lived: None,
            },
            judge: Judge::new(),
            verdict_changes: VerdictChanges::default(),
            journal: Journal::default(),
        }
    }

    /// Adds the next sample.
    pub fn push(&mut self, sample: Sample) -> &State {
        let at = sample.at.since_start;
        let state = &mut self.state;
        if sample.job.as_ref().is_some_and(|job| !job.ended) {
            state.lived = Some(at);
        }
        state.model.apply(sample);
        let verdict = self.judge.judge(&state.model);
        if let Some(sample) = state.model.sample() {
            self.journal.write(sample, &verdict);
        }
        if state.has_job()
            && let Some(mark) = self.verdict_changes.update(at, &verdict)
        {
            state.model.mark(mark);
        }
        state.verdict = Some(verdict);
        state
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Resets the engine: the next sample does not continue the previous ones.
    pub fn restart(&mut self) {
        *self = Self::new(self.window);
    }

    /// Drops all marks: between samples that are far apart, most events are missed and some are detected wrongly.
    pub(crate) fn drop_marks(&mut self) {
        self.state.model.drop_marks();
    }

    /// Drops the processes that are needed only for the list of the job's processes, once that list is closed.
    pub(crate) fn drop_processes(&mut self) {
        self.state.model.drop_processes();
    }
}

impl State {
    /// Returns whether there are figures of a job.
    pub fn has_job(&self) -> bool {
        let latest = self.model.latest();
        latest.is_some_and(|rates| rates.job.is_some())
    }

    /// Returns whether there are figures at all: those of the time between two samples.
    pub(crate) fn has_figures(&self) -> bool {
        self.model.latest().or(self.model.window()).is_some()
    }

    /// Returns the last verdict, with or without a job. `None` before the first sample.
    #[doc(hidden)]
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Returns the kind of the last verdict; `None` before the first sample.
    pub fn kind(&self) -> Option<Kind> {
        self.verdict().map(|verdict| verdict.kind)
    }

    /// Returns the report, which every output is based on. `None` before the first sample.
    pub fn report(&self) -> Option<Report> {
        Some(Report::new(&self.model, self.verdict()?))
    }

    /// Returns the seconds between the two newest samples, and the batches that all ranks took in them. `None` if any
    /// rank's batches are not counted, or if the job has ended.
    pub fn batches_taken(&self) -> Option<(f64, u64)> {
        let rates = self.model.latest()?;
        let job = rates.job.as_ref().filter(|job| !job.ended)?;
        let batches = job.ranks.iter().map(|rank| rank.step.batches);
        Some((rates.seconds, batches.sum::<Option<u64>>()?))
    }

    /// Returns the gaps of the newest sample.
    pub fn gaps(&self) -> &[Gap] {
        self.model.sample().map_or(&[], |sample| &sample.gaps)
    }

    /// Returns how long the job had been running at the newest sample, or at the last one before it ended. `None` without
    /// a job, if it was not seen before its end, or if its start cannot be placed in time.
    pub fn uptime(&self) -> Option<Duration> {
        let sample = self.model.sample()?;
        let started = sample.job.as_ref()?.key.start_ticks;
        let ours = sample.host.boot_ticks_at_start?;
        let per_second = sample.host.ticks_per_second.filter(|ticks| *ticks > 0)?;
        let began = (started as f64 - ours as f64) / per_second as f64;
        Duration::try_from_secs_f64(self.lived?.as_secs_f64() - began).ok()
    }
}
