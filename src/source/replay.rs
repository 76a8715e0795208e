//! A recording as a source: its samples at the times at which they were taken, or faster, slower, from elsewhere.
//!
//! Stands in for the sampler. Knows where in the recording it is, and nothing of what the samples mean: whoever
//! takes them begins anew where it is told to. What seeks in a recording seeks in the samples of a job that runs, too.

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
pub use seek::{Seek, Spot};
pub use update::{ReplayCommand, ReplayUpdate};

#[cfg(test)]
pub use update::Place;

/// The numbers of the samples of a window, in times since the first sample of the recording.
///
/// # Errors
/// Where the file is damaged at its ends.
pub fn window(
    recording: &mut Samples,
    from: Option<Duration>,
    to: Option<Duration>,
) -> Result<RangeInclusive<u64>, RecordError> {
    let (begin, _) = recording.span();
    let last = recording.len() - 1;
    let first = match from {
        None => 0,
        Some(from) => {
            let number = recording.at(begin + from)?;
            let (sample, _) = recording.read(number)?;
            // The one at or before is not in the window, unless it is just there.
            let before = sample.at.since_start < begin + from;
            (number + u64::from(before)).min(last)
        }
    };
    let last = match to {
        None => last,
        Some(to) => recording.at(begin + to)?,
    };
    Ok(first..=last.max(first))
}
