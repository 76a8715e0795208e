//! The loader iterators of one trainer: which loader each belongs to, and what they have counted in all.
//!
//! Knows counters and settings, nothing of waits.

use std::collections::BTreeMap;
use std::time::Duration;

use super::seen::{IteratorSeen, WatchedLoader};
use crate::sample::{Passes, QueueSource};
use crate::source::python::{LoaderIterator, Stacks};

/// The number that the loader without workers goes by.
pub const MAIN_LOADER: u64 = u64::MAX;
/// Between two searches for iterators that no frame of the loader has shown; twice as long after each where some are
/// known, and that at most.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

#[derive(Debug)]
struct Tracked {
    iterator: LoaderIterator,
    /// The result pipe that was polled for it.
    fd: Option<i32>,
    loader: Option<u64>,
    yielded: u64,
    /// What it had yielded when it was last counted as a pass; `None` = not yet.
    yielded_at_pass: Option<u64>,
}

/// Passes through one dataset, by its address.
#[derive(Debug)]
struct Through {
    dataset: usize,
    passes: Passes,
    /// Batches of the newest pass.
    batches: u64,
}

/// Datasets whose passes are counted: those that were met last.
const DATASETS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Iterators {
    through: Vec<Through>,
    /// Datasets that were met.
    datasets: u64,
    tracked: Vec<Tracked>,
    loaders: Vec<WatchedLoader>,
    searched_at: Option<Duration>,
    pause: Duration,
    pub(super) seen: BTreeMap<u64, IteratorSeen>,
}

impl Iterators {
    pub(super) fn follow(&mut self, loaders: &[WatchedLoader]) {
        let ids = |loaders: &[WatchedLoader]| -> Vec<u64> {
            loaders.iter().map(|loader| loader.id).collect()
        };
        if ids(&self.loaders) != ids(loaders) {
            self.pause = SEARCH_PAUSE;
        }
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

    /// One of PyTorch's is known.
    pub(super) fn knows_any(&self) -> bool {
        !self.tracked.is_empty()
    }

    /// The trainer took batches from one.
    pub(super) fn yields(&self) -> bool {
        self.seen.values().any(|seen| seen.batches > 0)
    }

    /// Looks for iterators in the trainer's frames, now and then while none is known or a loader has none: of two that
    /// take turns, one that keeps up is hardly ever met.
    pub(super) fn search(&mut self, now: Duration, stacks: &mut Stacks) {
        let recently = |at: Duration| now.saturating_sub(at) < self.pause.max(SEARCH_PAUSE);
        if self.knows_all() || self.searched_at.is_some_and(recently) {
            return;
        }
        self.searched_at = Some(now);
        if !self.tracked.is_empty() {
            self.pause = (2 * self.pause).clamp(SEARCH_PAUSE, LONGEST_PAUSE);
        }
        for iterator in stacks.find_iterators().unwrap_or_default() {
            let address = iterator.address();
            let mut tracked = self.tracked.iter();
            if !tracked.any(|known| known.iterator.address() == address) {
                self.track(Some(iterator), None);
            }
        }
    }

    fn knows_all(&self) -> bool {
        let has_one = |loader: &WatchedLoader| {
            let mut tracked = self.tracked.iter();
            tracked.any(|known| known.loader == Some(loader.id))
        };
        !self.tracked.is_empty() && self.loaders.iter().all(has_one)
    }

    fn track(&mut self, iterator: Option<LoaderIterator>, fd: Option<i32>) {
        let Some(iterator) = iterator else { return };
        let mut tracked = Tracked {
            iterator,
            fd,
            loader: None,
            yielded: 0,
            yielded_at_pass: None,
        };
        tracked.loader = self.loader_of(&tracked);
        self.tracked.push(tracked);
        self.read();
    }

    /// Reads every iterator's counters.
    pub(super) fn read(&mut self) {
        let seen = &mut self.seen;
        let (through, datasets) = (&mut self.through, &mut self.datasets);
        self.tracked.retain_mut(|tracked| {
            let Ok(state) = tracked.iterator.read() else {
                // Torn or gone: a frame or a search shows it again.
                return false;
            };
            // An iterator that stands still while another goes through the same data is none of its pass.
            let moved = tracked.yielded_at_pass.replace(state.yielded) != Some(state.yielded);
            if let Some(dataset) = tracked.iterator.dataset().filter(|_| moved) {
                pass(through, datasets, dataset, state.yielded);
            }
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
                tally.polls += 1;
                tally.empty += u64::from(ready == 0);
                tally.ready_sum += u64::from(ready);
                tally.ready = ready;
            }
            true
        });
    }

