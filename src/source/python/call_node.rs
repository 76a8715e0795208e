//! What the stacks so far have shown of one function, called along one path: whether it asks for a batch, and whether a model
//! is trained or run in it.
//!
//! Does not know the other functions, nor how stacks are read.

/// Number of stacks in which a wait, a step and the change from one to the other must each have been seen.
pub(super) const OF_EACH: u32 = 3;
/// Number of stacks of a call that show whether a `for` loop calls it.
pub(super) const FIRST: u32 = 3;
/// A call that hands something over for this share of its time does nothing else worth counting.
const ONLY_HANDS_OVER: f64 = 0.9;
/// A call that its caller keeps something of, and that reads for this part of its time, is made for what it reads.
const READS: f64 = 0.5;
/// A call that runs a model for this part of its time, and not only on its way to a transform, is made for that.
const RUNS_MODEL: f64 = 0.1;
/// A place of a call counts if it was in one of so many of its stacks.
const ONE_OF: u32 = 50;
/// Maximum number of places of one call that are distinguished.
const PLACES: usize = 8;

/// One function, called along one path.
#[derive(Debug, Default)]
pub(super) struct CallNode {
    pub(super) code: usize,
    pub(super) parent: usize,
    pub(super) children: Vec<usize>,
    pub(super) stacks: u32,
    /// Whether it asks for a batch by its kind.
    pub(super) asks: bool,
    /// Number of its first stacks in which the caller took the next item of a `for` loop.
    pub(super) in_for: u32,
    /// Number of its stacks in which something is handed over, of those where that is the next item of a generator or
    /// iterator that it calls, and of those in which a model is trained.
    pub(super) hands_over: u32,
    pub(super) draws: u32,
    pub(super) trains: u32,
    /// Whether a stack showed a layer of a model in it, and number of its stacks in which any model of the framework runs.
    pub(super) runs_layer: bool,
    pub(super) runs_model: u32,
    /// Number of its stacks in which something is read in it that its caller keeps.
    pub(super) brings: u32,
    /// Number of its stacks that showed a loader of PyTorch in it.
    pub(super) pytorch: u32,
    /// The instructions that called it, and how often each was seen.
    pub(super) called_at: Vec<(usize, u32)>,
    /// Number of stacks in the middle of `for` itself, with no Python function called.
    pub(super) iterates: u32,
    /// Number of changes between asking and not asking, and the last state.
    pub(super) turns: u32,
    pub(super) asked: bool,
}

impl CallNode {
    /// Records that it was called by this instruction.
    pub(super) fn called(&mut self, instruction: Option<usize>) {
        let Some(at) = instruction else { return };
        if let Some((_, times)) = self.called_at.iter_mut().find(|(known, _)| *known == at) {
            *times += 1;
        } else if self.called_at.len() < PLACES {
            self.called_at.push((at, 1));
        }
    }

    /// Returns the number of places from which it is called at least `often` times; one if they are not known.
    pub(super) fn places(&self, often: u32) -> usize {
        let known = self.called_at.iter().filter(|(_, times)| *times >= often);
        known.count().max(usize::from(self.stacks >= often))
    }

    /// Whether it asks for a batch by its kind, or a `for` loop calls it for its next item, as it calls `map` and what is
    /// indexed from 0 on, or it hardly does more than take the next item of an iterator. Frames are read one after another,
    /// so a single stack may show a loop that has gone on.
    pub(super) fn asks(&self) -> bool {
        self.asks || 2 * self.in_for > self.stacks.min(FIRST) || self.is_nearly_always(self.draws)
    }

    /// Returns the instructions that called it, without those that a stack shows whose frames are of two moments.
    pub(super) fn called_at(&self) -> impl Iterator<Item = usize> {
        let often = self.stacks / ONE_OF;
        let known = self
            .called_at
            .iter()
            .filter(move |(_, times)| *times >= often);
        known.map(|(instruction, _)| *instruction)
    }

    /// Whether a model is trained or run in it.
    pub(super) fn computes(&self) -> bool {
        self.trains > 0 || self.runs_layer || self.is_at_least(RUNS_MODEL, self.runs_model)
    }

    pub(super) fn is_asking(&self) -> bool {
        !self.computes()
            && (self.asks()
                || self.is_nearly_always(self.hands_over)
                || self.is_at_least(READS, self.brings))
    }

    pub(super) fn is_nearly_always(&self, stacks: u32) -> bool {
        self.is_at_least(ONLY_HANDS_OVER, stacks)
    }

    pub(super) fn is_at_least(&self, share: f64, stacks: u32) -> bool {
        self.stacks >= OF_EACH && f64::from(stacks) >= share * f64::from(self.stacks)
    }
}
