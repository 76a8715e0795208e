//! The position among replayed samples. Not part of a sample.

use std::time::Duration;

/// The position of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ReplayPosition {
    /// Time from the first replayed sample to this one, and to the last.
    pub at: Duration,
    pub of: Duration,
    /// Recorded seconds per second.
    pub speed: f64,
    pub paused: bool,
    /// Whether there is no sample after this one.
    pub ended: bool,
    /// Time between the previous sample and this one; `None` at the first.
    pub interval: Option<Duration>,
}
