//! The numbers of loaders across epochs: a loader that starts new workers and a new queue keeps its number.

use std::collections::BTreeSet;

use crate::job::{Loader, ResultPipe};
use crate::units::ProcessKey;

#[derive(Debug, Default)]
pub(super) struct Slots {
    /// By the numbers of their loaders.
    slots: Vec<LoaderSlot>,
    /// How often loaders were placed.
    times: u64,
}

#[derive(Debug)]
struct LoaderSlot {
    pipe: Option<ResultPipe>,
    workers: BTreeSet<ProcessKey>,
    alive: bool,
    /// When it was last seen, in `times`.
    seen: u64,
    /// Number of workers beyond the first set.
    started: u64,
}

impl LoaderSlot {
    /// Whether the slot had one of the loader's workers: a worker belongs to one loader all its life.
    fn is(&self, loader: &Loader) -> bool {
        let mut workers = loader.workers.iter();
        workers.any(|worker| self.workers.contains(worker))
    }
}

impl Slots {
    /// Assigns each loader its number. That is the number that its workers had; else that of the last loader that is
    /// gone and had the same number of workers (the first of several that ended together); else that of the last one
    /// that is gone; else a new one.
    pub(super) fn place(&mut self, loaders: &[Loader]) -> Vec<(u64, Loader)> {
        self.times += 1;
        for slot in &mut self.slots {
            slot.alive = loaders.iter().any(|loader| slot.is(loader));
        }
        loaders
            .iter()
            .map(|loader| {
                let mut loader = loader.clone();
                let id = self.slot_for(&mut loader);
                (id, loader)
            })
            .collect()
    }

    /// Returns the number of workers that `id` has started since its first set.
    pub(super) fn started(&self, id: u64) -> u64 {
        let slot = usize::try_from(id).ok().and_then(|id| self.slots.get(id));
        slot.map_or(0, |slot| slot.started)
    }

    fn slot_for(&mut self, loader: &mut Loader) -> u64 {
        let same = |slot: &LoaderSlot| slot.alive && slot.is(loader);
        let as_many = |slot: &LoaderSlot| !slot.alive && slot.workers.len() == loader.workers.len();
        let together = || {
            let last = self.slots.iter().rfind(|slot| as_many(slot))?;
            let went = |slot: &LoaderSlot| as_many(slot) && slot.seen == last.seen;
            self.slots.iter().position(went)
        };
        let at = self
            .slots
            .iter()
            .position(same)
            .or_else(together)
            .or_else(|| self.slots.iter().rposition(|slot| !slot.alive));
        let workers: BTreeSet<ProcessKey> = loader.workers.iter().copied().collect();
        if let Some(at) = at {
            let slot = &mut self.slots[at];
            // If the loader's first worker is gone, a pipe guessed now would be another one: keeps the known one.
            if !loader.pipe_is_seen && slot.is(loader) {
                loader.pipe = slot.pipe.or(loader.pipe);
            }
            slot.started += workers.difference(&slot.workers).count() as u64;
            slot.pipe = loader.pipe;
            (slot.alive, slot.seen) = (true, self.times);
            slot.workers = workers;
            return at as u64;
        }
        self.slots.push(LoaderSlot {
            pipe: loader.pipe,
            workers,
            alive: true,
            seen: self.times,
            started: 0,
        });
        self.slots.len() as u64 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Pid;

    fn loader(inode: u64, workers: std::ops::Range<i32>) -> Loader {
        Loader {
            pipe: Some(ResultPipe { inode, fd: 3 }),
            pipe_is_seen: false,
            workers: workers
                .map(|pid| ProcessKey {
                    pid: Pid(pid),
                    start_ticks: 1,
                })
                .collect(),
        }
    }

    fn ids(placed: &[(u64, Loader)]) -> Vec<u64> {
        placed.iter().map(|(id, _)| *id).collect()
    }

    #[test]
    fn a_loader_keeps_its_number_over_epochs() {
        let mut slots = Slots::default();
        assert_eq!(ids(&slots.place(&[loader(100, 10..14)])), [0]);
        assert_eq!(
            ids(&slots.place(&[loader(100, 10..14), loader(200, 20..22)])),
            [0, 1]
        );
        assert_eq!(
            ids(&slots.place(&[loader(200, 20..22), loader(300, 30..34)])),
            [1, 0]
        );
        assert_eq!((slots.started(0), slots.started(1)), (4, 0));
        assert_eq!(ids(&slots.place(&[])), [0_u64; 0]);
        assert_eq!(ids(&slots.place(&[loader(400, 40..42)])), [1]);
    }

    #[test]
    fn loaders_that_end_together_keep_their_order() {
        let mut slots = Slots::default();
        let both = |first: i32| {
            [
                loader(100, first..first + 2),
                loader(200, first + 2..first + 4),
            ]
        };
        for epoch in 0..4 {
            assert_eq!(ids(&slots.place(&both(10 + 10 * epoch))), [0, 1]);
        }
        slots.place(&[]);
        assert_eq!(ids(&slots.place(&both(90))), [0, 1]);
    }

    #[test]
    fn without_its_first_worker_a_loader_is_still_the_same() {
        let mut slots = Slots::default();
        let pipe = |placed: Vec<(u64, Loader)>| placed[1].1.pipe.map(|pipe| pipe.inode);
        let validation = loader(100, 10..12);
        let before = slots.place(&[validation.clone(), loader(200, 20..24)]);
        assert_eq!((ids(&before), pipe(before)), (vec![0, 1], Some(200)));
        slots.place(&[loader(200, 20..24)]);
        // The guess is now the pipe of the first remaining worker.
        let mut guess = loader(201, 21..24);
        let again = slots.place(&[validation.clone(), guess.clone()]);
        assert_eq!((ids(&again), pipe(again)), (vec![0, 1], Some(200)));
        guess.pipe_is_seen = true;
        let seen = slots.place(&[validation, guess]);
        assert_eq!((ids(&seen), pipe(seen)), (vec![0, 1], Some(201)));
    }
}
