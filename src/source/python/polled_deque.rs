//! A deque that is polled, with the evidence of whether it feeds the main thread.
//!
//! Does not depend on the other deques.

use std::collections::HashSet;

use super::PythonError;
use super::deque::Deque;
use super::memory::Memory;
use super::reach::Reach;
use super::supply::{QueuePoll, Supply};

/// Number of its first objects remembered from one poll to the next.
const REMEMBERED: usize = 8;
/// Polls after which a queue that nothing was taken from is dropped.
const MAX_IDLE_POLLS: u32 = 1000;

/// A deque that is polled.
#[derive(Debug)]
pub(super) struct PolledDeque {
    pub(super) deque: Deque,
    /// The object that the deque is part of.
    pub(super) owner: Option<usize>,
    /// The same object if it is a queue.
    pub(super) queue: Option<usize>,
    pub(super) capacity: Option<u32>,
    pub(super) supply: Supply,
    /// Threads that were seen to wait for room in it, by the addresses of their states.
    pub(super) fillers: HashSet<usize>,
    /// Number of objects taken from it when that was last counted.
    pub(super) counted: Option<u64>,
    pub(super) polls: u32,
    pub(super) polls_without: u32,
}

impl PolledDeque {
    /// Polls the queue. Returns false if it is not worth polling any more. `arrived`: objects that have come to the
    /// main thread from queues nearer to it; those that have come from this queue are added.
    pub(super) fn poll(
        &mut self,
        reach: &mut Reach<'_>,
        held: &HashSet<usize>,
        arrived: &mut HashSet<usize>,
    ) -> bool {
        let content = match self.deque.read(REMEMBERED) {
            Ok(content) => content,
            // An inconsistent read: the next poll tries again.
            Err(PythonError::Torn(_)) => return true,
            Err(_) => return false,
        };
        let taken = |poll: &QueuePoll| content.taken > poll.taken;
        self.polls = self.polls.saturating_add(1);
        let moves = self.supply.last().is_none_or(taken);
        self.polls_without = if moves { 0 } else { self.polls_without + 1 };
        let mut objects = content.first;
        let parts = objects.iter().map(|object| reach.parts(*object));
        let parts: Vec<Vec<usize>> = parts.collect();
        objects.retain(|object| parts.iter().any(|parts| parts.contains(object)));
        objects.extend(
            content
                .last
                .iter()
                .filter(|object| reach.is_unique(**object)),
        );
        // Futures and the like are there from the moment they are ordered. In a queue, only a future counts as an
        // order: an instance of another class may be a batch.
        let is_ordered = |first: &usize| {
            reach.is_instance(*first)
                && (self.queue.is_none() || is_future(&reach.memory, *first).unwrap_or(false))
        };
        let ordered = self.supply.last().is_some_and(|poll| poll.ordered)
            || objects.first().is_some_and(is_ordered);
        let poll = QueuePoll {
            taken: content.taken,
            len: u64::try_from(content.len).unwrap_or(u64::MAX),
            objects,
            parts,
            ordered,
        };
        let came = self.supply.poll(poll, held);
        if came.iter().any(|object| arrived.contains(object)) {
            self.supply.count_passed_on();
        }
        arrived.extend(came);
        self.polls_without < MAX_IDLE_POLLS && !self.supply.feeds_other()
    }
}

/// Whether an instance has an attribute with which the standard library waits for a result: the condition of a future,
/// or the event of a pool's result.
fn is_future(memory: &Memory, object: usize) -> Result<bool, PythonError> {
    let attributes = memory.attributes(object)?;
    let has = |name| Ok(memory.attribute(&attributes, name)?.is_some());
    Ok(has("_condition")? || has("_event")?)
}

/// Returns the capacity of the `queue.Queue` or `asyncio.Queue` at `owner` if `deque` is its deque: 0 = no limit.
/// `None` if `owner` is no such queue.
pub(super) fn queue_of(
    memory: &Memory,
    owner: usize,
    deque: usize,
) -> Result<Option<u32>, PythonError> {
    let attributes = memory.attributes(owner)?;
    for (objects, most) in [("queue", "maxsize"), ("_queue", "_maxsize")] {
        let own = memory.attribute(&attributes, objects)? == Some(deque);
        if let (true, Some(most)) = (own, memory.attribute(&attributes, most)?) {
            let most = memory.integer(most)?.0;
            return Ok(Some(u32::try_from(most).unwrap_or(0)));
        }
    }
    Ok(None)
}
