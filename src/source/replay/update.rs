//! The commands of a replay, and its output.

use super::seek::Seek;
use crate::sample::{ReplayPosition, Sample};

/// What the user can do with a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayCommand {
    /// Pauses, or continues.
    Pause,
    Faster,
    Slower,
    Seek(Seek),
}

/// Output of a replay.
#[derive(Debug)]
pub struct ReplayUpdate {
    /// Whether these samples do not follow those before, so that everything computed from those must be dropped.
    pub restart: bool,
    /// In order; empty if only the position has changed.
    pub samples: Vec<Sample>,
    /// How many of the first samples are far apart: they show the job's progress, but are not part of the history.
    pub sparse: usize,
    pub place: ReplayPosition,
    /// Message about what could not be read.
    pub trouble: Option<String>,
}