    /// Passes through each dataset, in the order in which they were met.
    pub(super) fn passes(&self) -> Vec<Passes> {
        self.through.iter().map(|through| through.passes).collect()
    }

    /// Batches of the loader whose result pipe is `fd`; of the only one where that or its own is not known.
    pub(super) fn batches(&self, fd: Option<i32>) -> Option<u64> {
        let own = |tracked: &&Tracked| fd.is_some() && tracked.fd == fd;
        let tracked = match (self.tracked.iter().find(own), self.tracked.as_slice()) {
            (Some(tracked), _) => tracked,
            (None, [only]) if may_read(only.fd, self.pipe_of(only), fd) => only,
            _ => return None,
        };
        Some(self.seen.get(&tracked.loader?)?.batches)
    }

    /// The result pipe of its loader.
    fn pipe_of(&self, tracked: &Tracked) -> Option<i32> {
        let of_loader = |loader: &&WatchedLoader| Some(loader.id) == tracked.loader;
        Some(self.loaders.iter().find(of_loader)?.pipe?.fd)
    }

    /// By the pipe that was polled for it; else the only loader; else the only one with as many workers that is not
    /// another's by its pipe.
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
        let taken = |loader: &WatchedLoader| {
            let fd = loader.pipe.map(|pipe| pipe.fd);
            let mut others = self.tracked.iter().filter(|other| {
                other.iterator.address() != tracked.iterator.address() && other.fd.is_some()
            });
            fd.is_some() && others.any(|other| other.fd == fd)
        };
        let as_many = |loader: &&WatchedLoader| {
            u32::try_from(loader.workers.len()).ok() == workers && !taken(loader)
        };
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

/// Whether the only iterator that was met is the one whose result pipe is `fd`: it was seen to read `own`, and its
/// loader has `of_loader`; `None` = not known. Another pipe is that of an iterator that nobody has met: a validation's,
/// say.
fn may_read(own: Option<i32>, of_loader: Option<i32>, fd: Option<i32>) -> bool {
    let is_fd = |known: Option<i32>| known.is_none() || known == fd;
    fd.is_none() || is_fd(own) && is_fd(of_loader)
}

/// Counts what an iterator over this dataset has yielded: less than the one before is the next pass.
fn pass(through: &mut Vec<Through>, datasets: &mut u64, dataset: usize, yielded: u64) {
    let Some(known) = through.iter_mut().find(|known| known.dataset == dataset) else {
        if through.len() == DATASETS {
            through.remove(0);
        }
        through.push(Through {
            dataset,
            passes: Passes {
                dataset: *datasets,
                begun: 1,
                batches: yielded,
            },
            batches: yielded,
        });
        *datasets += 1;
        return;
    };
    let next = yielded < known.batches;
    let since = if next { 0 } else { known.batches };
    known.passes.begun += u64::from(next);
    known.passes.batches += yielded - since;
    known.batches = yielded;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_was_seen_to_read_is_that_of_another_iterator() {
        let [training, validation] = [Some(9), Some(11)];
        for own in [None, training] {
            for of_loader in [None, training] {
                assert!(may_read(own, of_loader, None));
                assert!(may_read(own, of_loader, training));
                let nothing_known = own.is_none() && of_loader.is_none();
                assert_eq!(may_read(own, of_loader, validation), nothing_known);
            }
        }
    }

    #[test]
    fn each_time_that_counting_begins_anew_is_a_pass() {
        let (mut through, mut datasets) = (Vec::new(), 0);
        // Attached in the middle of one; then two more, and a validation between them.
        for (dataset, yielded) in [
            (7, 40),
            (7, 41),
            (7, 2),
            (9, 1),
            (9, 6),
            (7, 0),
            (7, 5),
            (9, 2),
        ] {
            pass(&mut through, &mut datasets, dataset, yielded);
        }
        let passes: Vec<_> = through.iter().map(|known| known.passes).collect();
        let wanted = |dataset, begun, batches| Passes {
            dataset,
            begun,
            batches,
        };
        assert_eq!(passes, [wanted(0, 3, 48), wanted(1, 2, 8)]);
        for other in 100..200 {
            pass(&mut through, &mut datasets, other, 1);
        }
        assert_eq!(through.len(), DATASETS);
        assert_eq!(through[DATASETS - 1].passes, wanted(101, 1, 1));
    }
}
