//! The queues that the main thread may take its batches from, polled repeatedly: which of them feeds it, how many
//! batches it has taken from there, and how many are ready.
//!
//! Every `collections.deque` that the main thread's frames lead to is polled, alone or as part of a `queue.Queue`.
//! [`Supply`] decides from the polls whether that deque feeds the main thread. Inconsistent reads are dropped, never
//! guessed.

use std::collections::HashSet;

use super::deque::Deque;
use super::frame::Frame;
use super::frames::Walker;
use super::memory::Memory;
use super::polled_deque::{PolledDeque, queue_of};
use super::reach::{FoundDeque, Reach};
use super::shared_queue::SharedQueue;
use super::supply::Supply;
use crate::loaders::FULL_QUEUE;
use crate::units::Pid;

/// Maximum number of queues polled.
const QUEUES: usize = 24;
/// Maximum number of dropped deques remembered, which are not polled again.
const REFUSED: usize = 64;
/// Once the main thread was seen this often in the `get` of one queue, it must have been seen in the `get` of every
/// queue that feeds it.
const FREQUENT_GETS: u32 = 20;
/// A queue counts as rarely waited for if the main thread waits for it at most once per this many waits for another
/// one.
const RARE_RATIO: u32 = 20;
/// Polls that a queue must last before its batches count, about a second: a new queue for each batch counts none.
const MIN_POLLS: u32 = 20;
/// Number of outermost frames whose locals are compared with the objects that were in a queue.
const FRAMES: usize = 32;

/// State of the queues that feed the main thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueState {
    /// Batches taken from queues that feed the main thread. `None` if nothing counts them.
    pub taken: Option<u64>,
    /// Batches in the queues. `None` if they may not have been made yet, as with futures.
    pub ready: Option<u32>,
    /// `None` = without a limit, or not known.
    pub capacity: Option<u32>,
    /// Whether batches are in the queues before the main thread asks for them, so that it does not wait.
    pub ahead: bool,
}

/// The stack of a thread other than the main one, and the objects of its locals.
#[derive(Debug)]
pub(super) struct OtherStack {
    /// Address of its state.
    pub(super) state: usize,
    pub(super) thread: Option<Pid>,
    pub(super) frames: Vec<Frame>,
    pub(super) objects: Vec<usize>,
    /// The queues among `objects`.
    pub(super) queues: Vec<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Queues {
    known: Vec<PolledDeque>,
    /// Queues that the process shares with others.
    shared: Vec<SharedQueue>,
    /// Deques that were dropped.
    refused: HashSet<usize>,
    taken: u64,
    /// Polls at which the main thread waited for a batch in one of the program's own functions, and not for a known
    /// deque.
    waits_elsewhere: u32,
}

/// What a queue must show to count as feeding the main thread, given where the main thread waits most.
#[derive(Debug, Clone, Copy)]
struct FrequentGet {
    /// Capacity of the queue that it waits for most; queues of the same capacity are used in turn with that one. `None`
    /// without a limit, or if it waits most outside the known queues.
    limit: Option<u32>,
    /// How often it must be seen in the `get` of another queue that feeds it as well.
    gets: u32,
}

impl Queues {
    /// Searches for more queues in these frames of the main thread.
    pub(super) fn search(&mut self, memory: Memory, walker: &mut Walker, frames: &[Frame]) {
        let mut reach = Reach { memory, walker };
        for found in reach.deques(frames) {
            self.add(memory, found);
        }
    }

    /// Whether no queue that feeds the main thread is known.
    pub(super) fn has_no_source(&self) -> bool {
        self.sources().next().is_none() && self.shared().is_none()
    }

    /// Whether queues within the process are known.
    pub(super) fn has_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// Whether queues that the process shares with others are known.
    pub(super) fn has_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    fn sources(&self) -> impl Iterator<Item = &PolledDeque> {
        let frequent_get = self.frequent_get();
        let known = self.known.iter();
        known.filter(move |known| feeds(known, frequent_get))
    }

    /// Returns what a queue must show to count as feeding the main thread. `None` until the main thread was seen in
    /// some `get` so often that it would have been seen in that of every queue that feeds it. If it waits more often
    /// outside the known queues, a queue that it rarely waits for holds something other than batches.
    fn frequent_get(&self) -> Option<FrequentGet> {
        let gets = |known: &&PolledDeque| known.supply.main_gets;
        let most = self.known.iter().max_by_key(gets);
        let often = most.as_ref().map_or(0, gets);
        if self.waits_elsewhere.max(often) < FREQUENT_GETS {
            return None;
        }
        Some(if self.waits_elsewhere > often {
            FrequentGet {
                limit: None,
                gets: (self.waits_elsewhere / RARE_RATIO).max(1),
            }
        } else {
            FrequentGet {
                limit: most?.capacity,
                gets: 1,
            }
        })
    }

