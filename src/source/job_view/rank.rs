//! One trainer of the watched job, with its loaders and their workers: what `/proc` says of each and what
//! the looking thread saw, put together into one sample.
//!
//! Knows nothing of the other ranks.

use std::collections::BTreeMap;

use super::builtin;
use super::reports::Told;
use super::slots::Slots;
use crate::job::{Loader, Process, Tree, loaders};
use crate::sample::{
    BatchClock, BatchCount, LoaderKind, LoaderSample, LoaderSettings, ProcessSample, QueueTally,
    RankSample, Tier, WorkerSample,
};
use crate::source::looks::{IteratorSeen, MAIN_LOADER, Seen, WatchedLoader, WatchedRank};
use crate::source::process::ProcessReader;
use crate::source::shared_memory::SegmentClock;
use crate::units::{Pid, ProcessKey};

/// Name that PyTorch gives the thread that pins batches in memory.
const PIN_THREAD: &str = "pt_data_pin";
/// The number of a loader that is known by the job's reports alone.
const REPORTED_LOADER: u64 = MAIN_LOADER - 1;

#[derive(Debug)]
pub(super) struct RankView {
    pub(super) key: ProcessKey,
    /// The trainer of the built-in job.
    builtin: bool,
    rank: Option<u32>,
    world_size: Option<u32>,
    pub(super) tier: Tier,
    pin_thread: Option<Pid>,
    nccl: bool,
    slots: Slots,
    /// Descriptors on which the trainer was seen to wait for a batch.
    polled: Vec<i32>,
    /// CPUs that each worker may run on, asked for now and then.
    affinity: BTreeMap<ProcessKey, Option<u32>>,
}

impl RankView {
    pub(super) fn new(key: ProcessKey) -> Self {
        Self {
            key,
            builtin: false,
            rank: None,
            world_size: None,
            tier: Tier::T0,
            pin_thread: None,
            nccl: false,
            slots: Slots::default(),
            polled: vec![],
            affinity: BTreeMap::new(),
        }
    }

    /// Finds the loaders that it has now, with the number of each. `thorough`: asks also for what changes
    /// seldom.
    pub(super) fn follow(
        &mut self,
        reader: &mut ProcessReader,
        tree: &Tree<'_>,
        trainer: &Process,
        thorough: bool,
    ) -> Vec<(u64, Loader)> {
        self.builtin = trainer.is_builtin_trainer();
        self.rank = trainer.rank;
        self.world_size = trainer.world_size;
        let workers = tree.workers(trainer);
        if thorough {
            self.tier = reader.tier(self.key.pid);
            let threads = reader.threads(self.key.pid);
            self.nccl = threads.iter().any(|(_, name)| is_of_nccl(name));
            self.pin_thread = threads
                .into_iter()
                .find_map(|(thread, name)| (name == PIN_THREAD).then_some(thread));
            self.affinity = workers
                .iter()
                .map(|worker| (worker.key, reader.cpus_allowed(worker.key.pid)))
                .collect();
        }
        self.slots.place(&loaders(trainer, &workers, &self.polled))
    }

    /// What the looking thread has to know of it.
    pub(super) fn watched(&self, placed: &[(u64, Loader)]) -> WatchedRank {
        let loader = |(id, loader): &(u64, Loader)| WatchedLoader {
            id: *id,
            pipe: loader.pipe,
            workers: loader.workers.clone(),
        };
        WatchedRank {
            key: self.key,
            builtin: self.builtin,
            pin_thread: self.pin_thread,
            loaders: placed.iter().map(loader).collect(),
        }
    }

