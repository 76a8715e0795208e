//! Detects when the verdict changes to another kind or cause for more than a moment.

use std::fmt::Write as _;
use std::time::Duration;

use crate::model::{Mark, MarkKind};
use crate::verdict::{Cause, Kind, Verdict};

/// Minimum time that a new verdict must hold to count as a change.
const MIN_DURATION: Duration = Duration::from_secs(3);

type KindAndCause = (Kind, Option<Cause>);

#[derive(Debug, Clone, Default)]
pub(super) struct VerdictChanges {
    /// The last verdict that held for long enough.
    settled: Option<KindAndCause>,
    /// The newest verdict if it differs from `settled`, and the mark with its start and words.
    next: Option<(KindAndCause, Mark)>,
}

impl VerdictChanges {
    /// Adds the next verdict. Returns the mark of a change once the change has held for long enough.
    pub(super) fn update(&mut self, at: Duration, verdict: &Verdict) -> Option<Mark> {
        let current = (verdict.kind, verdict.cause);
        if verdict.kind == Kind::WarmingUp || self.settled == Some(current) {
            self.next = None;
            return None;
        }
        if self.next.as_ref().is_none_or(|(next, _)| *next != current) {
            let words = words(self.settled, verdict);
            let kind = MarkKind::Verdict;
            self.next = Some((current, Mark { at, kind, words }));
        }
        let (_, mark) = self
            .next
            .take_if(|(_, mark)| at.saturating_sub(mark.at) >= MIN_DURATION)?;
        self.settled = Some(current);
        Some(mark)
    }
}

fn words(before: Option<KindAndCause>, verdict: &Verdict) -> String {
    let mut words = format!("verdict: {}", verdict.kind.words());
    if let Some(cause) = verdict.cause {
        words.push_str(", ");
        words.push_str(cause.words());
    }
    if let Some(stall) = verdict.stall {
        // Writing to a string does not fail.
        let _ = write!(words, ", {} lost", stall.share);
    }
    if let Some((kind, _)) = before.filter(|(kind, _)| *kind != verdict.kind) {
        words.push_str(", before ");
        words.push_str(kind.words());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Progress;
    use crate::verdict::assess;

    fn verdict(kind: Kind, cause: Option<Cause>) -> Verdict {
        Verdict {
            kind,
            cause,
            ..assess(None, &Progress::default(), &[])
        }
    }

    #[test]
    fn a_verdict_change_must_last_and_is_ignored_while_warming_up() {
        let mut verdict_changes = VerdictChanges::default();
        let cause = Some(Cause::Disk);
        let said = |at: u64| match at {
            0..=9 => verdict(Kind::WarmingUp, None),
            // Short changes, in the middle and at the end.
            15 | 30 | 31 => verdict(Kind::Balanced, None),
            10..=39 => verdict(Kind::DataBound, cause),
            _ => verdict(Kind::ComputeBound, None),
        };
        let marks: Vec<_> = (0..60)
            .filter_map(|at| verdict_changes.update(Duration::from_secs(at), &said(at)))
            .map(|mark| (mark.at.as_secs(), mark.words))
            .collect();
        assert_eq!(
            marks,
            [
                (10, "verdict: DATA-BOUND, disk".to_owned()),
                (40, "verdict: COMPUTE-BOUND, before DATA-BOUND".to_owned())
            ]
        );
    }
}
