//! What a whole run came to, told once at its end.

use crate::error::Hinted;
use crate::model::Model;
use crate::report;
use crate::sample::{Gap, Sample};
use crate::verdict::{Judge, Kind, Verdict};

/// Everything since the first batch of the job.
#[derive(Debug)]
pub(super) struct Summary {
    model: Model,
    /// Why there was no job, as far as that was seen.
    nothing: Option<Gap>,
    trained: bool,
}

impl Summary {
    pub(super) fn new() -> Self {
        Self {
            model: Model::new(std::time::Duration::MAX),
            nothing: None,
            trained: false,
        }
    }

    pub(super) fn apply(&mut self, sample: &Sample) {
        self.nothing = sample.gaps.iter().find(|gap| gap.source == "job").cloned();
        // What is left after the last job is none.
        if sample.job.is_some() || !self.trained {
            self.model.apply(sample.clone());
        }
        let batches = self.model.progress().batches.unwrap_or_default();
        self.trained |= batches > 0;
    }

    fn verdict(&self) -> Verdict {
        Judge::new().judge(&self.model)
    }

    /// The kind of the verdict. `None` where no training was seen.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.trained.then(|| self.verdict().kind)
    }

    /// A page of text. `None` where no training was seen.
    pub(super) fn text(&self) -> Option<String> {
        let seen = self.trained && self.model.window().is_some();
        seen.then(|| report::text(&self.model, &self.verdict()))
    }

    /// Why there is nothing to say.
    pub(super) fn nothing(&self) -> Hinted {
        if self.trained {
            return Hinted::new(
                "the training ended before it was read twice",
                "run it for longer than two intervals; --interval makes them shorter",
            );
        }
        match &self.nothing {
            Some(gap) => Hinted::new(&gap.reason, &gap.hint),
            None if self
                .model
                .sample()
                .is_some_and(|sample| sample.job.is_some()) =>
            {
                Hinted::new(
                    "no DataLoader was iterated below the command, as far as could be seen",
                    "a loop over anything else can tell of its steps: docs/probe.md",
                )
            }
            None => Hinted::new(
                "the command ended before anything was seen of it",
                "run it for longer; its own output says why it ended",
            ),
        }
    }
}