    /// Its counters and its loaders': what `/proc` says now, what was `seen` and what it `told` until now.
    pub(super) fn sample(
        &mut self,
        reader: &mut ProcessReader,
        tree: &Tree<'_>,
        placed: &[(u64, Loader)],
        seen: &Seen,
        told: Option<&Told>,
    ) -> RankSample {
        let main = seen.mains.get(&self.key);
        if let Some(main) = main {
            self.polled.clone_from(&main.polled);
        }
        let mut process = reader.sample(self.key);
        process.cpus_allowed = reader.cpus_allowed(self.key.pid);
        let with_workers = placed
            .iter()
            .map(|(id, loader)| self.loader(reader, tree, *id, loader, seen));
        let in_main = main
            .and_then(|main| main.iterators.get(&MAIN_LOADER))
            .map(main_loader);
        let mut loaders = with_workers.chain(in_main).collect();
        if let Some(told) = told {
            add_told(&mut loaders, told);
        }
        let seen_waits = || main.map_or_else(Vec::new, |main| main.waits.clone());
        RankSample {
            key: self.key,
            rank: self.rank.or(told.and_then(|told| told.rank)),
            world_size: self.world_size,
            nccl: self.nccl,
            process,
            main: main.map(|main| main.tally),
            passes: main.map(|main| main.passes.clone()).unwrap_or_default(),
            saving: main.and_then(|main| main.saving),
            reported: told.map(|told| told.reported.clone()),
            waits: told
                .filter(|told| told.fresh)
                .map_or_else(seen_waits, |told| told.waits.clone()),
            activity: main.map(|main| main.activity.clone()).unwrap_or_default(),
            gil_holders: main
                .map(|main| main.gil_holders.clone())
                .unwrap_or_default(),
            loaders,
        }
    }

    fn loader(
        &self,
        reader: &mut ProcessReader,
        tree: &Tree<'_>,
        id: u64,
        loader: &Loader,
        seen: &Seen,
    ) -> LoaderSample {
        let main = seen.mains.get(&self.key);
        let segments = main.and_then(|main| main.segments.get(&id));
        let iterator = main.and_then(|main| main.iterators.get(&id));
        let mut workers: Vec<WorkerSample> = (0..)
            .zip(&loader.workers)
            .map(|(place, key)| self.worker(reader, *key, place, seen, segments))
            .collect();
        workers.sort_by_key(|worker| (worker.id, worker.key));
        let taken = segments.and_then(SegmentClock::taken);
        let taken = taken.map(|count| BatchCount {
            count,
            source: BatchClock::SharedMemory,
        });
        let yielded = iterator.map(|iterator| BatchCount {
            count: iterator.batches,
            source: BatchClock::Iterator,
        });
        let made = self.builtin.then(|| builtin::batches(&workers)).flatten();
        let settings = if self.builtin {
            let trainer = tree.get(self.key.pid);
            trainer.map_or_else(LoaderSettings::default, |trainer| {
                builtin::settings(&trainer.command)
            })
        } else {
            settings(tree, loader, iterator, seen)
        };
        let capacity = settings.num_workers.zip(settings.prefetch_factor);
        let pinned = iterator.and_then(|iterator| iterator.pinned);
        let queue = pinned.or_else(|| seen.queues.get(&(self.key, id)).copied());
        LoaderSample {
            id,
            kind: if self.builtin {
                LoaderKind::Builtin
            } else {
                LoaderKind::PytorchProcesses
            },
            workers,
            workers_started: self.slots.started(id),
            queue: queue.map(|queue| QueueTally {
                capacity: capacity.map(|(workers, prefetch)| workers.saturating_mul(prefetch)),
                ..queue
            }),
            batches: yielded.or(taken).or(made),
            settings,
        }
    }

    fn worker(
        &self,
        reader: &mut ProcessReader,
        key: ProcessKey,
        place: u32,
        seen: &Seen,
        segments: Option<&SegmentClock>,
    ) -> WorkerSample {
        let looked = seen.workers.get(&key);
        let process = ProcessSample {
            cpus_allowed: self.affinity.get(&key).copied().flatten(),
            ..reader.sample(key)
        };
        let batches = if self.builtin {
            builtin::made(&process)
        } else {
            segments.and_then(|segments| segments.batches(key.pid))
        };
        WorkerSample {
            key,
            id: looked.and_then(|worker| worker.id).unwrap_or(place),
            process,
            tally: looked
                .map(|worker| worker.tally)
                .filter(|tally| tally.looks > 0),
            batches,
            activity: looked
                .map(|worker| worker.activity.clone())
                .unwrap_or_default(),
            loads: looked.and_then(|worker| worker.loads.clone()),
        }
    }
}

