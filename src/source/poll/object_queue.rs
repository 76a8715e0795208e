//! The queue object in a trainer's memory that feeds its main thread: when it is searched for, and the sums over its
//! polls.
//!
//! Does not depend on how it is found.

use std::time::Duration;

use super::priority;
use crate::sample::{QueueSource, QueueTally};
use crate::source::python::{QueueState, Stacks};

/// First and longest pause between two searches: a search that finds nothing costs as much each time.
const SEARCH_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(20);
/// If no queue feeds the main thread for this long, the last one is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(super) struct ObjectQueue {
    /// When the next search is due, and the pause after that one.
    due: Duration,
    pause: Option<Duration>,
    /// Whether a queue is known that may feed the main thread, so that stacks are worth polling more often.
    pub(super) known: bool,
    /// When a queue was last known to feed the main thread.
    fed_at: Duration,
    /// Batches taken from it, if they are counted, and how full it was if that is known.
    pub(super) seen: Option<(Option<u64>, Option<QueueTally>)>,
}

impl ObjectQueue {
    pub(super) fn search(&mut self, now: Duration, stacks: &mut Stacks) {
        if now < self.due {
            return;
        }
        let pause = self.pause.unwrap_or(SEARCH_PAUSE);
        self.due = now + pause;
        self.pause = Some((2 * pause).min(MAX_PAUSE));
        // An inconsistent read: the next search may find it.
        let _ = priority::in_turns(|| stacks.find_queues());
        self.known = stacks.has_queues();
    }

    /// Records a poll. The counts of a queue that has not fed the main thread for a while are cleared: they would look
    /// as if no batches were taken.
    pub(super) fn poll(&mut self, now: Duration, queue: Option<QueueState>) {
        let Some(queue) = queue else {
            if now.saturating_sub(self.fed_at) >= FORGET_AFTER {
                self.seen = None;
            }
            return;
        };
        self.fed_at = now;
        self.pause = None;
        let tally = self.seen.and_then(|(_, tally)| tally);
        let tally = queue.ready.map(|ready| {
            let mut tally = QueueTally {
                capacity: queue.capacity,
                source: QueueSource::Object,
                ..tally.unwrap_or_default()
            };
            tally.count(ready);
            tally
        });
        self.seen = Some((queue.taken, tally));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_of_a_queue_add_up() {
        let mut queue = ObjectQueue::default();
        let second = Duration::from_secs;
        let poll = |taken, ready| {
            Some(QueueState {
                taken: Some(taken),
                ready,
                capacity: Some(8),
                ahead: true,
            })
        };
        queue.poll(second(0), None);
        assert!(queue.seen.is_none());
        for (taken, ready) in [(1, Some(4)), (2, Some(0)), (4, Some(6))] {
            queue.poll(second(taken), poll(taken, ready));
        }
        queue.poll(second(5), None);
        let (batches, tally) = queue.seen.unwrap();
        let tally = tally.unwrap();
        assert_eq!((batches, tally.polls, tally.empty), (Some(4), 3, 1));
        assert_eq!((tally.ready_sum, tally.ready), (10, 6));
        assert_eq!(tally.capacity, Some(8));
        // The length of a queue of futures does not show how many are ready.
        queue.poll(second(6), poll(5, None));
        assert_eq!(queue.seen, Some((Some(5), None)));
        queue.poll(second(8), None);
        assert!(queue.seen.is_some());
        queue.poll(second(9), None);
        assert!(queue.seen.is_none());
    }
}
