//! Detects checkpoints: the main thread is in a function that saves, or the trainer writes much after it wrote almost
//! nothing.

use std::time::Duration;

use super::{Mark, MarkKind, Marks};
use crate::sample::RankSample;
use crate::units::Bytes;

/// Events that are closer together than this are one checkpoint.
const MIN_GAP: Duration = Duration::from_secs(3);
/// Bytes that must be written in one interval for a checkpoint, and the factor by which they must exceed what the quiet
/// time before would predict.
const MIN_BYTES: u64 = 8 << 20;
const MIN_FACTOR: u64 = 8;
/// Seconds of quiet that must have been seen before.
const MIN_QUIET_SECONDS: f64 = 5.0;

#[derive(Debug, Clone, Default)]
pub(super) struct Checkpoints {
    /// When one was last seen in progress.
    last: Option<Duration>,
    /// Seconds since much was last written, and the bytes written in them.
    quiet: f64,
    written: u64,
}

impl Checkpoints {
    /// Compares two samples of the same rank that are `seconds` apart.
    pub(super) fn apply(
        &mut self,
        at: Duration,
        seconds: f64,
        older: &RankSample,
        newer: &RankSample,
        marks: &mut Marks,
    ) {
        let saved = newer.saving.zip(older.saving);
        let saved = saved.is_some_and(|(newer, older)| newer > older);
        let bytes = |rank: &RankSample| Some(rank.process.io?.write_bytes.0);
        let written = bytes(newer).zip(bytes(older));
        let written = written.and_then(|(newer, older)| newer.checked_sub(older));
        let burst = self.burst(written, seconds);
        let words = if saved {
            "checkpoint: the main thread is in a function that saves".to_owned()
        } else if let Some(burst) = burst {
            format!(
                "checkpoint: the trainer wrote {} within {seconds:.1} s, almost nothing before",
                Bytes(burst)
            )
        } else {
            return;
        };
        let goes_on = self.last.replace(at);
        if goes_on.is_none_or(|last| at.saturating_sub(last) > MIN_GAP) {
            marks.add(Mark::new(at, MarkKind::Checkpoint, words));
        }
    }

    /// Returns the bytes written now if they are many and few were written before.
    fn burst(&mut self, written: Option<u64>, seconds: f64) -> Option<u64> {
        let written = written?;
        let expected = self.written as f64 / self.quiet.max(seconds) * seconds;
        let stands_out = expected * MIN_FACTOR as f64 <= written as f64;
        let burst = written >= MIN_BYTES && self.quiet >= MIN_QUIET_SECONDS && stands_out;
        if written >= MIN_BYTES {
            (self.quiet, self.written) = (0.0, 0);
        } else {
            self.quiet += seconds;
            self.written = self.written.saturating_add(written);
        }
        burst.then_some(written)
    }
}
