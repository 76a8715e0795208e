//! The waits of one main thread for its loader: when each began and ended, and what the loader had yielded by then.
//!
//! Does not decide what a wait is.

use std::time::Duration;

use super::MainSeen;
use super::iterators::Iterators;
use crate::sample::{Tail, Wait};

/// Waits kept until they are taken: more than can end between two samples.
const MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct TrainerWaits {
    /// The wait in progress; its end is not known yet.
    current: Option<Wait>,
    ended: Tail<Wait>,
}

impl TrainerWaits {
    /// Records whether the thread waits now, and on which descriptor. Returns whether a wait has just ended.
    pub(super) fn follow(
        &mut self,
        now: Duration,
        waits: bool,
        polled: Option<i32>,
        iterators: &mut Iterators,
    ) -> bool {
        match (waits, &mut self.current) {
            (true, None) => {
                iterators.read();
                self.current = Some(Wait {
                    from: now,
                    to: now,
                    batch: iterators.batches(polled),
                    first: None,
                    begins: iterators.begins(polled),
                });
            }
            (true, Some(wait)) => {
                wait.first = wait.first.or(iterators.yielded_since(wait.from));
            }
            (false, Some(wait)) => {
                let wait = Wait { to: now, ..*wait };
                self.current = None;
                // The last batch ends an iterator, which can no longer be read once it is gone.
                iterators.read();
                self.ended.push(wait, MOST);
                return true;
            }
            (false, None) => {}
        }
        false
    }

    /// Whether the thread was waiting at the last poll: a batch that has come since is not counted yet.
    pub(super) fn is_open(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn publish(&mut self, seen: &mut MainSeen) {
        let ended = self.ended.newest.drain(..);
        ended.for_each(|wait| seen.waits.push(wait, MOST));
    }
}
