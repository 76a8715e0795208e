//! What a whole run came to, told once at its end.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::Hinted;
use crate::model::Model;
use crate::report;
use crate::sample::{Gap, Sample};
use crate::verdict::{Judge, Kind, Verdict};

/// Samples that may yet turn out to be of the job's end, when its workers are gone and it still lives.
const LAST: usize = 3;

/// Everything since the first batch of the job.
#[derive(Debug)]
pub(super) struct Summary {
    model: Model,
    last: VecDeque<Sample>,
    /// Why there was no job, as far as that was seen.
    nothing: Option<Gap>,
    /// There was a job.
    seen: bool,
}

impl Summary {
    pub(super) fn new() -> Self {
        Self {
            model: Model::new(Duration::MAX),
            last: VecDeque::with_capacity(LAST),
            nothing: None,
            seen: false,
        }
    }

    pub(super) fn apply(&mut self, sample: &Sample) {
        self.nothing = sample.gaps.iter().find(|gap| gap.source == "job").cloned();
        let trains = sample.job.as_ref().is_some_and(|job| !job.ended);
        self.seen |= trains;
        // What is left after the last job is none.
        if self.seen && !trains {
            return;
        }
        if self.last.len() == LAST
            && let Some(before) = self.last.pop_front()
        {
            self.model.apply(before);
        }
        self.last.push_back(sample.clone());
    }

    /// Takes in what is left, but for what comes after the workers' end: figures are those of the training.
    pub(super) fn close(&mut self) {
        let mut most = self.model.sample().map_or(0, workers);
        for sample in std::mem::take(&mut self.last) {
            if workers(&sample) < most {
                break;
            }
            most = workers(&sample);
            self.model.apply(sample);
        }
    }

    fn verdict(&self) -> Verdict {
        Judge::new().judge(&self.model)
    }

    /// It took batches. Asked for once it is closed.
    fn trained(&self) -> bool {
        let batches = self.model.progress().batches;
        batches.is_some_and(|batches| batches > 0)
    }

    /// The kind of the verdict. `None` where no training was seen.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.trained().then(|| self.verdict().kind)
    }

    /// A page of text, or a document. `None` where no training was seen.
    pub(super) fn page(&self, json: bool) -> Option<String> {
        let seen = self.trained() && self.model.window().is_some();
        let verdict = seen.then(|| self.verdict())?;
        Some(if json {
            format!("{:#}\n", report::json(&self.model, &verdict))
        } else {
            report::text(&self.model, &verdict)
        })
    }

    /// Why there is nothing to say.
    pub(super) fn nothing(&self) -> Hinted {
        if self.trained() {
            return Hinted::new(
                "the training ended before it was read twice",
                "run it for longer than two intervals; --interval makes them shorter",
            );
        }
        match &self.nothing {
            Some(gap) => Hinted::new(&gap.reason, &gap.hint),
            None if self.seen => Hinted::new(
                "no DataLoader was iterated below the command, as far as could be seen",
                "a loop over anything else can tell of its steps: docs/probe.md",
            ),
            None => Hinted::new(
                "the command ended before anything was seen of it",
                "run it for longer; its own output says why it ended",
            ),
        }
    }
}

fn workers(sample: &Sample) -> usize {
    let ranks = sample.job.iter().flat_map(|job| &job.ranks);
    let loaders = ranks.flat_map(|rank| &rank.loaders);
    loaders.map(|loader| loader.workers.len()).sum()
}
