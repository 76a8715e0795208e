//! How long each batch of a worker took, from the batch that was in work at each poll.
//!
//! Pure. A batch was begun between the last poll that did not see it and the first that did, and handed over between
//! the last that did and the first that did not: so each load has a lower and an upper bound, without a guess between
//! them.

use std::time::Duration;

use crate::sample::{BatchLoad, Tail, UnderWay, WorkerLoads};
use crate::source::python::BatchInWork;

/// Number of newest loads kept; fewer end between two samples.
const MAX_LOADS: usize = 16;
/// Largest ratio of the upper to the lower bound at which a load is reported: the uncertainty is half of the load then.
const MAX_BOUNDS_RATIO: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct LoadTally {
    last: Option<LoadPoll>,
    /// Start of the batch that was in work at the last poll.
    begun: Option<Begun>,
    ended: Tail<BatchLoad>,
    short: u64,
}

#[derive(Debug, Clone, Copy)]
struct LoadPoll {
    /// When the poll began. A poll takes a little time itself, so what it saw was true after this.
    from: Duration,
    work: Option<BatchInWork>,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    /// `None` if the batch was in work when the worker was first polled.
    after: Option<Duration>,
    by: Duration,
}

impl LoadTally {
    /// Returns the batch in work at the last poll.
    pub(super) fn work(&self) -> Option<BatchInWork> {
        self.last?.work
    }

    /// Records the batch in work at a poll from `from` to `to`, which must be later than all before it. A poll that
    /// failed is omitted, which widens the bounds.
    pub(super) fn poll(&mut self, from: Duration, to: Duration, work: Option<BatchInWork>) {
        let last = self.last.replace(LoadPoll { from, work });
        if let Some(last) = last.filter(|last| last.work != work) {
            self.end(last, to);
        }
        if last.is_none_or(|last| last.work != work) {
            self.begun = work.map(|_| Begun {
                after: last.map(|last| last.from),
                by: to,
            });
        }
    }

    /// Ends the batch of the poll before, which was handed over by `to`.
    fn end(&mut self, last: LoadPoll, to: Duration) {
        let (Some(work), Some(begun)) = (last.work, self.begun) else {
            return;
        };
        // The start of a load that was under way when pipetop attached is unknown.
        let Some(after) = begun.after else { return };
        let load = BatchLoad {
            batch: work.number,
            low_ms: whole_ms(last.from.saturating_sub(begun.by)),
            high_ms: whole_ms(to.saturating_sub(after)).saturating_add(1),
            ended: Some((last.from + to) / 2),
        };
        if load.high_ms > load.low_ms.saturating_mul(MAX_BOUNDS_RATIO) {
            self.short += 1;
            return;
        }
        self.ended.push(load, MAX_LOADS);
    }

    /// Returns what is known so far.
    pub(super) fn loads(&self) -> WorkerLoads {
        let under_way = self.last.zip(self.begun).and_then(|(last, begun)| {
            Some(UnderWay {
                batch: last.work?.number,
                for_ms: whole_ms(last.from.saturating_sub(begun.by)),
            })
        });
        WorkerLoads {
            ended: self.ended.clone(),
            short: self.short,
            under_way,
        }
    }
}

/// Converts to milliseconds, rounded down.
fn whole_ms(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records polls that take 1 ms, at these milliseconds, with the batch in work at each.
    fn seen(polls: &[(u64, Option<u64>)]) -> LoadTally {
        let mut tally = LoadTally::default();
        for (at, number) in polls {
            let work = number.map(|number| BatchInWork { number, epoch: 1 });
            poll(&mut tally, *at, work);
        }
        tally
    }

    fn poll(tally: &mut LoadTally, at: u64, work: Option<BatchInWork>) {
        let from = Duration::from_millis(at);
        tally.poll(from, from + Duration::from_millis(1), work);
    }

    fn timed(tally: &LoadTally) -> Vec<(u64, u32, u32)> {
        let timed = tally.ended.newest.iter();
        timed
            .map(|load| (load.batch, load.low_ms, load.high_ms))
            .collect()
    }

    #[test]
    fn a_load_is_bounded_by_the_polls_around_its_ends() {
        // Begun from 0 to 51 ms, handed over from 450 to 501 ms; a poll may have been right at its start or end.
        let tally = seen(&[
            (0, None),
            (50, Some(3)),
            (250, Some(3)),
            (450, Some(3)),
            (500, None),
        ]);
        assert_eq!(timed(&tally), [(3, 399, 502)]);
    }

    #[test]
    fn one_batch_after_the_other_without_a_pause_are_two() {
        let tally = seen(&[
            (0, Some(2)),
            (50, Some(5)),
            (250, Some(5)),
            (300, Some(8)),
            (900, Some(8)),
            (950, Some(11)),
        ]);
        assert_eq!(timed(&tally), [(5, 199, 302), (8, 599, 702)]);
        assert_eq!(
            tally.loads().under_way,
            Some(UnderWay {
                batch: 11,
                for_ms: 0
            })
        );
    }

    #[test]
    fn a_failed_poll_widens_the_bounds() {
        let tally = seen(&[(0, None), (100, Some(3)), (400, Some(3)), (600, None)]);
        assert_eq!(timed(&tally), [(3, 299, 602)]);
    }

    #[test]
    fn a_number_that_jumps_is_another_batch_and_says_nothing_of_those_between() {
        let tally = seen(&[
            (0, None),
            (50, Some(3)),
            (350, Some(3)),
            (400, Some(900)),
            (700, Some(900)),
            (750, Some(0)),
            (1050, Some(0)),
            (1100, None),
        ]);
        assert_eq!(
            timed(&tally),
            [(3, 299, 402), (900, 299, 402), (0, 299, 402)]
        );
    }

    #[test]
    fn the_same_number_in_another_epoch_is_another_batch() {
        let mut tally = seen(&[(0, None), (50, Some(0)), (350, Some(0))]);
        let next = BatchInWork {
            number: 0,
            epoch: 2,
        };
        poll(&mut tally, 400, Some(next));
        poll(&mut tally, 700, Some(next));
        poll(&mut tally, 750, None);
        assert_eq!(timed(&tally), [(0, 299, 402), (0, 299, 402)]);
    }

    #[test]
    fn a_load_in_progress_has_no_time_or_only_a_minimum() {
        let tally = seen(&[(0, Some(3)), (300, Some(3)), (350, Some(6)), (750, Some(6))]);
        let loads = tally.loads();
        assert_eq!((loads.ended, loads.short), (Tail::default(), 0));
        let under_way = UnderWay {
            batch: 6,
            for_ms: 399,
        };
        assert_eq!(loads.under_way, Some(under_way));
    }

    #[test]
    fn a_load_too_short_to_measure_is_only_counted() {
        // The first from 0 to 102 ms. The second from 49 to 152 ms: the uncertainty is more than half of it.
        let tally = seen(&[
            (0, None),
            (50, Some(1)),
            (100, None),
            (150, Some(2)),
            (200, Some(2)),
            (250, None),
        ]);
        let loads = tally.loads();
        assert_eq!((loads.ended, loads.short), (Tail::default(), 2));
    }

    #[test]
    fn the_newest_loads_are_kept_in_bounded_memory() {
        let polls: Vec<(u64, Option<u64>)> = (0..200).map(|at| (50 * at, Some(at / 6))).collect();
        let tally = seen(&polls);
        let loads = tally.loads().ended;
        assert_eq!((loads.newest.len(), loads.count), (MAX_LOADS, Some(32)));
        assert_eq!(loads.newest.back().map(|load| load.batch), Some(32));
    }
}
