//! What lies before a moment of a recording or of a job that runs, in few samples: enough for the same verdict there, and quick to read.
//!
//! The last minutes are whole. Before them a sample each of a few groups, the farther back the farther apart: they
//! tell when the job began, how many batches it had taken and when it last took one.

use std::time::Duration;

use crate::record::{RecordError, Samples};
use crate::sample::Sample;

/// What is read whole before a moment: many windows of the verdict.
const WHOLE: Duration = Duration::from_mins(5);
/// Samples of it at most, and bytes of text, whatever the interval and the job's size: what a seek may cost.
const WHOLE_SAMPLES: u64 = 120;
const WHOLE_BYTES: usize = 8 << 20;
/// The verdict's window needs this much in any case.
const WINDOW: Duration = Duration::from_secs(15);

/// The samples to take before and at number `to`, none before `first`; so many of them lie far apart.
///
/// # Errors
/// Where the sample itself cannot be read; what cannot be read before it is left out.
pub fn past(
    recording: &mut Samples,
    first: u64,
    to: u64,
) -> Result<(Vec<Sample>, usize), RecordError> {
    let (sample, mut bytes) = recording.read(to)?;
    let now = sample.at.since_start;
    let mut samples = vec![sample];
    let mut number = to;
    while number > first {
        let Ok((sample, length)) = recording.read(number - 1) else {
            break;
        };
        let age = now.saturating_sub(sample.at.since_start);
        bytes += length;
        let much = to - number >= WHOLE_SAMPLES || bytes > WHOLE_BYTES;
        if age > WHOLE || (much && age > WINDOW) {
            break;
        }
        samples.push(sample);
        number -= 1;
    }
    let whole = samples.len();
    // 1, 2, 4, 8 ... groups before, and the very first.
    let groups: Vec<u64> = recording
        .landmarks()
        .rev()
        .filter(|mark| (first..number).contains(mark))
        .collect();
    let mut marks: Vec<u64> = std::iter::successors(Some(1_usize), |step| step.checked_mul(2))
        .map_while(|step| groups.get(step - 1).copied())
        .collect();
    if number > first && marks.last() != Some(&first) {
        marks.push(first);
    }
    let far = marks
        .into_iter()
        .filter_map(|mark| recording.read(mark).ok());
    let far: Vec<Sample> = far.map(|(sample, _)| sample).collect();
    samples.extend(far);
    samples.reverse();
    let sparse = samples.len() - whole;
    Ok((samples, sparse))
}