    fn add(&mut self, memory: Memory, found: FoundDeque) {
        let is_known = self.known.iter().any(|known| known.deque.at == found.deque);
        self.add_shared(&memory, found);
        if is_known || self.known.len() >= QUEUES || self.refused.contains(&found.deque) {
            return;
        }
        let owner = found.owner;
        let queue = owner.and_then(|owner| queue_of(&memory, owner, found.deque).unwrap_or(None));
        let Ok(Some(deque)) = Deque::at(memory, found.deque) else {
            return;
        };
        // Locks and the like keep their waiters in deques, which are mostly empty.
        if queue.is_some() || deque.read(0).is_ok_and(|content| content.len > 0) {
            self.known.push(PolledDeque {
                deque,
                owner,
                queue: queue.and(owner),
                capacity: queue.filter(|most| *most > 0),
                supply: Supply::default(),
                fillers: HashSet::new(),
                counted: None,
                polls: 0,
                polls_without: 0,
            });
        }
    }

    /// Adds a queue that the process shares with others. It keeps what a thread is yet to send in a deque.
    fn add_shared(&mut self, memory: &Memory, found: FoundDeque) {
        let Some(owner) = found.owner else { return };
        let is_known = self.shared.iter().any(|known| known.at == owner);
        if !is_known && self.shared.len() < QUEUES {
            self.shared
                .extend(SharedQueue::at(memory, owner).unwrap_or(None));
        }
    }

    /// Polls all known queues while the main thread is in these frames. `own`: the function of the program's own in
    /// which the main thread waits for a batch, if it does.
    pub(super) fn poll(
        &mut self,
        memory: Memory,
        walker: &mut Walker,
        frames: &[Frame],
        own: Option<&Frame>,
    ) {
        self.record_get(memory, frames);
        if let Some(own) = own {
            self.record_own_get(&memory, own);
        }
        if let Some(main) = walker.main() {
            self.shared.retain_mut(|known| known.poll(&memory, main));
        }
        if self.known.is_empty() {
            return;
        }
        let outermost = frames.iter().rev().take(FRAMES);
        let held = outermost.flat_map(|frame| frame.local_objects(&memory).unwrap_or_default());
        let held: HashSet<usize> = held.collect();
        let mut reach = Reach { memory, walker };
        let refused = &mut self.refused;
        // The queues nearest to the loop come first.
        let mut arrived = HashSet::new();
        let known_before = self.known.len();
        self.known.retain_mut(|known| {
            let stays = known.poll(&mut reach, &held, &mut arrived);
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
                known.supply.reset_passed_on();
            }
        }
        self.count();
    }

    /// Records the queue whose `get` a thread other than the main one is in, by its frames.
    pub(super) fn poll_other(&mut self, memory: &Memory, frames: &[Frame]) {
        let Some(owner) = in_get(memory, frames) else {
            return;
        };
        let mut known = self.known.iter_mut();
        if let Some(known) = known.find(|known| known.queue == Some(owner)) {
            known.supply.count_other_get();
        }
    }

    /// Records a poll of all other threads. If all threads that hold a queue fill it, the main thread must be the one
    /// that takes from it. That does not count if it is true of several queues: one may lead to the other.
    pub(super) fn poll_fillers(&mut self, memory: &Memory, threads: &[OtherStack]) {
        let all_fill = self.known.iter_mut().map(|known| {
            let Some(queue) = known.queue else {
                return false;
            };
            let holds = |thread: &&OtherStack| thread.objects.contains(&queue);
            let waits = |thread: &&OtherStack| in_put(memory, &thread.frames) == Some(queue);
            let fills = threads.iter().filter(holds).filter(waits);
            known.fillers.extend(fills.map(|thread| thread.state));
            // Forget threads that have ended.
            let is_there = |state: &usize| threads.iter().any(|thread| thread.state == *state);
            known.fillers.retain(is_there);
            let mut holders = threads.iter().filter(holds).peekable();
            holders.peek().is_some() && holders.all(|thread| known.fillers.contains(&thread.state))
        });
        let all_fill: Vec<bool> = all_fill.collect();
        let one = all_fill.iter().filter(|all| **all).count() == 1;
        for (known, all) in self.known.iter_mut().zip(all_fill) {
            known.supply.count_fillers(all && one);
        }
    }

    /// Returns the addresses of the queues or deques that the main thread takes its batches from.
    pub(super) fn feeding(&self) -> impl Iterator<Item = usize> {
        self.sources()
            .map(|known| known.queue.unwrap_or(known.deque.at))
    }

