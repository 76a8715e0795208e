//! A recording as a source: plays its samples at the times at which they were taken, or faster, slower, or from another
//! position.
//!
//! Replaces the sampler. Must not depend on what the samples mean: their reader starts again at each jump. The same
//! code seeks in the samples of a running job.

mod past;
mod player;
mod seek;
mod update;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::record::{RecordError, Samples};

pub use past::past;
pub use player::Player;
pub use seek::{Position, Seek};
pub use update::{ReplayCommand, ReplayUpdate};

/// Leaves out what cannot be read at the start of a window; `None` if nothing in it can be read.
pub fn readable(
    recording: &mut Samples,
    numbers: RangeInclusive<u64>,
) -> Option<RangeInclusive<u64>> {
    let (mut first, last) = numbers.into_inner();
    while recording.read(first).is_err() {
        first = recording.next_group_after(first)?;
        if first > last {
            return None;
        }
    }
    Some(first..=last)
}

/// Returns the numbers of the samples of a window, given as times since the first sample of the recording. A sample
/// that is at most `late` after its end belongs to it: each comes a little after it is due.
///
/// # Errors
/// Returns an error if the file is damaged at the ends of the window.
pub fn window(
    recording: &mut Samples,
    from: Option<Duration>,
    to: Option<Duration>,
    late: Duration,
) -> Result<RangeInclusive<u64>, RecordError> {
    let (begin, _) = recording.span();
    let last = recording.len() - 1;
    let first = match from {
        None => 0,
        Some(from) => {
            let number = recording.at(begin + from)?;
            let (sample, _) = recording.read(number)?;
            // The sample at or before `from` is not in the window, unless it is exactly at `from`.
            let before = sample.at.since_start < begin + from;
            (number + u64::from(before)).min(last)
        }
    };
    let last = match to {
        None => last,
        Some(to) => recording.at(begin + to + late)?,
    };
    Ok(first..=last.max(first))
}