/// PyTorch names its threads that look after a group on NCCL, NCCL its own where `NCCL_SET_THREAD_NAME=1`.
fn is_of_nccl(thread: &str) -> bool {
    thread.starts_with("pt_nccl_") || thread.starts_with("NCCL ")
}

/// Gives what the rank told of its batches to the loader that it speaks of: the one with most workers, else
/// one that is known by this alone. Who has fallen silent may load on: then what is seen counts, if anything.
fn add_told(loaders: &mut Vec<LoaderSample>, told: &Told) {
    if loaders.is_empty() {
        loaders.push(LoaderSample {
            id: REPORTED_LOADER,
            kind: LoaderKind::Reported,
            settings: LoaderSettings::default(),
            workers: vec![],
            workers_started: 0,
            queue: None,
            batches: None,
        });
    }
    // `max_by_key` takes the last of equals: reversed, that is the first.
    let largest = loaders.iter_mut().rev();
    if let Some(loader) = largest.max_by_key(|loader| loader.workers.len()) {
        if told.fresh || loader.batches.is_none() {
            loader.batches = Some(told.batches);
        }
        // Looks are spread over time, reports come once a step: only the former tell a share of time.
        let capacity = told.queue.and_then(|queue| queue.capacity);
        match &mut loader.queue {
            Some(seen) => seen.capacity = seen.capacity.or(capacity),
            None => loader.queue = told.queue,
        }
    }
}

/// A loader without workers: only its iterator shows it.
fn main_loader(iterator: &IteratorSeen) -> LoaderSample {
    LoaderSample {
        id: MAIN_LOADER,
        kind: LoaderKind::PytorchMain,
        settings: iterator.settings.clone(),
        workers: vec![],
        workers_started: 0,
        queue: None,
        batches: Some(BatchCount {
            count: iterator.batches,
            source: BatchClock::Iterator,
        }),
    }
}

/// From the iterator; what that lacks, from the workers' frames and from their number.
fn settings(
    tree: &Tree<'_>,
    loader: &Loader,
    iterator: Option<&IteratorSeen>,
    seen: &Seen,
) -> LoaderSettings {
    let mut settings = iterator
        .map(|iterator| iterator.settings.clone())
        .unwrap_or_default();
    for worker in loader
        .workers
        .iter()
        .filter_map(|key| seen.workers.get(key))
    {
        settings.num_workers = settings.num_workers.or(worker.num_workers);
        settings.persistent_workers = settings.persistent_workers.or(worker.persistent_workers);
        settings.batch_size = settings.batch_size.or(worker.batch_size);
    }
    settings.num_workers = settings
        .num_workers
        .or(u32::try_from(loader.workers.len()).ok());
    settings.start_method = settings.start_method.or_else(|| start_method(tree, loader));
    settings
}

/// How `multiprocessing` started the workers, by their command lines.
fn start_method(tree: &Tree<'_>, loader: &Loader) -> Option<String> {
    let worker = tree.get(loader.workers.first()?.pid)?;
    let method = if worker.command.contains("multiprocessing.forkserver") {
        "forkserver"
    } else if worker.command.contains("multiprocessing.spawn") {
        "spawn"
    } else if worker.command.is_empty() {
        return None;
    } else {
        "fork"
    };
    Some(method.to_owned())
}

#[cfg(test)]
mod tests {
    use super::is_of_nccl;

    #[test]
    fn threads_of_nccl_are_told_from_others() {
        for name in [
            "pt_nccl_watchdg",
            "pt_nccl_heartbt",
            "NCCL Progress 0",
            "NCCL Service  3",
        ] {
            assert!(is_of_nccl(name), "{name}");
        }
        for name in [
            "python3",
            "pt_data_pin",
            "pt_gloo_runloop",
            "pt_autograd_0",
            "",
        ] {
            assert!(!is_of_nccl(name), "{name}");
        }
    }
}
