//! The one owner of windows and judge: samples go in, all that is known comes out.
//!
//! Pure: knows no clock, no file and no screen. Live, from a recording or from the past, the same samples give the
//! same state.

mod journal;
mod turns;

use std::time::Duration;

use crate::model::Model;
use crate::report::Report;
use crate::sample::{Gap, Sample};
use crate::verdict::{Judge, Kind, Verdict};
use journal::Journal;
use turns::Turns;

/// Takes samples in, one after the other.
#[derive(Debug, Clone)]
pub struct Engine {
    window: Duration,
    state: State,
    judge: Judge,
    turns: Turns,
    journal: Journal,
}

/// All that is known after a sample.
#[derive(Debug, Clone)]
pub struct State {
    #[doc(hidden)]
    pub model: Model,
    /// `None` before the first sample.
    verdict: Option<Verdict>,
}

impl Engine {
    /// The verdict speaks of the newest `window` of time; with [`Duration::MAX`] of all since the job was first seen.
    pub fn new(window: Duration) -> Self {
        Self {
            window,
            state: State {
                model: Model::new(window),
                verdict: None,
            },
            judge: Judge::new(),
            turns: Turns::default(),
            journal: Journal::default(),
        }
    }

    /// Takes the next sample in.
    pub fn push(&mut self, sample: Sample) -> &State {
        let at = sample.at.since_start;
        let state = &mut self.state;
        state.model.apply(sample);
        let verdict = self.judge.judge(&state.model);
        if let Some(sample) = state.model.sample() {
            self.journal.write(sample, &verdict);
        }
        if state.has_job()
            && let Some(mark) = self.turns.judged(at, &verdict)
        {
            state.model.mark(mark);
        }
        state.verdict = Some(verdict);
        state
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Begins anew: what comes next does not go on from what came before.
    pub fn restart(&mut self) {
        *self = Self::new(self.window);
    }

    /// Forgets what happened: between samples that lie far apart, most is not seen and some is seen wrongly.
    pub(crate) fn forget_marks(&mut self) {
        self.state.model.forget_marks();
    }

    /// Nobody looks at the job's processes any more.
    pub(crate) fn forget_processes(&mut self) {
        self.state.model.forget_processes();
    }
}

impl State {
    /// There are figures of a job.
    pub fn has_job(&self) -> bool {
        let latest = self.model.latest();
        latest.is_some_and(|rates| rates.job.is_some())
    }

    /// The last verdict, on a job or on there being none. `None` before the first sample.
    #[doc(hidden)]
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// The kind of the last verdict; `None` before the first sample.
    pub fn kind(&self) -> Option<Kind> {
        self.verdict().map(|verdict| verdict.kind)
    }

    /// What is known, as every output reads it. `None` before the first sample.
    pub fn report(&self) -> Option<Report> {
        Some(Report::new(&self.model, self.verdict()?))
    }

    /// Seconds since the sample before the newest, and the batches that all ranks took in them. `None` where nothing
    /// counts those of some rank, and of a job that has ended.
    pub fn batches_taken(&self) -> Option<(f64, u64)> {
        let rates = self.model.latest()?;
        let job = rates.job.as_ref().filter(|job| !job.ended)?;
        let batches = job.ranks.iter().map(|rank| rank.step.batches);
        Some((rates.seconds, batches.sum::<Option<u64>>()?))
    }

    /// What the newest sample lacks.
    pub fn gaps(&self) -> &[Gap] {
        self.model.sample().map_or(&[], |sample| &sample.gaps)
    }

    /// How long the job ran when the newest sample was taken. `None` without a job, or where its start cannot be
    /// placed in time.
    pub fn uptime(&self) -> Option<Duration> {
        let sample = self.model.sample()?;
        let started = sample.job.as_ref()?.key.start_ticks;
        let ours = sample.host.boot_ticks_at_start?;
        let per_second = sample.host.ticks_per_second.filter(|ticks| *ticks > 0)?;
        let began = (started as f64 - ours as f64) / per_second as f64;
        Duration::try_from_secs_f64(sample.at.since_start.as_secs_f64() - began).ok()
    }
}
