//! The loader iterators of one trainer: which loader each belongs to, and their total counts.
//!
//! Does not depend on waits.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::time::Duration;

use super::datasets::Datasets;
use super::moves::Moves;
use super::priority;
use super::seen::{IteratorSeen, WatchedLoader};
use super::tracked_iterator::TrackedIterator;
use super::turns::Turns;
use crate::sample::{MainTally, Passes};
use crate::source::python::{LoaderIterator, Stacks};
use crate::units::keep_newest;

/// Number used for the loader without workers.
pub const MAIN_LOADER: u64 = u64::MAX;
/// First and longest pause between two searches for iterators that no frame of the loader has shown; the pause doubles
/// after each search if some are known.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Time between two reads of the counters where no wait begins or ends.
const READ_AFTER: Duration = Duration::from_millis(200);

/// Maximum number of iterators remembered that could not be read.
const LOST: usize = 16;
/// Maximum number of datasets remembered whose iterators feed another iterator.
const NESTED: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Iterators {
    datasets: Datasets,
    tracked: Vec<TrackedIterator>,
    /// Iterators that could not be read: the address, and the number of batches counted. One that was only changing at
    /// that moment may be found again.
    lost: Vec<(usize, u64)>,
    /// Addresses of the datasets whose iterators feed another iterator, and not the trainer.
    nested: VecDeque<usize>,
    turns: Turns,
    moves: Moves,
    loaders: Vec<WatchedLoader>,
    /// Address of the iterator that the trainer was last seen in.
    met: Option<usize>,
    searched_at: Option<Duration>,
    pause: Duration,
    read_at: Duration,
    pub(super) seen: BTreeMap<u64, IteratorSeen>,
}

impl Iterators {
    pub(super) fn follow(&mut self, loaders: &[WatchedLoader]) {
        // New workers belong to a new iterator.
        if self.loaders != loaders {
            self.pause = SEARCH_PAUSE;
        }
        self.loaders = loaders.to_vec();
        for at in 0..self.tracked.len() {
            // The next epoch's iterator may have the same address.
            if let Ok(Some(fd)) = self.tracked[at].iterator.result_pipe() {
                self.tracked[at].fd = Some(fd);
            }
            self.tracked[at].loader = self.loader_of(&self.tracked[at]);
        }
    }

    /// Records the iterator of the loader that the trainer is in. `polled`: its result pipe, if the trainer waits for
    /// that. `outer`: address of the iterator that takes its batches, if there is one.
    pub(super) fn met(
        &mut self,
        stacks: &Stacks,
        address: usize,
        polled: Option<i32>,
        outer: Option<usize>,
    ) {
        if let Some(outer) = outer {
            self.met(stacks, outer, None, None);
        }
        self.met = Some(address);
        let at = self
            .tracked
            .iter()
            .position(|known| known.iterator.address() == address);
        if let Some(at) = at {
            let dataset = self.tracked[at].iterator.dataset();
            self.nest(dataset.filter(|_| outer.is_some()));
            if polled.is_some() && self.tracked[at].fd != polled {
                self.tracked[at].fd = polled;
                self.tracked[at].loader = self.loader_of(&self.tracked[at]);
            }
        } else {
            let found = stacks.iterator(address).ok();
            let dataset = found.as_ref().and_then(LoaderIterator::dataset);
            self.nest(dataset.filter(|_| outer.is_some()));
            self.track(found, polled);
            self.found_late(address);
        }
    }

    /// Records a dataset that the trainer does not go through itself: another iterator takes its batches.
    fn nest(&mut self, dataset: Option<usize>) {
        if let Some(dataset) = dataset.filter(|it| !self.nested.contains(it)) {
            keep_newest(&mut self.nested, dataset, NESTED);
        }
    }

    /// Records that the trainer goes through the data of this iterator, which was not known until now.
    fn found_late(&mut self, address: usize) {
        let found = (self.tracked.last()).filter(|found| found.iterator.address() == address);
        let Some(found) = found else { return };
        let dataset = found.iterator.dataset();
        let own = dataset.filter(|dataset| !self.nested.contains(dataset));
        if let (Some(dataset), Some(yielded)) = (own, found.yielded_at_pass) {
            let spent = self.turns.found(dataset, yielded);
            self.datasets.add(spent);
        }
    }

    /// Counts a poll that found the trainer `inside` a loader: the one whose result pipe it `polled`, else the one that
    /// it was last seen in, for example when it is about to run again.
    pub(super) fn count_wait(&mut self, inside: bool, polled: Option<i32>) {
        let met = self.met;
        let is = |tracked: &TrackedIterator| match polled {
            Some(_) => tracked.fd == polled,
            None => Some(tracked.iterator.address()) == met,
        };
        let mut tracked = self.tracked.iter_mut().filter(|_| inside);
        let Some(tracked) = tracked.find(|tracked| is(tracked)) else {
            return;
        };
        self.met = Some(tracked.iterator.address());
        // Kept here while its loader is not known.
        tracked.waits += 1;
        if let Some(seen) = tracked.loader.and_then(|loader| self.seen.get_mut(&loader)) {
            seen.waits += mem::take(&mut tracked.waits);
        }
    }

