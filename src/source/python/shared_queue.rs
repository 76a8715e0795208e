//! A `multiprocessing.Queue` that the main thread takes from, and the number of objects in it, from its semaphores.
//!
//! Does not know who fills it, nor how many objects were ever taken: nothing counts them.

use super::PythonError;
use super::instance::Attributes;
use super::memory::Memory;

/// `handle`, `last_tid` and `maxvalue` of a `SemLock` (`Modules/_multiprocessing/multiprocessing.h`). The last one is the
/// upper half of its word.
const HANDLE: usize = 16;
const LAST_THREAD: usize = 24;
const MAX_VALUE: usize = 32;
/// Number of a thread state's first words, among which is the thread's number.
const STATE_WORDS: usize = 48;
/// No queue of batches is longer.
const MAX_LENGTH: u32 = 1 << 20;
/// Minimum number of polls for a result. After more, the counts are halved, so that older ones count less.
const MIN_POLLS: u32 = 20;
const REMEMBERED: u32 = 400;
/// Batches are made ahead of time if at least this share of the polls show one in the queue.
const MIN_READY: f64 = 0.9;

/// A queue that processes share.
#[derive(Debug)]
pub(super) struct SharedQueue {
    pub(super) at: usize,
    attributes: Attributes,
    /// Address of the semaphore that counts its free places, and the largest value of that.
    places: usize,
    most: u32,
    /// Address of the lock that whoever takes from it holds.
    readers: usize,
    /// Whether the main thread was the last one of its process to take from it, and no thread of that process puts
    /// anything into it.
    feeds_main: bool,
    /// Number of objects in it at the last poll.
    pub(super) ready: Option<u32>,
    polls: u32,
    polls_ready: u32,
    /// Whether that number has ever changed: otherwise nothing may be taken from it any more.
    moves: bool,
}

impl SharedQueue {
    /// Returns `None` if the object at `at` is not such a queue.
    pub(super) fn at(memory: &Memory, at: usize) -> Result<Option<Self>, PythonError> {
        let attributes = memory.attributes(at)?;
        let semaphore = |name| -> Result<Option<usize>, PythonError> {
            let Some(object) = memory.attribute(&attributes, name)? else {
                return Ok(None);
            };
            let inner = memory.attribute_of(object, "_semlock")?;
            let Some(inner) = inner else { return Ok(None) };
            let name = memory.type_name_of(inner)?;
            Ok(name.ends_with("SemLock").then_some(inner))
        };
        let (Some(places), Some(readers)) = (semaphore("_sem")?, semaphore("_rlock")?) else {
            return Ok(None);
        };
        let most = memory.word(places.wrapping_add(MAX_VALUE))? >> 32;
        Ok(Some(Self {
            at,
            places: memory.word(places.wrapping_add(HANDLE))?,
            most: u32::try_from(most).unwrap_or(u32::MAX),
            readers,
            attributes,
            feeds_main: false,
            ready: None,
            polls: 0,
            polls_ready: 0,
            moves: false,
        }))
    }

    /// Polls the queue. Returns false if it is gone. `main`: address of the main thread's state.
    pub(super) fn poll(&mut self, memory: &Memory, main: usize) -> bool {
        let polled = self.try_poll(memory, main);
        // An inconsistent read: the next poll tries again.
        polled.unwrap_or_else(|error| matches!(error, PythonError::Torn(_)))
    }

    fn try_poll(&mut self, memory: &Memory, main: usize) -> Result<bool, PythonError> {
        if !memory.holds(&self.attributes)? {
            return Ok(false);
        }
        let last = memory.word(self.readers.wrapping_add(LAST_THREAD))?;
        let main = memory.array(main, STATE_WORDS)?;
        // A thread sends what this process puts into it.
        let sender = memory.attribute(&self.attributes, "_thread")?;
        let sender = sender.map(|sender| memory.type_name_of(sender));
        let puts = sender.transpose()?.is_some_and(|name| name != "NoneType");
        self.feeds_main = last != 0 && main.contains(&last) && !puts;
        let value = u32::try_from(memory.word(self.places)? & 0xffff_ffff).unwrap_or(u32::MAX);
        let ready = self.most.checked_sub(value);
        let ready = ready.filter(|ready| *ready <= MAX_LENGTH);
        self.moves |= self.ready.is_some() && self.ready != ready;
        self.ready = ready;
        self.polls += 1;
        self.polls_ready += u32::from(ready.is_some_and(|ready| ready > 0));
        if self.polls >= REMEMBERED {
            (self.polls, self.polls_ready) = (self.polls / 2, self.polls_ready / 2);
        }
        Ok(true)
    }

    /// Whether the main thread takes its batches from it, and they are there before, so that taking one is no wait. A queue
    /// that is mostly empty may hold anything, such as results.
    pub(super) fn feeds_ahead(&self) -> bool {
        let ready = f64::from(self.polls_ready) >= MIN_READY * f64::from(self.polls);
        self.feeds_main && self.moves && self.polls >= MIN_POLLS && ready
    }

    /// Returns how many objects fit in it. `None` = without a limit.
    pub(super) fn capacity(&self) -> Option<u32> {
        Some(self.most).filter(|most| *most <= MAX_LENGTH)
    }
}
