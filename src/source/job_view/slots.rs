//! Which loader is which from one epoch to the next: a loader that makes its workers and its queue anew
//! keeps its number.

use std::collections::BTreeSet;

use crate::job::{Loader, ResultPipe};
use crate::units::ProcessKey;

#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    id: u64,
    pipe: Option<ResultPipe>,
    workers: BTreeSet<ProcessKey>,
    alive: bool,
    /// Workers beyond the first set.
    started: u64,
}

impl Slot {
    /// A worker belongs to one loader all its life.
    fn is(&self, loader: &Loader) -> bool {
        let mut workers = loader.workers.iter();
        workers.any(|worker| self.workers.contains(worker))
    }
}

impl Slots {
    /// Gives each loader its number: the one that its workers had; else that of the last loader that had as many
    /// workers and is gone; else that of any that is gone; else a new one.
    pub(super) fn place(&mut self, loaders: &[Loader]) -> Vec<(u64, Loader)> {
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

    /// Workers that `id` has started since its first set.
    pub(super) fn started(&self, id: u64) -> u64 {
        self.slots
            .iter()
            .find(|slot| slot.id == id)
            .map_or(0, |slot| slot.started)
    }

    fn slot_for(&mut self, loader: &mut Loader) -> u64 {
        let same = |slot: &Slot| slot.alive && slot.is(loader);
        let as_many = |slot: &Slot| !slot.alive && slot.workers.len() == loader.workers.len();
        let at = self
            .slots
            .iter()
            .position(same)
            .or_else(|| self.slots.iter().rposition(as_many))
            .or_else(|| self.slots.iter().rposition(|slot| !slot.alive));
        let workers: BTreeSet<ProcessKey> = loader.workers.iter().copied().collect();
        if let Some(at) = at {
            let slot = &mut self.slots[at];
            // The guess of a loader whose first worker is gone is another.
            if !loader.pipe_is_seen && slot.is(loader) {
                loader.pipe = slot.pipe.or(loader.pipe);
            }
            slot.started += workers.difference(&slot.workers).count() as u64;
            slot.pipe = loader.pipe;
            slot.alive = true;
            slot.workers = workers;
            return slot.id;
        }
        let id = self.slots.len() as u64;
        self.slots.push(Slot {
            id,
            pipe: loader.pipe,
            workers,
            alive: true,
            started: 0,
        });
        id
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
    fn without_its_first_worker_a_loader_is_still_the_same() {
        let mut slots = Slots::default();
        let pipe = |placed: Vec<(u64, Loader)>| placed[1].1.pipe.map(|pipe| pipe.inode);
        let validation = loader(100, 10..12);
        let before = slots.place(&[validation.clone(), loader(200, 20..24)]);
        assert_eq!((ids(&before), pipe(before)), (vec![0, 1], Some(200)));
        slots.place(&[loader(200, 20..24)]);
        // As its guess is now the pipe of the first worker that is left.
        let mut guess = loader(201, 21..24);
        let again = slots.place(&[validation.clone(), guess.clone()]);
        assert_eq!((ids(&again), pipe(again)), (vec![0, 1], Some(200)));
        guess.pipe_is_seen = true;
        let seen = slots.place(&[validation, guess]);
        assert_eq!((ids(&seen), pipe(seen)), (vec![0, 1], Some(201)));
    }
}