    /// Returns the trainer's descriptors of their result pipes.
    pub(super) fn pipes(&self) -> Vec<i32> {
        self.tracked.iter().filter_map(|it| it.fd).collect()
    }

    /// Whether an iterator of PyTorch's loader is known.
    pub(super) fn has_any(&self) -> bool {
        !self.tracked.is_empty()
    }

    /// Whether an iterator without workers was seen.
    pub(super) fn loads_in_main(&self) -> bool {
        self.seen.contains_key(&MAIN_LOADER)
    }

    /// Whether the trainer has taken batches from an iterator.
    pub(super) fn yields(&self) -> bool {
        self.seen.values().any(|seen| seen.batches > 0)
    }

    /// Searches for iterators in the trainer's frames, from time to time while none is known or a loader has none: if
    /// two take turns, stacks rarely show the faster one. Also searches when none yields any more: a quick validation
    /// loader without workers may have begun.
    pub(super) fn search(&mut self, now: Duration, stacks: &mut Stacks) {
        let since = |at: Duration| now.saturating_sub(at);
        let recently = |at: Duration| since(at) < self.pause.max(SEARCH_PAUSE);
        let stands = self.moves.idle_since();
        if stands.is_none() && self.has_all() {
            return;
        }
        // The first search after batches stopped is done at once.
        let again = |at: &Duration| stands.is_none_or(|stands| *at >= stands);
        if self.searched_at.filter(again).is_some_and(recently) {
            return;
        }
        self.searched_at = Some(now);
        if !self.tracked.is_empty() {
            self.pause = (2 * self.pause).clamp(SEARCH_PAUSE, MAX_PAUSE);
        }
        let found = priority::in_turns(|| stacks.find_iterators());
        for iterator in found.unwrap_or_default() {
            let address = iterator.address();
            let mut tracked = self.tracked.iter();
            if !tracked.any(|known| known.iterator.address() == address) {
                self.track(Some(iterator), None);
                if stands.is_some() {
                    self.found_late(address);
                }
            }
        }
    }

    /// Whether the iterator of each loader is known.
    pub(super) fn has_all(&self) -> bool {
        let has_one = |loader: &WatchedLoader| {
            let mut tracked = self.tracked.iter();
            tracked.any(|known| known.loader == Some(loader.id))
        };
        !self.tracked.is_empty() && self.loaders.iter().all(has_one)
    }

    fn track(&mut self, iterator: Option<LoaderIterator>, fd: Option<i32>) {
        let Some(iterator) = iterator else { return };
        let mut lost = self.lost.iter().rev();
        let counted = lost.find(|(address, _)| *address == iterator.address());
        let mut tracked = TrackedIterator {
            yielded: counted.map_or(0, |(_, yielded)| *yielded),
            fd: iterator.result_pipe().unwrap_or_default().or(fd),
            iterator,
            loader: None,
            waits: 0,
            yielded_at_pass: None,
        };
        tracked.loader = self.loader_of(&tracked);
        if self.tracked.is_empty() {
            self.turns.forget();
        }
        self.tracked.push(tracked);
        self.read();
    }

    /// Reads the counters from time to time, and at each poll while passes are so short that their last batches would be
    /// missed.
    pub(super) fn read_if_due(&mut self, now: Duration) {
        if now.saturating_sub(self.read_at) >= READ_AFTER || self.moves.has_short_passes() {
            self.read_at = now;
            self.read();
        }
    }

    /// Reads the counters of all iterators.
    pub(super) fn read(&mut self) {
        let seen = &mut self.seen;
        let (lost, turns, datasets) = (&mut self.lost, &mut self.turns, &mut self.datasets);
        let nested = |dataset: Option<usize>| dataset.is_some_and(|it| self.nested.contains(&it));
        let known = self.tracked.len();
        let mut all_moved = Vec::new();
        let mut next_pass = false;
        self.tracked.retain_mut(|tracked| {
            let Ok(state) = tracked.iterator.read() else {
                // Torn or gone: a frame or a search may show it again.
                lost.push((tracked.iterator.address(), tracked.yielded));
                if let Some(dataset) = tracked.iterator.dataset() {
                    turns.end(dataset);
                }
                return false;
            };
            // An iterator that stands still while another goes through the same data does not belong to its pass.
            let before = tracked.yielded_at_pass.replace(state.yielded);
            let moved = before != Some(state.yielded);
            let began_anew = before.is_some_and(|before| state.yielded < before);
            if began_anew && !tracked.iterator.is_of_same_dataset() {
                // Another loader's iterator now has its memory.
                return false;
            }
            let nested = nested(tracked.iterator.dataset());
            next_pass |= began_anew && !nested;
            if let Some(dataset) = tracked.iterator.dataset().filter(|_| moved && !nested) {
                datasets.count(dataset, state.yielded);
                if let Some(before) = before {
                    let since = state.yielded.checked_sub(before);
                    all_moved.push((dataset, since.unwrap_or(state.yielded)));
                }
            }
            // Of the iterators without workers, only the one that the trainer takes batches from is reported.
            let told = |loader: &u64| !nested || *loader != MAIN_LOADER;
            let Some(loader) = tracked.loader.filter(told) else {
                return true;
            };
            let seen = seen.entry(loader).or_default();
            seen.nested = nested;
            seen.dataset = (tracked.iterator.dataset()).and_then(|it| datasets.number(it));
            tracked.count(&state, seen);
            true
        });
        if self.tracked.len() < known {
            self.pause = SEARCH_PAUSE;
        }
        if next_pass {
            self.moves.next_pass();
        }
        let excess = self.lost.len().saturating_sub(LOST);
        self.lost.drain(..excess);
        all_moved.retain(|(_, batches)| *batches > 0);
        if !all_moved.is_empty() {
            self.moves
                .moved(all_moved.iter().map(|(_, batches)| batches).sum());
            if !self.has_all() {
                // An iterator that was not found yet may take turns with these.
                return self.turns.forget();
            }
        }
        let spent = self.turns.yielded(&all_moved);
        self.datasets.add(spent);
    }

