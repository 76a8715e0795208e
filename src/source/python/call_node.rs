//! What the stacks so far have shown of one function that is reached along one path of calls: whether it asks for a
//! batch, and whether a model is trained or run in it.
//!
//! Does not know the other functions, nor how stacks are read.

/// A wait, a step and the change from one to the other must each have been seen in this many stacks.
pub(super) const OF_EACH: u32 = 3;
/// Number of a call's first stacks, which decide whether a `for` loop calls it.
pub(super) const FIRST: u32 = 3;
/// A call that hands something over for this share of its time does nothing else worth counting.
const ONLY_HANDS_OVER: f64 = 0.9;
/// A call that spends this share of its time reading something that its caller keeps, making samples, or building what a
/// model gets, is made for that.
const READS: f64 = 0.5;
/// A call that spends this share of its time in a model, and not in a transform called through it, is made to run the
/// model.
const RUNS_MODEL: f64 = 0.1;
/// A place from which a call is made counts if at least one in this many of the call's stacks shows it.
pub(super) const ONE_OF: u32 = 50;
/// Maximum number of places remembered from which one call is made.
const PLACES: usize = 8;

/// One function, called along one path.
#[derive(Debug, Default)]
pub(super) struct CallNode {
    pub(super) code: usize,
    pub(super) parent: usize,
    pub(super) children: Vec<usize>,
    pub(super) stacks: u32,
    /// Whether it gives items by its kind: it is an iterator's or a generator's function.
    pub(super) asks: bool,
    /// Number of its first stacks in which the caller took the next item of a `for` loop.
    pub(super) in_for: u32,
    /// Number of its stacks in which something is handed over.
    pub(super) hands_over: u32,
    /// Number of those in which the handover is inside a generator or iterator that it calls.
    pub(super) draws: u32,
    /// Number of its stacks in which a model is trained.
    pub(super) trains: u32,
    /// Whether a stack showed a layer of a model in it.
    pub(super) runs_layer: bool,
    /// Number of its stacks in which a module of the framework runs and calls no transform.
    pub(super) runs_model: u32,
    /// Number of its stacks in which it reads something that its caller keeps.
    pub(super) brings: u32,
    /// Number of its stacks in which it builds something that a model which its caller runs may use.
    pub(super) feeds: u32,
    /// Number of its stacks in which a library reads or transforms samples, in a thread that trains without a loader of
    /// PyTorch.
    pub(super) makes_samples: u32,
    /// Number of its stacks that showed a loader of PyTorch in it.
    pub(super) pytorch: u32,
    /// The instructions that called it, and how often each was seen.
    pub(super) called_at: Vec<(usize, u32)>,
    /// Number of stacks in which it takes the next item of a `for` loop and calls no Python function for it.
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

    /// Whether it asks for a batch: by its kind, because a `for` loop calls it for its next item (as with `map`, and
    /// with objects that are indexed from 0), because it does little else than take the next item of an iterator, or
    /// because it makes the batch from samples.
    /// Most of its first stacks must show the `for` loop: frames are read one after another, so a single stack may show
    /// a loop that has already gone on.
    pub(super) fn asks(&self) -> bool {
        self.gives_items() || self.is_at_least(READS, self.makes_samples)
    }

    /// Whether it asks for a batch only because it makes one from samples.
    pub(super) fn only_makes_samples(&self) -> bool {
        self.asks() && !self.gives_items()
    }

    fn gives_items(&self) -> bool {
        self.is_iterator() || self.is_nearly_always(self.draws)
    }

    /// Whether it is an iterator's function, by its kind or because a `for` loop calls it for its next item.
    pub(super) fn is_iterator(&self) -> bool {
        self.asks || 2 * self.in_for > self.stacks.min(FIRST)
    }

    /// Returns the instructions that called it, without rare ones: those are from stacks whose frames were read at
    /// different moments.
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
        self.trains() || self.runs_model()
    }

    pub(super) fn trains(&self) -> bool {
        self.trains > 0
    }

    pub(super) fn runs_model(&self) -> bool {
        self.runs_layer || self.is_at_least(RUNS_MODEL, self.runs_model)
    }

    pub(super) fn only_runs_model(&self) -> bool {
        self.runs_model() && !self.trains()
    }

    pub(super) fn is_asking(&self) -> bool {
        !self.computes()
            && (self.asks()
                || self.is_nearly_always(self.hands_over)
                || self.is_at_least(READS, self.brings)
                || self.feeds())
    }

    /// Whether it is made to build what a model gets.
    pub(super) fn feeds(&self) -> bool {
        self.is_at_least(READS, self.feeds)
    }

    /// Whether it asks for a batch only because it builds what a model gets.
    pub(super) fn only_feeds(&self) -> bool {
        let shown = self.is_nearly_always(self.hands_over) || self.is_at_least(READS, self.brings);
        self.feeds() && !(self.asks() || shown)
    }

    /// Whether what it gives is known to be for a model.
    pub(super) fn is_known_to_ask(&self) -> bool {
        self.asks() || self.feeds()
    }

    pub(super) fn is_nearly_always(&self, stacks: u32) -> bool {
        self.is_at_least(ONLY_HANDS_OVER, stacks)
    }

    pub(super) fn is_at_least(&self, share: f64, stacks: u32) -> bool {
        self.stacks >= OF_EACH && f64::from(stacks) >= share * f64::from(self.stacks)
    }
}
