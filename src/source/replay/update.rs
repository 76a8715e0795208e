//! What is asked of a replay, and what it hands out.

use std::time::Duration;

use super::seek::Seek;
use crate::sample::Sample;

/// What the user can have a replay do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayCommand {
    /// Stand still, or go on.
    Pause,
    Faster,
    Slower,
    Seek(Seek),
}

/// Where a replay is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// From the first sample that is replayed to this one, and to the last.
    pub at: Duration,
    pub of: Duration,
    /// Recorded seconds in a second.
    pub speed: f64,
    pub paused: bool,
    /// There is no sample after this one.
    pub ended: bool,
    /// Between this sample and the one before; `None` at the first.
    pub interval: Option<Duration>,
}

/// What a replay hands out.
#[derive(Debug)]
pub struct ReplayUpdate {
    /// These samples do not go on from those before: what they were taken for is to be forgotten.
    pub anew: bool,
    /// In order; none where only the place has changed.
    pub samples: Vec<Sample>,
    /// So many of the first of them lie far apart: they tell how far the job had come, and make no history.
    pub sparse: usize,
    pub place: Place,
    /// What could not be read, in words.
    pub trouble: Option<String>,
}
