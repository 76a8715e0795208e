//! Whether a queue feeds the main thread, and whether it does so ahead of time: what many polls at it say together.
//!
//! What was seen in a queue and is held by the main thread soon after it was taken was taken by the main thread. A queue
//! that the main thread fills, that only others empty, or whose objects go on into another queue is not the one that
//! feeds it. Pure: knows objects by number, not how they are read.

use std::collections::{HashSet, VecDeque};

/// Pieces of evidence that are needed before anything is said, and after which older ones count half.
const ENOUGH: u32 = 4;
const REMEMBERED: u32 = 40;
/// Of what was taken: so much was ready before, where batches are made ahead of time.
const AHEAD: f64 = 0.9;
/// Of what was taken: so much came to the main thread.
const HELD: f64 = 0.7;
/// What could be by chance once is believed the second time.
const TWICE: u32 = 2;
/// Of what came to the main thread: so much came from a queue nearer to it, too.
const BEFORE_ANOTHER: f64 = 0.15;
/// A loader may hold a batch back until a few more were taken.
const UNDER_WAY: usize = 3;

/// A queue at one poll.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Polled {
    /// Objects that were ever taken out, and those that are in it.
    pub(super) taken: u64,
    pub(super) len: u64,
    /// The first objects in it and the last, and what the main thread may hold of each of the first: itself, a part of it, or
    /// its result.
    pub(super) objects: Vec<usize>,
    pub(super) parts: Vec<Vec<usize>>,
    /// It holds what was ordered, not what is made: what is in it need not be ready.
    pub(super) ordered: bool,
}

/// All that was seen of one queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Supply {
    before: Option<Polled>,
    /// What was in the queue and has been taken since, and has not been seen at the main thread yet.
    under_way: VecDeque<Vec<usize>>,
    taken: u32,
    ready: u32,
    held: u32,
    missed: u32,
    /// Polls at which the main thread held what still was in the queue: it puts it there.
    put: u32,
    /// Polls at which what came to the main thread had been in a queue nearer to it, too.
    passed_on: u32,
    /// Polls at which the main thread was in the queue's own `get`.
    got: u32,
    /// Polls at which another thread was in the queue's own `get`.
    emptied: u32,
}

impl Supply {
    /// Takes in a poll, at which the main thread holds `held`. Gives what of it has come from this queue since.
    pub(super) fn poll(&mut self, mut poll: Polled, held: &HashSet<usize>) -> Vec<usize> {
        let is_held = |objects: &[usize]| objects.iter().any(|object| held.contains(object));
        if !poll.ordered && is_held(&poll.objects) {
            self.put = self.put.saturating_add(1);
        }
        // Of what the main thread holds already, nothing would tell that it has just been taken.
        for parts in &mut poll.parts {
            parts.retain(|part| !held.contains(part));
        }
        if let Some(before) = self
            .before
            .take()
            .filter(|before| poll.taken > before.taken)
        {
            let now = poll.taken - before.taken;
            let first = before.parts.into_iter();
            let gone = first.take(usize::try_from(now).unwrap_or(usize::MAX));
            let gone: Vec<usize> = gone.flatten().collect();
            let all_there = before.len >= now;
            let ready = if poll.ordered {
                is_held(&gone)
            } else {
                all_there
            };
            self.forget();
            self.taken += 1;
            self.ready += u32::from(ready);
            if !gone.is_empty() {
                self.under_way.push_back(gone);
            }
        }
        let mut come = Vec::new();
        self.under_way.retain(|parts| {
            let before = come.len();
            come.extend(parts.iter().copied().filter(|part| held.contains(part)));
            come.len() == before
        });
        self.held += u32::from(!come.is_empty());
        while self.under_way.len() > UNDER_WAY {
            self.under_way.pop_front();
            self.missed += 1;
        }
        self.before = Some(poll);
        come
    }

    /// What came from here to the main thread came from a queue nearer to it, too: this one only feeds that.
    pub(super) fn passed_on(&mut self) {
        self.passed_on = self.passed_on.saturating_add(1);
    }

    /// A queue nearer to the main thread has turned out to be none that feeds it.
    pub(super) fn is_nearest_again(&mut self) {
        self.passed_on = 0;
    }

    pub(super) fn got(&mut self) {
        self.got = self.got.saturating_add(1);
    }

    pub(super) fn emptied(&mut self) {
        self.emptied = self.emptied.saturating_add(1);
    }

    /// Polls at which the main thread was in its `get`.
    pub(super) fn times_got(&self) -> u32 {
        self.got
    }

