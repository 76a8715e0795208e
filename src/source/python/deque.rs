//! A `collections.deque` in another process: its objects, and how many were ever taken out of it.
//!
//! Depends on the layout of `Modules/_collectionsmodule.c`, the same from 3.8 to 3.15, but not on queues.

use super::PythonError;
use super::memory::{Memory, WORD};

/// Objects in one block.
const BLOCK: usize = 64;
/// No queue of batches is longer.
const MAX_LENGTH: usize = 1 << 24;

/// A deque by its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deque {
    memory: Memory,
    pub(super) at: usize,
    of_type: usize,
}

/// The state of a deque at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DequeState {
    /// Number of objects ever taken out.
    pub(super) taken: u64,
    pub(super) len: usize,
    /// The objects that will be taken next, at most as many as were requested.
    pub(super) first: Vec<usize>,
    /// The objects put in last, at most as many.
    pub(super) last: Vec<usize>,
}

impl Deque {
    /// Returns `None` if the object at `at` is not a deque.
    pub(super) fn at(memory: Memory, at: usize) -> Result<Option<Self>, PythonError> {
        let of_type = memory.type_of(at)?;
        let is_deque = memory.type_name(of_type)? == "collections.deque";
        Ok(is_deque.then_some(Self {
            memory,
            at,
            of_type,
        }))
    }

    /// Reads its state with at most `most` of its first and of its last objects.
    pub(super) fn read(&self, most: usize) -> Result<DequeState, PythonError> {
        let torn = || self.memory.torn();
        let head: [usize; 8] = self.memory.words(self.at)?;
        let [
            references,
            of_type,
            len,
            block,
            last_block,
            index,
            last_index,
            changes,
        ] = head;
        if references == 0 || of_type != self.of_type {
            return Err(PythonError::IteratorGone(self.memory.pid));
        }
        let taken = taken(changes, len).ok_or_else(torn)?;
        if index >= BLOCK || last_index >= BLOCK {
            return Err(torn());
        }
        let objects = |block: usize, from: usize, count: usize| match count {
            0 => Ok(vec![]),
            _ => self
                .memory
                .array(block.wrapping_add((1 + from) * WORD), count),
        };
        let count = len.min(most);
        let first = objects(block, index, count.min(BLOCK - index))?;
        let count = count.min(1 + last_index);
        let last = objects(last_block, 1 + last_index - count, count)?;
        // The deque may have changed while it was read.
        if self.memory.words(self.at)? != head || first.contains(&0) || last.contains(&0) {
            return Err(torn());
        }
        Ok(DequeState {
            taken,
            len,
            first,
            last,
        })
    }
}

/// Returns how many objects were taken out: each object put in or taken out is one change.
fn taken(changes: usize, len: usize) -> Option<u64> {
    let both = changes.checked_sub(len).filter(|_| len < MAX_LENGTH)?;
    u64::try_from(both / 2).ok()
}

#[cfg(test)]
mod tests {
    use super::taken;

    #[test]
    fn removals_are_derived_from_changes_and_the_remaining_length() {
        assert_eq!(taken(0, 0), Some(0));
        // Ten put in, three taken out.
        assert_eq!(taken(13, 7), Some(3));
        assert_eq!(taken(20, 0), Some(10));
        // Read in the middle of a change.
        assert_eq!(taken(3, 7), None);
        assert_eq!(taken(usize::MAX, usize::MAX), None);
    }
}