    /// Adds the main thread's time until now. `trains`: whether the last stack showed something that only training
    /// does.
    pub(super) fn spend(&mut self, now: Duration, tally: &MainTally, trains: bool) {
        self.moves.at(now);
        self.turns.spend(tally, trains);
    }

    /// Returns the passes through each dataset; the last one is the one that yielded last.
    pub(super) fn passes(&self) -> Vec<Passes> {
        self.datasets.passes()
    }

    /// Whether no batch has come for so long that a step would be over.
    pub(super) fn stand_still(&self) -> bool {
        self.moves.stand_still()
    }

    /// Returns when the newest batch was seen, if that was after this time.
    pub(super) fn yielded_since(&self, from: Duration) -> Option<Duration> {
        self.moves.since(from)
    }

    /// Returns the batches of the loader whose result pipe is `fd`.
    pub(super) fn batches(&self, fd: Option<i32>) -> Option<u64> {
        Some(self.seen.get(&self.of_pipe(fd)?.loader?)?.batches)
    }

    /// Whether the iterator whose result pipe is `fd` has yielded nothing yet.
    pub(super) fn begins(&self, fd: Option<i32>) -> bool {
        let read = self.of_pipe(fd).and_then(|tracked| tracked.yielded_at_pass);
        read == Some(0)
    }

    /// Returns the iterator whose result pipe is `fd`, or the only one if one of the pipes is unknown.
    fn of_pipe(&self, fd: Option<i32>) -> Option<&TrackedIterator> {
        let own = |tracked: &&TrackedIterator| fd.is_some() && tracked.fd == fd;
        match (self.tracked.iter().find(own), self.tracked.as_slice()) {
            (Some(tracked), _) => Some(tracked),
            (None, [only]) if may_read(only.fd, self.pipe_of(only), fd) => Some(only),
            _ => None,
        }
    }

    /// Returns the result pipe of its loader.
    fn pipe_of(&self, tracked: &TrackedIterator) -> Option<i32> {
        let of_loader = |loader: &&WatchedLoader| Some(loader.id) == tracked.loader;
        Some(self.loaders.iter().find(of_loader)?.pipe?.fd)
    }

    /// Finds the loader by the pipe that was polled for it; else the only loader; else the only one with as many
    /// workers whose pipe is not another iterator's. `None` while its own workers have not been found yet.
    fn loader_of(&self, tracked: &TrackedIterator) -> Option<u64> {
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
        let may_be_its = |loader: &WatchedLoader| {
            is_same_or_unknown(tracked.fd, loader.pipe.map(|pipe| pipe.fd))
        };
        let taken = |loader: &WatchedLoader| {
            let fd = loader.pipe.map(|pipe| pipe.fd);
            let mut others = self.tracked.iter().filter(|other| {
                other.iterator.address() != tracked.iterator.address() && other.fd.is_some()
            });
            fd.is_some() && others.any(|other| other.fd == fd)
        };
        let as_many = |loader: &&WatchedLoader| {
            u32::try_from(loader.workers.len()).ok() == workers
                && !taken(loader)
                && may_be_its(loader)
        };
        let mut candidates = self.loaders.iter().filter(as_many);
        match (
            self.loaders.as_slice(),
            candidates.next(),
            candidates.next(),
        ) {
            ([only], ..) if may_be_its(only) => Some(only.id),
            (_, Some(only), None) => Some(only.id),
            _ => None,
        }
    }
}

/// Whether `fd` may be the result pipe of the only iterator seen, which was seen to read `own` and whose loader has
/// `of_loader`; `None` = not known. Another pipe belongs to an iterator that was not seen yet, such as that of a
/// validation loader.
fn may_read(own: Option<i32>, of_loader: Option<i32>, fd: Option<i32>) -> bool {
    is_same_or_unknown(own, fd) && is_same_or_unknown(of_loader, fd)
}

/// Whether two descriptors are the same, or one of them is not known.
fn is_same_or_unknown(one: Option<i32>, other: Option<i32>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_a_reader_belongs_to_another_iterator() {
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
}
