//! Decides from many polls whether a queue feeds the main thread, and whether it does so ahead of time.
//!
//! If the main thread holds an object soon after it left a queue, the main thread took it. A queue that the main thread
//! fills, that only other threads empty, or whose objects go on into another queue does not feed the main thread. Pure:
//! objects are numbers. Does not depend on how they are read.

use std::collections::{HashSet, VecDeque};

/// Minimum number of pieces of evidence for a result.
const MIN_EVIDENCE: u32 = 4;
/// Number of pieces of evidence at which the counts are halved, so that older ones count less.
const REMEMBERED: u32 = 40;
/// Batches are made ahead of time if at least this share of the objects taken were ready before.
const MIN_READY: f64 = 0.9;
/// A queue feeds the main thread if at least this share of the objects taken from it came to the main thread.
const MIN_HELD: f64 = 0.7;
/// Evidence that may be chance if it is seen once counts from this number of times on.
const MIN_REPEATS: u32 = 2;
/// If at least this share of the objects that came to the main thread also came from a queue nearer to it, the nearer
/// queue feeds it.
const BEFORE_ANOTHER: f64 = 0.15;
/// A loader may hold a batch back until this many later ones were taken.
const UNDER_WAY: usize = 3;

/// The state of a queue at one poll.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct QueuePoll {
    /// Number of objects ever taken out of the queue.
    pub(super) taken: u64,
    /// Number of objects in the queue.
    pub(super) len: u64,
    /// The first and the last objects in the queue.
    pub(super) objects: Vec<usize>,
    /// What the main thread may hold of each of the first objects: the object itself, a part of it, or its result.
    pub(super) parts: Vec<Vec<usize>>,
    /// Whether the queue holds orders, such as futures, rather than finished objects: an object in it need not be
    /// ready.
    pub(super) ordered: bool,
}

/// The evidence of all polls of one queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Supply {
    before: Option<QueuePoll>,
    /// Objects that were taken from the queue and have not been seen at the main thread yet.
    under_way: VecDeque<Vec<usize>>,
    taken: u32,
    ready: u32,
    held: u32,
    missed: u32,
    /// Number of objects that the main thread held while they were still in the queue, which shows that it puts objects
    /// there. One may be chance: all users of a small number share one object.
    put: u32,
    /// The last of these objects.
    last_put: Option<usize>,
    /// Polls at which an object that came to the main thread had also been in a queue nearer to it.
    passed_on: u32,
    /// Polls at which the main thread was in the queue's own `get`.
    pub(super) main_gets: u32,
    /// Polls at which another thread was in the queue's own `get`.
    other_gets: u32,
    /// Number of consecutive polls of all other threads at which only threads that fill this queue held it.
    left_to_main: u32,
}

impl Supply {
    /// Records a poll of the queue while the main thread holds `held`. Returns the objects that have come from this
    /// queue to the main thread since the poll before.
    pub(super) fn poll(&mut self, mut poll: QueuePoll, held: &HashSet<usize>) -> Vec<usize> {
        let is_held = |objects: &[usize]| objects.iter().any(|object| held.contains(object));
        let mut objects = poll.objects.iter().filter(|_| !poll.ordered);
        if let Some(put) = objects.find(|object| held.contains(object))
            && self.last_put != Some(*put)
        {
            self.last_put = Some(*put);
            self.put = self.put.saturating_add(1);
        }
        // An object that the main thread already holds cannot show later that it was taken.
        for parts in &mut poll.parts {
            parts.retain(|part| !held.contains(part));
        }
        if let Some(before) = self
            .before
            .take()
            .filter(|before| poll.taken > before.taken)
        {
            let now = poll.taken - before.taken;
            // If more were taken than are known from the poll before, the main thread holds at most the last of them,
            // which is unknown.
            let many = usize::try_from(now).map_or(true, |now| now > before.parts.len());
            let first = before.parts.into_iter();
            let gone = first.take(usize::try_from(now).unwrap_or(usize::MAX));
            let gone: Vec<usize> = gone.flatten().collect();
            // If more were taken than were in the queue before, all count as ready if some were there at both polls.
            let all_there = before.len >= now || before.len.min(poll.len) > 0;
            let ready = if poll.ordered {
                is_held(&gone)
            } else {
                all_there
            };
            self.forget();
            self.taken += 1;
            self.ready += u32::from(ready);
            if !gone.is_empty() && !many {
                self.under_way.push_back(gone);
            }
        }
        let mut arrived = Vec::new();
        self.under_way.retain(|parts| {
            let before = arrived.len();
            arrived.extend(parts.iter().copied().filter(|part| held.contains(part)));
            arrived.len() == before
        });
        self.held += u32::from(!arrived.is_empty());
        while self.under_way.len() > UNDER_WAY {
            self.under_way.pop_front();
            self.missed += 1;
        }
        self.before = Some(poll);
        arrived
    }