    /// Whether the main thread is in the `get` of a queue that may hold the results of its steps: another queue feeds
    /// it ahead of time and is rarely waited for.
    pub(super) fn may_hold_results(&self, memory: &Memory, frames: &[Frame]) -> bool {
        let Some(owner) = in_get(memory, frames) else {
            return false;
        };
        let is_own = |known: &&PolledDeque| known.queue == Some(owner);
        let own = self.known.iter().find(is_own);
        let often = own.map_or(0, |known| known.supply.main_gets);
        let others = self.known.iter().filter(|known| !is_own(known));
        others.map(|known| &known.supply).any(|supply| {
            supply.feeds_main() && supply.is_ahead() && supply.main_gets <= often / RARE_RATIO
        })
    }

    /// Records the queue whose `get` the main thread is in.
    fn record_get(&mut self, memory: Memory, frames: &[Frame]) {
        let Some(owner) = in_get(&memory, frames) else {
            return;
        };
        let mut known = self.known.iter_mut();
        if let Some(known) = known.find(|known| known.queue == Some(owner)) {
            known.supply.count_main_get();
            return;
        }
        if let Ok(Some(deque)) = memory.attribute_of(owner, "queue") {
            let owner = Some(owner);
            self.refused.remove(&deque);
            self.add(memory, FoundDeque { deque, owner });
        }
    }

    /// Records that the main thread waits for a batch in `own`, which may be a method of an object whose deque is
    /// known.
    fn record_own_get(&mut self, memory: &Memory, own: &Frame) {
        let object = own.first_local(memory).unwrap_or(None);
        let mut known = self.known.iter_mut();
        let known = known.find(|known| object.is_some() && known.owner == object);
        if let Some(known) = known {
            known.supply.count_main_get();
            self.waits_elsewhere = 0;
        } else {
            self.waits_elsewhere = self.waits_elsewhere.saturating_add(1);
        }
    }

    /// Adds up what was taken from all queues that feed the main thread. It may take from several in turn, or from a
    /// new one in each epoch.
    fn count(&mut self) {
        let first = self.taken == 0;
        let frequent_get = self.frequent_get();
        for known in &mut self.known {
            let Some(now) = known.supply.last().map(|poll| poll.taken) else {
                continue;
            };
            if feeds(known, frequent_get) {
                // At first, what was taken before a queue was known to feed the main thread counts, too.
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

    /// Returns the present state of the queues that feed the main thread. `None` if no queue is known to.
    pub(super) fn seen(&self) -> Option<QueueState> {
        if self.sources().next().is_none() {
            return self.shared();
        }
        let ready = |known: &PolledDeque| {
            let len = known.supply.last().filter(|poll| !poll.ordered)?.len;
            u32::try_from(len).ok()
        };
        Some(QueueState {
            taken: Some(self.taken),
            ready: sum(self.sources().map(ready)),
            capacity: sum(self.sources().map(|known| known.capacity)),
            ahead: self.sources().all(|known| known.supply.is_ahead()),
        })
    }

    /// Returns the state of the queues shared with other processes that feed the main thread ahead of time. `None` if none
    /// does.
    fn shared(&self) -> Option<QueueState> {
        let feeding = || self.shared.iter().filter(|known| known.feeds_ahead());
        feeding().next()?;
        Some(QueueState {
            taken: None,
            ready: sum(feeding().map(|known| known.ready)),
            capacity: sum(feeding().map(SharedQueue::capacity)),
            ahead: true,
        })
    }
}

/// Returns the sum over all, or `None` if one is not known.
fn sum(each: impl Iterator<Item = Option<u32>>) -> Option<u32> {
    let each: Option<Vec<u32>> = each.collect();
    each.map(|each| each.into_iter().fold(0, u32::saturating_add))
}

fn feeds(known: &PolledDeque, frequent_get: Option<FrequentGet>) -> bool {
    // If the main thread often waits for another queue, it does not suffice that only other threads fill this one.
    let seen = known.supply.came_to_main();
    let near = |frequent: FrequentGet| {
        let in_turn = seen && frequent.limit.is_some() && frequent.limit == known.capacity;
        known.supply.main_gets >= frequent.gets || in_turn
    };
    known.polls >= MIN_POLLS && known.supply.feeds_main() && frequent_get.is_none_or(near)
}

/// Returns the `queue.Queue` whose `get` a thread in these frames is in.
fn in_get(memory: &Memory, frames: &[Frame]) -> Option<usize> {
    innermost(memory, frames, |frame| frame.code.meaning.hands_over)
}

/// Returns the `queue.Queue` in whose `put` a thread in these frames waits for room.
fn in_put(memory: &Memory, frames: &[Frame]) -> Option<usize> {
    innermost(memory, frames, |frame| {
        frame.code.meaning.not_data == Some(FULL_QUEUE)
    })
}

/// Returns the `queue.Queue` that is `self` in the innermost frame in `queue.py` for which `is` returns true.
fn innermost(memory: &Memory, frames: &[Frame], is: impl Fn(&Frame) -> bool) -> Option<usize> {
    let is_here = |frame: &&Frame| is(frame) && frame.code.place.file.ends_with("/queue.py");
    frames.iter().find(is_here)?.first_local(memory).ok()?
}