    pub(super) fn last(&self) -> Option<&Polled> {
        self.before.as_ref()
    }

    /// The main thread takes its batches here. An object that it holds may be another that lies where the first was: the
    /// queue of a thread that works for it looks the same, but for what the main thread puts in, and who waits for it.
    pub(super) fn feeds_main(&self) -> bool {
        let held = self.held >= ENOUGH && of(self.held, self.held + self.missed) >= HELD;
        let others = self.put > 0 || self.emptied > 0 || self.is_before_another();
        !others && (held || self.got >= TWICE)
    }

    /// What is taken was ready before: who takes it does not wait for it.
    pub(super) fn is_ahead(&self) -> bool {
        self.taken >= ENOUGH && of(self.ready, self.taken) >= AHEAD
    }

    /// What comes from here comes from a queue nearer to the main thread, more often than by chance.
    fn is_before_another(&self) -> bool {
        self.passed_on >= TWICE && of(self.passed_on, self.held) >= BEFORE_ANOTHER
    }

    /// It feeds somebody else, and not another queue that feeds the main thread.
    pub(super) fn is_strange(&self) -> bool {
        let much = self.taken >= REMEMBERED / 2 && !self.is_before_another();
        self.put > 0 || self.emptied > 0 || (much && !self.feeds_main())
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

    /// A queue of so many objects, numbered in the order in which they are taken.
    fn queue(taken: u64, len: u64) -> Polled {
        let objects: Vec<usize> = (taken..taken + len)
            .filter_map(|n| usize::try_from(1000 + n).ok())
            .collect();
        Polled {
            taken,
            len,
            parts: objects.iter().map(|object| vec![*object]).collect(),
            objects,
            ordered: false,
        }
    }

    /// So many polls, at each of which one more was taken and the main thread holds what this says.
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
    fn what_was_in_the_queue_and_is_then_held_was_taken_from_it() {
        let fed = polls(20, 4, |taken| vec![taken - 1]);
        assert!(fed.feeds_main() && fed.is_ahead() && !fed.is_strange());
        assert!(!polls(3, 4, |taken| vec![taken - 1]).feeds_main());
        // A loader that keeps one back to see whether there is a next.
        let late = polls(20, 4, |taken| vec![taken.saturating_sub(2)]);
        assert!(late.feeds_main() && late.is_ahead());
    }

    #[test]
    fn a_queue_that_others_empty_does_not_feed_the_main_thread() {
        let other = polls(100, 4, |_| vec![7000]);
        assert!(!other.feeds_main() && other.is_strange());
        // Now and then what was freed lies where the main thread has put something of its own.
        let reused = polls(100, 4, |taken| {
            vec![if taken % 3 == 0 { taken - 1 } else { 7000 }]
        });
        assert!(!reused.feeds_main());
    }

    #[test]
    fn a_queue_that_the_main_thread_fills_never_feeds_it() {
        let log = polls(100, 4, |taken| vec![taken + 3]);
        assert!(!log.feeds_main() && log.is_strange());
        let mut log = polls(100, 4, |taken| vec![taken - 1, taken + 3]);
        log.got();
        log.got();
        assert!(!log.feeds_main());
    }

    #[test]
    fn a_queue_that_another_thread_waits_for_does_not_feed_the_main_thread() {
        let mut stage = polls(20, 4, |taken| vec![taken - 1]);
        assert!(stage.feeds_main());
        stage.emptied();
        assert!(!stage.feeds_main() && stage.is_strange());
    }

    #[test]
    fn a_queue_before_another_is_not_the_last() {
        let mut first = polls(20, 4, |taken| vec![taken.saturating_sub(3)]);
        assert!(first.feeds_main());
        first.passed_on();
        assert!(first.feeds_main());
        (0..10).for_each(|_| first.passed_on());
        assert!(!first.feeds_main() && !first.is_strange());
        first.is_nearest_again();
        assert!(first.feeds_main());
    }

    #[test]
    fn who_waits_for_each_batch_is_fed_but_not_ahead_of_time() {
        let mut starved = polls(18, 0, |taken| vec![taken - 1]);
        assert!(!starved.is_ahead() && !starved.feeds_main());
        starved.got();
        starved.got();
        assert!(starved.feeds_main() && !starved.is_ahead());
        // One that comes to its limit is no longer ahead.
        let mut late = polls(100, 4, |taken| vec![taken - 1]);
        for taken in 101..=120 {
            late.poll(queue(taken, 0), &HashSet::new());
        }
        assert!(!late.is_ahead());
    }

    #[test]
    fn what_was_ordered_is_ready_only_where_its_result_was_seen_there() {
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