    /// Records that an object of this queue came to the main thread through a queue nearer to it: this queue only feeds
    /// that one.
    pub(super) fn count_passed_on(&mut self) {
        self.passed_on = self.passed_on.saturating_add(1);
    }

    /// Forgets what `count_passed_on` recorded, because a queue nearer to the main thread turned out not to feed it.
    pub(super) fn reset_passed_on(&mut self) {
        self.passed_on = 0;
    }

    pub(super) fn count_main_get(&mut self) {
        self.main_gets = self.main_gets.saturating_add(1);
    }

    pub(super) fn count_other_get(&mut self) {
        self.other_gets = self.other_gets.saturating_add(1);
    }

    /// Records a poll of all other threads. `all_fill`: whether all of them that hold this queue were seen to wait for
    /// room in it.
    pub(super) fn count_fillers(&mut self, all_fill: bool) {
        self.left_to_main = if all_fill {
            self.left_to_main.saturating_add(1)
        } else {
            0
        };
    }

    pub(super) fn last(&self) -> Option<&QueuePoll> {
        self.before.as_ref()
    }

    /// Whether the main thread takes its batches from this queue. Addresses that the main thread holds do not prove it:
    /// one may meanwhile belong to another object. And the queue of a thread that works for the main thread looks the
    /// same, except that the main thread puts objects into it or that another thread waits for it. A batch that goes to
    /// a GPU at once is never seen at the main thread, so other evidence counts as well: waits in `get`, or that all
    /// threads that hold the queue fill it.
    pub(super) fn feeds_main(&self) -> bool {
        let others = self.puts() || self.other_gets > 0 || self.is_before_another();
        let left = self.left_to_main >= MIN_EVIDENCE && self.taken >= MIN_EVIDENCE;
        !others && (self.came_to_main() || self.main_gets >= MIN_REPEATS || left)
    }

    /// Whether the main thread was seen to hold objects from the queue, too often for chance.
    pub(super) fn came_to_main(&self) -> bool {
        self.held >= MIN_EVIDENCE && of(self.held, self.held + self.missed) >= MIN_HELD
    }

    /// Whether objects are ready before they are taken, so that taking them is not a wait.
    pub(super) fn is_ahead(&self) -> bool {
        self.taken >= MIN_EVIDENCE && of(self.ready, self.taken) >= MIN_READY
    }

    /// Whether objects of this queue come to the main thread through a queue nearer to it, more often than by chance.
    fn is_before_another(&self) -> bool {
        self.passed_on >= MIN_REPEATS && of(self.passed_on, self.held) >= BEFORE_ANOTHER
    }

    fn puts(&self) -> bool {
        self.put >= MIN_REPEATS
    }

    /// Whether it feeds another reader, other than through a queue that feeds the main thread.
    pub(super) fn feeds_other(&self) -> bool {
        let much =
            self.taken >= REMEMBERED / 2 && self.left_to_main == 0 && !self.is_before_another();
        self.puts() || self.other_gets > 0 || (much && !self.feeds_main())
    }

    fn forget(&mut self) {
        if self.taken >= REMEMBERED {
            self.taken /= 2;
            self.ready /= 2;
        }
        if self.held + self.missed >= REMEMBERED {
            self.held /= 2;
            self.passed_on /= 2;
            self.missed /= 2;
        }
    }
}

