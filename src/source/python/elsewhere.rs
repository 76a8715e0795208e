//! Which iterators other threads of the process run: they give those threads their items, and not the main thread.
//!
//! Does not know what the items are, nor which thread trains.

use std::collections::HashMap;

use super::frames::Walker;
use super::memory::Memory;

/// Number of searches after which an iterator that no other thread was seen to run is the main thread's own. Each walks the
/// stacks of all threads.
const SEARCHES: u32 = 64;
const MAX_KNOWN: usize = 256;

/// What searches have shown of the iterators so far, by their addresses.
#[derive(Debug, Default)]
pub(super) struct RunElsewhere {
    known: HashMap<usize, RunBy>,
}

#[derive(Debug, Clone, Copy)]
enum RunBy {
    AnotherThread,
    /// No thread that was seen in this many searches.
    NobodyIn(u32),
}

impl RunElsewhere {
    /// Whether another thread was seen in a method of `iterator`.
    pub(super) fn contains(
        &mut self,
        memory: &Memory,
        walker: &mut Walker,
        iterator: usize,
    ) -> bool {
        let searches = match self.known.get(&iterator) {
            Some(RunBy::AnotherThread) => return true,
            Some(RunBy::NobodyIn(searches)) => *searches,
            None => 0,
        };
        if searches >= SEARCHES {
            return false;
        }
        let found = is_on_a_stack(memory, walker, iterator);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let run_by = if found {
            RunBy::AnotherThread
        } else {
            RunBy::NobodyIn(searches + 1)
        };
        self.known.insert(iterator, run_by);
        found
    }
}

/// Whether an object is the first local of a function, such as `self`, on the stack of a thread other than the main one. A
/// thread whose stack changes meanwhile is left out.
fn is_on_a_stack(memory: &Memory, walker: &mut Walker, object: usize) -> bool {
    let threads = walker.others(memory).unwrap_or_default();
    threads.into_iter().any(|thread| {
        let frames = walker.frames_of(memory, thread).unwrap_or_default();
        let mut of_object = frames.iter().map(|frame| frame.first_local(memory));
        of_object.any(|first| first == Ok(Some(object)))
    })
}
