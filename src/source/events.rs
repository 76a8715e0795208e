//! Events collected between two samples and included in each of the next few.
//!
//! Does not depend on what the events are.

use std::collections::VecDeque;

use crate::sample::Tail;

/// One series of events.
#[derive(Debug, Clone)]
pub(super) struct Events<T> {
    tail: Tail<T>,
    /// Number of events at each of the last hand-outs, oldest first.
    handed_out: VecDeque<u64>,
    /// Maximum number of events kept if they are not taken.
    most: usize,
}

impl<T: Clone> Events<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            tail: Tail::default(),
            handed_out: VecDeque::new(),
            most,
        }
    }

    pub(super) fn extend(&mut self, events: impl IntoIterator<Item = T>) {
        for event in events {
            self.tail.push(event, self.most);
        }
    }

    /// Counts events that came and were lost.
    pub(super) fn skip(&mut self, events: u64) {
        self.tail.skip(events);
    }

    /// Returns the events of this sample and of the two before, so that two of three samples in a row may be lost.
    /// `consumers` callers take them in turn.
    pub(super) fn take(&mut self, consumers: usize) -> Tail<T> {
        while self.handed_out.len() >= 3 * consumers {
            let third = self.handed_out.pop_front().unwrap_or_default();
            self.tail.forget(&Tail::new(third, []));
        }
        let now = self.tail.count.unwrap_or_default();
        self.handed_out.push_back(now);
        self.tail.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_in_three_samples_and_keeps_its_number() {
        let mut events = Events::new(3);
        let mut sample = |new: std::ops::Range<u64>| {
            events.extend(new);
            let tail = events.take(1);
            (tail.count.unwrap(), Vec::from(tail.newest))
        };
        assert_eq!(sample(0..1), (1, vec![0]));
        assert_eq!(sample(1..2), (2, vec![0, 1]));
        assert_eq!(sample(2..3), (3, vec![0, 1, 2]));
        assert_eq!(sample(3..3), (3, vec![1, 2]));
        assert_eq!(sample(3..8), (8, vec![5, 6, 7]), "not too many");
        events.skip(2);
        assert_eq!(events.take(1).count, Some(10));
    }
}
