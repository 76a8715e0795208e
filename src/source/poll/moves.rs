//! When a trainer's datasets yielded batches: whether they still do, and whether a pass through them is short.

use std::time::Duration;

/// Without a batch for this many times the usual time between two, and for `MIN_IDLE`, no dataset yields any more.
const IDLE_FACTOR: u32 = 3;
const MIN_IDLE: Duration = Duration::from_millis(300);
/// Number of times that batches were yielded after which the average is long enough to be used.
const SETTLED: u32 = 8;
/// A pass that takes less than this is short.
const SHORT_PASS: Duration = Duration::from_secs(2);

/// When batches were yielded.
#[derive(Debug, Default)]
pub(super) struct Moves {
    now: Duration,
    last: Option<Duration>,
    /// Average time between two batches, over the newest; too short until some were seen.
    usual: Duration,
    times: u32,
    /// When the newest pass began.
    began: Option<Duration>,
    /// How long the pass before it took.
    pass: Option<Duration>,
}

impl Moves {
    /// Sets the time of the calls that follow.
    pub(super) fn at(&mut self, now: Duration) {
        self.now = now;
    }

    /// Returns when the newest batch was seen, if that was after this time.
    pub(super) fn since(&self, from: Duration) -> Option<Duration> {
        self.last.filter(|last| *last > from)
    }

    /// Records that the next pass has begun.
    pub(super) fn next_pass(&mut self) {
        let before = self.began.replace(self.now);
        self.pass = before.map(|began| self.now.saturating_sub(began));
    }

    pub(super) fn has_short_passes(&self) -> bool {
        self.pass.is_some_and(|pass| pass < SHORT_PASS)
    }

    /// Records that this many batches, at least one, were yielded since the last time.
    pub(super) fn moved(&mut self, batches: u64) {
        let pause = self
            .last
            .map_or(Duration::ZERO, |last| self.now.saturating_sub(last));
        let of_one = pause / u32::try_from(batches.max(1)).unwrap_or(u32::MAX);
        self.usual = (7 * self.usual + of_one) / 8;
        self.times = self.times.saturating_add(1);
        self.last = Some(self.now);
    }

    /// Returns when the last batch was yielded; `None` while batches are yielded as usual.
    pub(super) fn idle_since(&self) -> Option<Duration> {
        let last = self.last?;
        let least = (IDLE_FACTOR * self.usual).max(MIN_IDLE);
        (self.now.saturating_sub(last) >= least).then_some(last)
    }

    /// Whether no batch has come for so long that a step would be over.
    pub(super) fn stand_still(&self) -> bool {
        self.times >= SETTLED && self.idle_since().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_steps_are_no_standstill_before_their_time_is_known() {
        let mut moves = Moves::default();
        let mut stands = |at| {
            moves.at(Duration::from_secs(at));
            let stands = moves.stand_still();
            moves.moved(1);
            stands
        };
        let each = (1..=20).map(|batch| stands(4 * batch));
        assert_eq!(each.filter(|stands| *stands).count(), 0);
        assert!(stands(100));
    }

    #[test]
    fn passes_are_short_by_the_newest_that_was_seen_whole() {
        let mut moves = Moves::default();
        let mut short = |at| {
            moves.at(Duration::from_millis(at));
            moves.next_pass();
            moves.has_short_passes()
        };
        assert_eq!(
            [4000, 4500, 9000, 10_000].map(&mut short),
            [false, true, false, true]
        );
    }

    #[test]
    fn batches_that_are_read_many_at_a_time_are_usual_one_by_one() {
        let mut moves = Moves::default();
        let at = |moves: &mut Moves, millis| moves.at(Duration::from_millis(millis));
        for read in 0..100 {
            at(&mut moves, read * 200);
            moves.moved(4);
        }
        let last = 99 * 200;
        at(&mut moves, last + 290);
        assert_eq!(moves.idle_since(), None);
        at(&mut moves, last + 310);
        assert_eq!(moves.idle_since(), Some(Duration::from_millis(last)));
    }
}
