//! What happened when: marks on the axis of time, each with the evidence in words, in fixed memory.
//!
//! Knows nothing of how they are drawn, and judges nothing.

mod checkpoints;
mod epochs;
mod watch;
mod workers;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub(super) use watch::Watch;

/// Marks that are kept.
const MOST: usize = 512;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Since pipetop started.
    pub at: Duration,
    pub kind: MarkKind,
    /// What happened, and what tells so.
    pub words: String,
}

/// The most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MarkKind {
    /// The job came to its end.
    JobEnd,
    JobBegin,
    /// The verdict changed its kind or its cause.
    Verdict,
    /// A checkpoint was begun to be written.
    Checkpoint,
    /// A pass over the training data began.
    Epoch,
    /// Data other than that of training began to be gone through.
    Validation,
    /// A single worker ended or was made anew.
    Worker,
}

impl MarkKind {
    pub const ALL: [Self; 7] = [
        Self::JobBegin,
        Self::Epoch,
        Self::Validation,
        Self::Checkpoint,
        Self::Worker,
        Self::Verdict,
        Self::JobEnd,
    ];
}

/// By time.
#[derive(Debug, Clone, Default)]
pub struct Marks(Vec<Mark>);

impl Marks {
    /// Where there is no room, the oldest of the least important goes.
    pub(super) fn add(&mut self, mark: Mark) {
        if self.0.len() == MOST {
            // `max_by_key` takes the last of equals: reversed, that is the oldest.
            let places = (0..MOST).rev();
            if let Some(least) = places.max_by_key(|place| self.0[*place].kind) {
                self.0.remove(least);
            }
        }
        let place = self.0.partition_point(|other| other.at <= mark.at);
        self.0.insert(place, mark);
    }

    /// Those after `from` and up to `to`, in seconds since pipetop started.
    pub fn between(&self, from: f64, to: f64) -> &[Mark] {
        let place = |at: f64| self.0.partition_point(|mark| mark.at.as_secs_f64() <= at);
        let (first, after) = (place(from), place(to));
        &self.0[first..after.max(first)]
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
