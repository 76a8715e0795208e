//! The queues that the main thread may take its batches from, looked at again and again: which of them feeds it, how many
//! batches it has taken from there, and how many are ready.
//!
//! Any `collections.deque` that the main thread's frames lead to is looked at, alone or as what a `queue.Queue` is made of.
//! [`Supply`] tells from what was seen whether it is the one. What is half changed is left out, never guessed.

use std::collections::HashSet;

use super::PythonError;
use super::deque::Deque;
use super::frames::{Frame, Walker};
use super::memory::Memory;
use super::reach::{Found, Reach};
use super::supply::{Polled, Supply};

/// Queues that are looked at, at most.
const QUEUES: usize = 24;
/// Their first objects that are remembered from one poll to the next.
const REMEMBERED: usize = 8;
/// Polls after which a queue that nothing was taken from is given up.
const PATIENCE: u32 = 1000;
/// Deques that were given up and are not looked at again.
const REFUSED: usize = 64;
/// Polls at which the main thread was in the `get` of any queue, from which on it was in that of each that feeds it.
const OFTEN_GOT: u32 = 20;
/// One of so many waits for all queues is for this one: it is hardly ever waited for.
const RARELY: u32 = 20;
/// Frames whose locals are compared with what was in a queue.
const FRAMES: usize = 32;

/// What the queue that feeds the main thread tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSeen {
    /// Batches that were taken from queues that feed the main thread.
    pub taken: u64,
    /// Batches in it. `None` where what is in it need not be made yet, as with futures.
    pub ready: Option<u32>,
    /// `None` = without a limit, or not known.
    pub capacity: Option<u32>,
    /// Batches are in it before they are asked for: the main thread does not wait for them.
    pub ahead: bool,
}

#[derive(Debug, Default)]
pub(super) struct Queues {
    known: Vec<Known>,
    /// Deques that were given up.
    refused: HashSet<usize>,
    taken: u64,
}

/// A deque that is looked at.
#[derive(Debug)]
struct Known {
    deque: Deque,
    /// The object that is made of it, where that is a queue.
    queue: Option<usize>,
    capacity: Option<u32>,
    supply: Supply,
    /// What had been taken from it when that was last counted.
    counted: Option<u64>,
    polls_without: u32,
}

impl Queues {
    /// Looks for more, where the main thread is in these frames.
    pub(super) fn search(&mut self, memory: Memory, walker: &mut Walker, frames: &[Frame]) {
        let mut reach = Reach { memory, walker };
        for found in reach.deques(frames) {
            self.add(memory, found);
        }
    }

    /// Nothing feeds the main thread that is known.
    pub(super) fn lacks_source(&self) -> bool {
        self.sources().next().is_none()
    }

    pub(super) fn knows_any(&self) -> bool {
        !self.known.is_empty()
    }

    fn sources(&self) -> impl Iterator<Item = &Known> {
        let often_got = self.often_got();
        let known = self.known.iter();
        known.filter(move |known| feeds(known, often_got))
    }

