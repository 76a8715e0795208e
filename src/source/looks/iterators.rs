//! The loader iterators of one trainer: which loader each belongs to, and what they have counted in all.
//!
//! Knows counters and settings, nothing of waits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::WatchedLoader;
use crate::sample::{LoaderSettings, QueueSource, QueueTally};
use crate::source::python::{LoaderIterator, Stacks};

/// The number that the loader without workers goes by.
pub const MAIN_LOADER: u64 = u64::MAX;
/// Between two searches for iterators that no frame of the loader has shown.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

/// What the iterators of one loader tell, over all epochs.
#[derive(Debug, Clone, Default)]
pub struct IteratorSeen {
    /// Batches yielded since the first iterator that was seen began.
    pub batches: u64,
    pub settings: LoaderSettings,
    /// Pinned batches that wait, where a thread pins them.
    pub pinned: Option<QueueTally>,
}

#[derive(Debug)]
struct Tracked {
    iterator: LoaderIterator,
    /// The result pipe that was polled for it.
    fd: Option<i32>,
    loader: Option<u64>,
    yielded: u64,
}

#[derive(Debug, Default)]
pub(super) struct Iterators {
    tracked: Vec<Tracked>,
    loaders: Vec<WatchedLoader>,
    searched_at: Option<Duration>,
    pub(super) seen: BTreeMap<u64, IteratorSeen>,
}

impl Iterators {
    pub(super) fn follow(&mut self, loaders: &[WatchedLoader]) {
        self.loaders = loaders.to_vec();
        for at in 0..self.tracked.len() {
            self.tracked[at].loader = self.loader_of(&self.tracked[at]);
        }
        let known = |id: u64| id == MAIN_LOADER || loaders.iter().any(|loader| loader.id == id);
        self.seen.retain(|id, _| known(*id));
    }

    /// Of the loader that the trainer is in, whose result pipe `polled` is where it is waited for.
    pub(super) fn met(&mut self, stacks: &Stacks, address: usize, polled: Option<i32>) {
        let at = self
            .tracked
            .iter()
            .position(|known| known.iterator.address() == address);
        match at {
            Some(at) => {
                if polled.is_some() && self.tracked[at].fd != polled {
                    self.tracked[at].fd = polled;
                    self.tracked[at].loader = self.loader_of(&self.tracked[at]);
                }
            }
            None => self.track(stacks.iterator(address).ok(), polled),
        }
    }

    /// Looks for iterators in the trainer's frames, now and then while none is known.
    pub(super) fn search(&mut self, now: Duration, stacks: &mut Stacks) {
        let recently = |at: Duration| now.saturating_sub(at) < SEARCH_PAUSE;
        if !self.tracked.is_empty() || self.searched_at.is_some_and(recently) {
            return;
        }
        self.searched_at = Some(now);
        for iterator in stacks.find_iterators().unwrap_or_default() {
            self.track(Some(iterator), None);
        }
    }

    fn track(&mut self, iterator: Option<LoaderIterator>, fd: Option<i32>) {
        let Some(iterator) = iterator else { return };
        let mut tracked = Tracked {
            iterator,
            fd,
            loader: None,
            yielded: 0,
        };
        tracked.loader = self.loader_of(&tracked);
        self.tracked.push(tracked);
        self.read();
    }

    /// Reads every iterator's counters.
    pub(super) fn read(&mut self) {
        let seen = &mut self.seen;
        self.tracked.retain_mut(|tracked| {
            let Ok(state) = tracked.iterator.read() else {
                // Torn or gone: a frame or a search shows it again.
                return false;
            };
            let Some(loader) = tracked.loader else {
                return true;
            };
            let seen = seen.entry(loader).or_default();
            // The next epoch counts from the start.
            let since = if state.yielded < tracked.yielded {
                0
            } else {
                tracked.yielded
            };
            seen.batches += state.yielded - since;
            tracked.yielded = state.yielded;
            if seen.settings != *tracked.iterator.settings() {
                seen.settings = tracked.iterator.settings().clone();
            }
            if let Some(ready) = state.pinned {
                let tally = seen.pinned.get_or_insert_default();
                tally.source = QueueSource::Iterator;
                tally.looks += 1;
                tally.empty += u64::from(ready == 0);
                tally.ready_sum += u64::from(ready);
                tally.ready = ready;
            }
            true
        });
    }

    /// Batches of the loader whose result pipe is `fd`; of the only one where `fd` is not known.
    pub(super) fn batches(&self, fd: Option<i32>) -> Option<u64> {
        let of_fd = self
            .tracked
            .iter()
            .find(|tracked| fd.is_some() && tracked.fd == fd);
        let tracked = match (of_fd, self.tracked.as_slice()) {
            (Some(tracked), _) => tracked,
            (None, [only]) => only,
            _ => return None,
        };
        Some(self.seen.get(&tracked.loader?)?.batches)
    }

    /// By the pipe that was polled for it; else the only loader; else the only one with as many workers.
    fn loader_of(&self, tracked: &Tracked) -> Option<u64> {
        let workers = tracked.iterator.settings().num_workers;
        if workers == Some(0) {
            return Some(MAIN_LOADER);
        }
        let by_pipe = |loader: &&WatchedLoader| {
            tracked.fd.is_some() && loader.pipe.map(|pipe| pipe.fd) == tracked.fd
        };
        if let Some(loader) = self.loaders.iter().find(by_pipe) {
            return Some(loader.id);
        }
        let as_many = |loader: &&WatchedLoader| u32::try_from(loader.workers.len()).ok() == workers;
        let mut candidates = self.loaders.iter().filter(as_many);
        match (
            self.loaders.as_slice(),
            candidates.next(),
            candidates.next(),
        ) {
            ([only], ..) | (_, Some(only), None) => Some(only.id),
            _ => None,
        }
    }
}
