//! An iterator of PyTorch's loader that the poller knows, and what is counted of it.
//!
//! Does not depend on other iterators.

use std::mem;

use super::seen::IteratorSeen;
use crate::sample::QueueSource;
use crate::source::python::{IteratorState, LoaderIterator};

#[derive(Debug)]
pub(super) struct TrackedIterator {
    pub(super) iterator: LoaderIterator,
    /// Its result pipe: from its memory, else the one that was polled for it.
    pub(super) fd: Option<i32>,
    pub(super) loader: Option<u64>,
    /// Number of polls that found the trainer waiting for it and are not counted for its loader yet.
    pub(super) waits: u64,
    pub(super) yielded: u64,
    /// What it had yielded when it was last counted as a pass; `None` = not counted yet.
    pub(super) yielded_at_pass: Option<u64>,
}

impl TrackedIterator {
    /// Adds to `seen` what it has yielded since it was last counted, and the waits for it.
    pub(super) fn count(&mut self, state: &IteratorState, seen: &mut IteratorSeen) {
        // Before the loader is first reported: these waits may have ended long ago.
        seen.waits += mem::take(&mut self.waits);
        // The next epoch counts from the start.
        let since = (self.yielded <= state.yielded).then_some(self.yielded);
        seen.batches += state.yielded - since.unwrap_or(0);
        self.yielded = state.yielded;
        if seen.settings != *self.iterator.settings() {
            seen.settings = self.iterator.settings().clone();
        }
        if let Some(ready) = state.pinned {
            let tally = seen.pinned.get_or_insert_default();
            tally.source = QueueSource::Iterator;
            tally.count(ready);
        }
    }
}