    /// Where the main thread was seen so often in a `get` that it would have been seen in that of each queue that feeds
    /// it: the limit of that queue. Others of the same limit are taken from in turn with it.
    #[expect(
        clippy::option_option,
        reason = "no such queue, or one without a limit"
    )]
    fn often_got(&self) -> Option<Option<u32>> {
        let most = self
            .known
            .iter()
            .max_by_key(|known| known.supply.times_got())?;
        (most.supply.times_got() >= OFTEN_GOT).then_some(most.capacity)
    }

    fn add(&mut self, memory: Memory, found: Found) {
        let is_known = self.known.iter().any(|known| known.deque.at == found.deque);
        if is_known || self.known.len() >= QUEUES || self.refused.contains(&found.deque) {
            return;
        }
        let owner = found.owner;
        let queue = owner.and_then(|owner| queue_of(&memory, owner, found.deque).unwrap_or(None));
        let Ok(Some(deque)) = Deque::at(memory, found.deque) else {
            return;
        };
        // Locks and the like keep who waits for them in deques, which are mostly empty.
        if queue.is_some() || deque.read(0).is_ok_and(|content| content.len > 0) {
            self.known.push(Known {
                deque,
                queue: queue.and(owner),
                capacity: queue.filter(|most| *most > 0),
                supply: Supply::default(),
                counted: None,
                polls_without: 0,
            });
        }
    }

    /// Takes a poll at all of them, while the main thread is in these frames.
    pub(super) fn poll(&mut self, memory: Memory, walker: &mut Walker, frames: &[Frame]) {
        self.meet(memory, frames);
        if self.known.is_empty() {
            return;
        }
        let outermost = frames.iter().rev().take(FRAMES);
        let held = outermost.flat_map(|frame| frame.local_objects(&memory).unwrap_or_default());
        let held: HashSet<usize> = held.collect();
        let mut reach = Reach { memory, walker };
        let refused = &mut self.refused;
        // The nearest to the loop come first.
        let mut come = HashSet::new();
        let known_before = self.known.len();
        self.known.retain_mut(|known| {
            let stays = known.poll(&mut reach, &held, &mut come);
            if !stays {
                if refused.len() >= REFUSED {
                    refused.clear();
                }
                refused.insert(known.deque.at);
            }
            stays
        });
        if self.known.len() < known_before {
            for known in &mut self.known {
                known.supply.is_nearest_again();
            }
        }
        self.count();
    }

    /// Takes in which of the queues a thread beside the main one waits for, in these frames.
    pub(super) fn poll_other(&mut self, memory: &Memory, frames: &[Frame]) {
        let Some(owner) = in_get(memory, frames) else {
            return;
        };
        let mut known = self.known.iter_mut();
        if let Some(known) = known.find(|known| known.queue == Some(owner)) {
            known.supply.emptied();
        }
    }

    /// The objects that the main thread takes its batches from.
    pub(super) fn feeding(&self) -> impl Iterator<Item = usize> {
        self.sources()
            .map(|known| known.queue.unwrap_or(known.deque.at))
    }

    /// The main thread is in the `get` of a queue, while another has batches ready that come to it, and that it hardly ever
    /// waits for: this one may hold the results of its steps.
    pub(super) fn may_hold_results(&self, memory: &Memory, frames: &[Frame]) -> bool {
        let Some(owner) = in_get(memory, frames) else {
            return false;
        };
        let is_own = |known: &&Known| known.queue == Some(owner);
        let own = self.known.iter().find(is_own);
        let often = own.map_or(0, |known| known.supply.times_got());
        let others = self.known.iter().filter(|known| !is_own(known));
        others.map(|known| &known.supply).any(|supply| {
            supply.feeds_main() && supply.is_ahead() && supply.times_got() <= often / RARELY
        })
    }

    /// The queue whose `get` the main thread is in.
    fn meet(&mut self, memory: Memory, frames: &[Frame]) {
        let Some(owner) = in_get(&memory, frames) else {
            return;
        };
        let mut known = self.known.iter_mut();
        if let Some(known) = known.find(|known| known.queue == Some(owner)) {
            known.supply.got();
            return;
        }
        let attributes = memory.attributes(owner);
        let deque = attributes.and_then(|all| memory.attribute(&all, "queue"));
        if let Ok(Some(deque)) = deque {
            let owner = Some(owner);
            self.refused.remove(&deque);
            self.add(memory, Found { deque, owner });
        }
    }

    /// Counts what was taken from all that feed the main thread: in turn from each, or from a new one with each epoch.
    fn count(&mut self) {
        let first = self.taken == 0;
        let often_got = self.often_got();
        for known in &mut self.known {
            let Some(now) = known.supply.last().map(|poll| poll.taken) else {
                continue;
            };
            if feeds(known, often_got) {
                // What was taken before any was known counts, too.
                let before = if first {
                    0
                } else {
                    known.counted.unwrap_or(now)
                };
                self.taken += now.saturating_sub(before);
            }
            known.counted = Some(now);
        }
    }

    /// What feeds the main thread now. `None` where nothing is known to.
    pub(super) fn seen(&self) -> Option<QueueSeen> {
        self.sources().next()?;
        let sum = |of: &dyn Fn(&Known) -> Option<u32>| {
            let each: Option<Vec<u32>> = self.sources().map(of).collect();
            each.map(|each| each.into_iter().fold(0, u32::saturating_add))
        };
        let ready = |known: &Known| {
            let len = known.supply.last().filter(|poll| !poll.ordered)?.len;
            u32::try_from(len).ok()
        };
        Some(QueueSeen {
            taken: self.taken,
            ready: sum(&ready),
            capacity: sum(&|known| known.capacity),
            ahead: self.sources().all(|known| known.supply.is_ahead()),
        })
    }
}

#[expect(
    clippy::option_option,
    reason = "no such queue, or one without a limit"
)]
fn feeds(known: &Known, often_got: Option<Option<u32>>) -> bool {
    let in_turn = |limit: Option<u32>| limit.is_some() && limit == known.capacity;
    let near = |limit| known.supply.times_got() > 0 || in_turn(limit);
    known.supply.feeds_main() && often_got.is_none_or(near)
}

/// The `queue.Queue` whose `get` a thread in these frames is in.
fn in_get(memory: &Memory, frames: &[Frame]) -> Option<usize> {
    let is_get = |frame: &&Frame| {
        let place = &frame.code.place;
        frame.code.meaning.hands_over && place.file.ends_with("/queue.py")
    };
    let innermost = frames.iter().find(is_get)?;
    innermost.first_local(memory).ok()?
}

impl Known {
    /// No where it is of no use any more.
    /// `come` is what came to the main thread from queues nearer to it.
    fn poll(
        &mut self,
        reach: &mut Reach<'_>,
        held: &HashSet<usize>,
        come: &mut HashSet<usize>,
    ) -> bool {
        let content = match self.deque.read(REMEMBERED) {
            Ok(content) => content,
            // Half changed: the next poll tells.
            Err(PythonError::Torn(_)) => return true,
            Err(_) => return false,
        };
        let taken = |poll: &Polled| content.taken > poll.taken;
        let moves = self.supply.last().is_none_or(taken);
        self.polls_without = if moves { 0 } else { self.polls_without + 1 };
        let mut objects = content.first;
        let parts = objects.iter().map(|object| reach.parts(*object));
        let parts: Vec<Vec<usize>> = parts.collect();
        objects.retain(|object| parts.iter().any(|parts| parts.contains(object)));
        objects.extend(content.last.iter().filter(|object| reach.tells(**object)));
        // Futures and the like stand in a plain deque from when they are asked for.
        let first = objects.first();
        let ordered = self.queue.is_none() && first.is_some_and(|first| reach.is_instance(*first));
        let ordered = ordered || self.supply.last().is_some_and(|poll| poll.ordered);
        let poll = Polled {
            taken: content.taken,
            len: u64::try_from(content.len).unwrap_or(u64::MAX),
            objects,
            parts,
            ordered,
        };
        let came = self.supply.poll(poll, held);
        if came.iter().any(|object| come.contains(object)) {
            self.supply.passed_on();
        }
        come.extend(came);
        self.polls_without < PATIENCE && !self.supply.is_strange()
    }
}

/// What the `queue.Queue` or `asyncio.Queue` at `owner` holds at most, where this deque is its own. 0 = it has no limit,
/// `None` = it is none.
fn queue_of(memory: &Memory, owner: usize, deque: usize) -> Result<Option<u32>, PythonError> {
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
