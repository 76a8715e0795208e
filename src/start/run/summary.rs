//! The result of a whole run, printed once at its end.

use std::collections::VecDeque;
use std::time::Duration;

use crate::engine::Engine;
use crate::error::Hinted;
use crate::report::Report;
use crate::sample::{Gap, Sample};
use crate::verdict::Kind;

/// Number of newest samples that are held back: they may turn out to be from the end of the job, when its workers are
/// gone but it still runs.
const LAST: usize = 3;

/// All samples since the first batch of the job.
#[derive(Debug)]
pub(super) struct Summary {
    engine: Engine,
    last: VecDeque<Sample>,
    /// Why no job was found, if known.
    nothing: Option<Gap>,
    /// Whether there was a job.
    seen: bool,
    /// Whether the job has reported steps.
    stepped: bool,
}

impl Summary {
    pub(super) fn new() -> Self {
        Self {
            engine: Engine::new(Duration::MAX),
            last: VecDeque::with_capacity(LAST),
            nothing: None,
            seen: false,
            stepped: false,
        }
    }

    pub(super) fn apply(&mut self, sample: &Sample) {
        self.nothing = sample.gaps.iter().find(|gap| gap.source == "job").cloned();
        let trains = sample.job.as_ref().is_some_and(|job| !job.ended);
        self.seen |= trains;
        let ranks = sample.ranks().iter();
        self.stepped |= ranks
            .flat_map(|rank| &rank.reported)
            .any(|reported| reported.steps > 0);
        // After the last job, samples without one are dropped.
        if self.seen && !trains {
            return;
        }
        if self.last.len() == LAST
            && let Some(before) = self.last.pop_front()
        {
            self.engine.push(before);
        }
        self.last.push_back(sample.clone());
    }

    /// Adds the samples held back, except those after the end of the workers, so that the figures cover only the
    /// training.
    pub(super) fn close(&mut self) {
        let mut most = self
            .engine
            .state()
            .model
            .sample()
            .map_or(0, Sample::workers);
        for sample in std::mem::take(&mut self.last) {
            if sample.workers() < most {
                break;
            }
            most = sample.workers();
            self.engine.push(sample);
        }
    }

    /// Whether the job took batches. Valid after [`Self::close`].
    fn trained(&self) -> bool {
        let batches = self.engine.state().model.progress().batches;
        batches.is_some_and(|batches| batches > 0)
    }

    /// Returns the kind of the verdict. `None` if no training was seen.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.engine.state().kind().filter(|_| self.trained())
    }

    /// Returns the report on the whole run. `None` if no training was seen.
    pub(super) fn report(&self) -> Option<Report> {
        let state = self.engine.state();
        let seen = self.trained() && state.model.window().is_some();
        state.report().filter(|_| seen)
    }

    /// Returns why there is no report.
    pub(super) fn nothing(&self) -> Hinted {
        if self.stepped || self.trained() {
            return Hinted::new(
                "the training ended before the second sample",
                "run it for more than two intervals, or use a shorter --interval",
            );
        }
        match &self.nothing {
            Some(gap) => Hinted::new(&gap.reason, &gap.hint),
            None if self.seen => Hinted::new(
                "the command did not iterate over a DataLoader, as far as pipetop could see",
                "any other loop can report its steps: see docs/probe.md",
            ),
            None => Hinted::new(
                "the command ended too soon to see anything",
                "see its output for the reason, or run it for longer",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Reported;
    use crate::sample::literals::{first_rank, training};

    #[test]
    fn a_training_that_ends_at_once_was_not_without_a_loader() {
        let mut summary = Summary::new();
        let mut sample = training(1.0);
        first_rank(&mut sample).reported = Some(Reported {
            steps: 30,
            ..Reported::default()
        });
        summary.apply(&sample);
        summary.close();
        assert!(summary.report().is_none());
        let said = summary.nothing().message;
        assert_eq!(said, "the training ended before the second sample");
    }
}
