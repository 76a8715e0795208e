//! The queue object in a trainer's memory that feeds its main thread: when it is looked for, and what polls of it add up to.
//!
//! Knows when, not how it is found.

use std::time::Duration;

use crate::sample::{QueueSource, QueueTally};
use crate::source::python::{QueueSeen, Stacks};

/// Between two searches, at first and at most: one that has found nothing so far costs as much each time.
const SEARCH_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// Without a queue that feeds the main thread, the last one is remembered for so long.
const FORGOTTEN: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(super) struct ObjectQueue {
    /// When the next search is due, and how long after that the one behind it.
    due: Duration,
    pause: Option<Duration>,
    known: bool,
    /// When one was last known to feed the main thread.
    fed_at: Duration,
    /// Batches that were taken from it, and how full it was where that is known.
    pub(super) seen: Option<(u64, Option<QueueTally>)>,
}

impl ObjectQueue {
    pub(super) fn search(&mut self, now: Duration, stacks: &mut Stacks) {
        if now < self.due {
            return;
        }
        let pause = self.pause.unwrap_or(SEARCH_PAUSE);
        self.due = now + pause;
        self.pause = Some((2 * pause).min(LONGEST_PAUSE));
        // Torn: the next search may find it.
        let _ = stacks.find_queues();
        self.known = stacks.knows_queues();
    }

    /// There is one that may feed the main thread: each poll at a stack tells more.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// Takes in what a poll saw. A queue that has not fed the main thread for a while says nothing of it: its count would
    /// seem to stand still.
    pub(super) fn poll(&mut self, now: Duration, queue: Option<QueueSeen>) {
        let Some(queue) = queue else {
            if now.saturating_sub(self.fed_at) >= FORGOTTEN {
                self.seen = None;
            }
            return;
        };
        self.fed_at = now;
        self.pause = None;
        let tally = self.seen.and_then(|(_, tally)| tally);
        let tally = queue.ready.map(|ready| {
            let before = tally.unwrap_or_default();
            QueueTally {
                polls: before.polls + 1,
                empty: before.empty + u64::from(ready == 0),
                ready_sum: before.ready_sum + u64::from(ready),
                ready,
                capacity: queue.capacity,
                source: QueueSource::Object,
            }
        });
        self.seen = Some((queue.taken, tally));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_a_queue_add_up() {
        let mut queue = ObjectQueue::default();
        let second = Duration::from_secs;
        let poll = |taken, ready| {
            Some(QueueSeen {
                taken,
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
        assert_eq!((batches, tally.polls, tally.empty), (4, 3, 1));
        assert_eq!((tally.ready_sum, tally.ready), (10, 6));
        assert_eq!(tally.capacity, Some(8));
        // One that holds futures has no length that tells.
        queue.poll(second(6), poll(5, None));
        assert_eq!(queue.seen, Some((5, None)));
        queue.poll(second(8), None);
        assert!(queue.seen.is_some());
        queue.poll(second(9), None);
        assert!(queue.seen.is_none());
    }
}