fn of(part: u32, all: u32) -> f64 {
    f64::from(part) / f64::from(all.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue of `len` objects, numbered in the order in which they are taken.
    fn queue(taken: u64, len: u64) -> QueuePoll {
        let objects: Vec<usize> = (taken..taken + len)
            .filter_map(|n| usize::try_from(1000 + n).ok())
            .collect();
        QueuePoll {
            taken,
            len,
            parts: objects.iter().map(|object| vec![*object]).collect(),
            objects,
            ordered: false,
        }
    }

    /// Polls `times` times. At each poll one more object was taken, and the main thread holds what `holds` returns.
    fn polls(times: u64, len: u64, holds: impl Fn(u64) -> Vec<u64>) -> Supply {
        let mut supply = Supply::default();
        for taken in 1..=times {
            let held = holds(taken).into_iter();
            let held = held
                .filter_map(|n| usize::try_from(1000 + n).ok())
                .collect();
            supply.poll(queue(taken, len), &held);
        }
        supply
    }

    #[test]
    fn an_item_held_after_being_queued_was_taken_from_the_queue() {
        let fed = polls(20, 4, |taken| vec![taken - 1]);
        assert!(fed.feeds_main() && fed.is_ahead() && !fed.feeds_other());
        assert!(!polls(3, 4, |taken| vec![taken - 1]).feeds_main());
        // A loader that holds one batch back to see whether there is a next.
        let late = polls(20, 4, |taken| vec![taken.saturating_sub(2)]);
        assert!(late.feeds_main() && late.is_ahead());
    }

    #[test]
    fn a_queue_that_others_empty_does_not_feed_the_main_thread() {
        let other = polls(100, 4, |_| vec![7000]);
        assert!(!other.feeds_main() && other.feeds_other());
        // Now and then, an object of the main thread's own is at the address of a freed one.
        let reused = polls(100, 4, |taken| {
            vec![if taken % 3 == 0 { taken - 1 } else { 7000 }]
        });
        assert!(!reused.feeds_main());
    }

    #[test]
    fn a_queue_that_the_main_thread_fills_never_feeds_it() {
        let log = polls(100, 4, |taken| vec![taken + 3]);
        assert!(!log.feeds_main() && log.feeds_other());
        let mut log = polls(100, 4, |taken| vec![taken - 1, taken + 3]);
        log.count_main_get();
        log.count_main_get();
        assert!(!log.feeds_main());
    }

    #[test]
    fn a_small_number_that_both_hold_does_not_show_that_the_main_thread_puts_it_there() {
        let log = polls(100, 4, |taken| vec![taken - 1, 12]);
        assert!(log.feeds_main() && !log.feeds_other());
    }

    #[test]
    fn a_queue_that_another_thread_waits_for_does_not_feed_the_main_thread() {
        let mut stage = polls(20, 4, |taken| vec![taken - 1]);
        assert!(stage.feeds_main());
        stage.count_other_get();
        assert!(!stage.feeds_main() && stage.feeds_other());
    }

    #[test]
    fn a_queue_before_another_is_not_the_last() {
        let mut first = polls(20, 4, |taken| vec![taken.saturating_sub(3)]);
        assert!(first.feeds_main());
        first.count_passed_on();
        assert!(first.feeds_main());
        (0..10).for_each(|_| first.count_passed_on());
        assert!(!first.feeds_main() && !first.feeds_other());
        first.reset_passed_on();
        assert!(first.feeds_main());
    }

    #[test]
    fn a_thread_that_waits_for_each_batch_is_fed_without_prefetching() {
        let mut starved = polls(18, 0, |taken| vec![taken - 1]);
        assert!(!starved.is_ahead() && !starved.feeds_main());
        starved.count_main_get();
        starved.count_main_get();
        assert!(starved.feeds_main() && !starved.is_ahead());
        // Once the queue runs empty, it is no longer ahead.
        let mut late = polls(100, 4, |taken| vec![taken - 1]);
        for taken in 101..=120 {
            late.poll(queue(taken, 0), &HashSet::new());
        }
        assert!(!late.is_ahead());
    }

    #[test]
    fn a_queue_polled_more_seldom_than_it_turns_over_is_still_ahead() {
        let mut supply = polls(20, 4, |taken| vec![taken - 1]);
        for taken in (27..300).step_by(7) {
            // The main thread holds the last one taken, which was not there at the poll before.
            supply.poll(queue(taken, 4), &HashSet::from([1000 + 300]));
        }
        assert!(supply.feeds_main() && supply.is_ahead());
        for taken in (307..600).step_by(7) {
            supply.poll(queue(taken, 0), &HashSet::new());
        }
        assert!(supply.feeds_main() && !supply.is_ahead());
    }

    #[test]
    fn a_queue_that_all_other_threads_fill_feeds_the_main_thread() {
        let mut supply = polls(15, 4, |_| vec![7000]);
        assert!(!supply.feeds_main());
        (0..4).for_each(|_| supply.count_fillers(true));
        for taken in 16..=60 {
            supply.poll(queue(taken, 4), &HashSet::from([7000]));
        }
        assert!(supply.feeds_main() && supply.is_ahead() && !supply.feeds_other());
        // A thread that never fills the queue holds it, too.
        supply.count_fillers(false);
        assert!(!supply.feeds_main() && supply.feeds_other());
    }

    #[test]
    fn an_ordered_batch_is_ready_only_when_its_result_was_seen() {
        let ordered = |parts: bool| {
            let mut supply = Supply::default();
            for taken in 1..=20 {
                let mut poll = queue(taken, 4);
                let result = |n: u64| usize::try_from(5000 + n).unwrap();
                poll.ordered = true;
                poll.parts = (taken..taken + 4)
                    .filter(|_| parts)
                    .map(|n| vec![result(n)])
                    .collect();
                let last_order = poll.objects[3];
                supply.poll(poll, &[result(taken - 1), last_order].into());
            }
            supply
        };
        assert!(ordered(true).feeds_main() && ordered(true).is_ahead());
        assert!(!ordered(false).feeds_main() && !ordered(false).is_ahead());
    }
}
