//! Marks: which event happened when, with the evidence in words, in fixed memory.
//!
//! Does not depend on how marks are drawn, and does not judge.

mod checkpoints;
mod epochs;
mod watch;
mod workers;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub(super) use watch::Watch;

/// Maximum number of marks kept.
const MAX_MARKS: usize = 512;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Time since pipetop started.
    pub at: Duration,
    pub kind: MarkKind,
    /// What happened, and the evidence for it.
    pub words: String,
}

impl Mark {
    pub fn new(at: Duration, kind: MarkKind, words: impl Into<String>) -> Self {
        let words = words.into();
        Self { at, kind, words }
    }
}

/// Kinds of events, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkKind {
    /// The job ended.
    JobEnd,
    JobBegin,
    /// The verdict changed its kind or its cause.
    Verdict,
    /// Writing a checkpoint began.
    Checkpoint,
    /// A pass over the training data began.
    Epoch,
    /// A pass over data other than the training data began.
    Validation,
    /// A single worker ended or was replaced.
    Worker,
}

/// Marks, ordered by time.
#[derive(Debug, Clone, Default)]
pub struct Marks(Vec<Mark>);

impl Marks {
    /// Adds a mark. If the list is full, the oldest of the least important marks is removed.
    pub(super) fn add(&mut self, mark: Mark) {
        if self.0.len() == MAX_MARKS {
            // `max_by_key` returns the last of equals: in reverse order, that is the oldest.
            let places = (0..MAX_MARKS).rev();
            if let Some(least) = places.max_by_key(|place| self.0[*place].kind) {
                self.0.remove(least);
            }
        }
        let place = self.0.partition_point(|other| other.at <= mark.at);
        self.0.insert(place, mark);
    }

    /// Returns the marks after `from` and up to `to`, in seconds since pipetop started.
    pub fn between(&self, from: f64, to: f64) -> &[Mark] {
        let place = |at: f64| self.0.partition_point(|mark| mark.at.as_secs_f64() <= at);
        let (first, after) = (place(from), place(to));
        &self.0[first..after.max(first)]
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
