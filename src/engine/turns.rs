//! When the verdict turned: to another kind or cause, for more than a moment.

use std::fmt::Write as _;
use std::time::Duration;

use crate::model::{Mark, MarkKind};
use crate::verdict::{Cause, Kind, Verdict};

/// A verdict that does not hold for so long has not turned.
const HOLDS: Duration = Duration::from_secs(3);

type Said = (Kind, Option<Cause>);

#[derive(Debug, Clone, Default)]
pub(super) struct Turns {
    /// What was said last, for long enough.
    settled: Option<Said>,
    /// What is said instead, since when, and in which words.
    next: Option<(Said, Mark)>,
}

impl Turns {
    /// Takes the next verdict in; gives the mark of a turn once that has held.
    pub(super) fn judged(&mut self, at: Duration, verdict: &Verdict) -> Option<Mark> {
        let said = (verdict.kind, verdict.cause);
        if verdict.kind == Kind::WarmingUp || self.settled == Some(said) {
            self.next = None;
            return None;
        }
        if self.next.as_ref().is_none_or(|(next, _)| *next != said) {
            let words = words(self.settled, verdict);
            let kind = MarkKind::Verdict;
            self.next = Some((said, Mark { at, kind, words }));
        }
        let (_, mark) = self
            .next
            .take_if(|(_, mark)| at.saturating_sub(mark.at) >= HOLDS)?;
        self.settled = Some(said);
        Some(mark)
    }
}

fn words(before: Option<Said>, verdict: &Verdict) -> String {
    let mut words = format!("verdict: {}", verdict.kind.words());
    if let Some(cause) = verdict.cause {
        words.push_str(", ");
        words.push_str(cause.words());
    }
    if let Some(stall) = verdict.stall {
        // Writing to a text does not fail.
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
    fn a_verdict_turns_when_it_holds_and_not_while_warming_up() {
        let mut turns = Turns::default();
        let cause = Some(Cause::Disk);
        let said = |at: u64| match at {
            0..=9 => verdict(Kind::WarmingUp, None),
            // A flicker, in the middle and at the end.
            15 | 30 | 31 => verdict(Kind::Balanced, None),
            10..=39 => verdict(Kind::DataBound, cause),
            _ => verdict(Kind::ComputeBound, None),
        };
        let marks: Vec<_> = (0..60)
            .filter_map(|at| turns.judged(Duration::from_secs(at), &said(at)))
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
