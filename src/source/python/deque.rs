//! A `collections.deque` in another process: its objects, and how many were ever taken out of it.
//!
//! Knows the layout of `Modules/_collectionsmodule.c`, the same from 3.8 to 3.14. Knows nothing of queues.

use super::PythonError;
use super::memory::{Memory, WORD};

/// Objects in one block.
const BLOCK: usize = 64;
/// No queue of batches is longer.
const LONGEST: usize = 1 << 24;

/// A deque by its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deque {
    memory: Memory,
    pub(super) at: usize,
    of_type: usize,
}

/// What a deque held at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    /// Objects that were ever taken out.
    pub(super) taken: u64,
    pub(super) len: usize,
    /// The objects that are taken next, as far as they were asked for, and as many of those that were put in last.
    pub(super) first: Vec<usize>,
    pub(super) last: Vec<usize>,
}

impl Deque {
    /// `None` where the object at `at` is another.
    pub(super) fn at(memory: Memory, at: usize) -> Result<Option<Self>, PythonError> {
        let of_type = memory.type_of(at)?;
        let is_deque = memory.type_name(of_type)? == "collections.deque";
        Ok(is_deque.then_some(Self {
            memory,
            at,
            of_type,
        }))
    }

    /// What it holds now, with the first `most` of its objects or fewer, and the last.
    pub(super) fn read(&self, most: usize) -> Result<Content, PythonError> {
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
        // It may have changed while it was read.
        if self.memory.words(self.at)? != head || first.contains(&0) || last.contains(&0) {
            return Err(torn());
        }
        Ok(Content {
            taken,
            len,
            first,
            last,
        })
    }
}

/// Each object that is put in and each that is taken out is one change.
fn taken(changes: usize, len: usize) -> Option<u64> {
    let both = changes.checked_sub(len).filter(|_| len < LONGEST)?;
    u64::try_from(both / 2).ok()
}

#[cfg(test)]
mod tests {
    use super::taken;

    #[test]
    fn what_was_taken_follows_from_the_changes_and_what_is_left() {
        assert_eq!(taken(0, 0), Some(0));
        // Ten put in, three taken out.
        assert_eq!(taken(13, 7), Some(3));
        assert_eq!(taken(20, 0), Some(10));
        // Half changed.
        assert_eq!(taken(3, 7), None);
        assert_eq!(taken(usize::MAX, usize::MAX), None);
    }
}
