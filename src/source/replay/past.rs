//! The samples before a point of a recording or of a running job, thinned out: enough for the same verdict there, and
//! quick to read.
//!
//! The last minutes are complete. Before them there is one sample from each of a few groups, at growing distances: they
//! show when the job began, how many batches it had taken and when it last took one.

use std::time::Duration;

use crate::record::{RecordError, Samples};
use crate::sample::Sample;

/// The time before the point that is read completely: many windows of the verdict.
const WHOLE: Duration = Duration::from_mins(5);
/// Maximum number of samples, and of bytes of text, read completely, for any interval and job size: bounds the cost of
/// a seek.
const WHOLE_SAMPLES: u64 = 120;
const WHOLE_BYTES: usize = 8 << 20;
/// Time before the point that is always read completely: the verdict's window needs it.
const WINDOW: Duration = Duration::from_secs(15);

/// Returns the samples before and at number `to`, from `first` on, and how many of them are sparse.
///
/// # Errors
/// Returns an error if sample `to` cannot be read; unreadable samples before it are skipped.
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
    // 1, 2, 4, 8 ... groups before, and the very first sample.
    let groups: Vec<u64> = recording
        .group_starts()
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
