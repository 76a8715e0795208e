//! Checkpoints: the main thread is in a function that saves, or the trainer writes much after it wrote
//! next to nothing.

use std::time::Duration;

use super::{Mark, MarkKind, Marks};
use crate::sample::RankSample;
use crate::units::Bytes;

/// What happens so soon after another is one with it.
const APART: Duration = Duration::from_secs(3);
/// Bytes in one interval that are a checkpoint at least, and the part of them that may have been written in the
/// quiet time before.
const MUCH: u64 = 8 << 20;
const NEXT_TO_NOTHING: u64 = 8;
/// Seconds of quiet that must have been seen before.
const QUIET: f64 = 5.0;

#[derive(Debug, Clone, Default)]
pub(super) struct Checkpoints {
    /// When one was last under way.
    last: Option<Duration>,
    /// Seconds seen since much was last written, and bytes written in them.
    quiet: f64,
    written: u64,
}

impl Checkpoints {
    /// Both are of the same rank, `seconds` apart.
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
        if goes_on.is_none_or(|last| at.saturating_sub(last) > APART) {
            marks.add(Mark {
                at,
                kind: MarkKind::Checkpoint,
                words,
            });
        }
    }

    /// Much was written now, and not before.
    fn burst(&mut self, written: Option<u64>, seconds: f64) -> Option<u64> {
        let written = written?;
        let expected = self.written as f64 / self.quiet.max(seconds) * seconds;
        let stands_out = expected * NEXT_TO_NOTHING as f64 <= written as f64;
        let burst = written >= MUCH && self.quiet >= QUIET && stands_out;
        if written >= MUCH {
            (self.quiet, self.written) = (0.0, 0);
        } else {
            self.quiet += seconds;
            self.written = self.written.saturating_add(written);
        }
        burst.then_some(written)
    }
}
