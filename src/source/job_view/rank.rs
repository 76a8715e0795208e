//! One trainer of the watched job, with its loaders and their workers: what `/proc` says of each and what
//! the poller saw, put together into one sample.
//!
//! Knows nothing of the other ranks.

use std::collections::BTreeMap;

use super::reports::RankReported;
use super::slots::Slots;
use super::{builtin, other};
use crate::job::{Loader, Process, Tree, loaders};
use crate::sample::{
    BatchClock, BatchCount, LoaderKind, LoaderSample, LoaderSettings, PollTrace, ProcessSample,
    QueueTally, RankSample, Tail, Tier, Wait, WorkerSample,
};
use crate::source::events::Events;
use crate::source::poll::{IteratorSeen, MAIN_LOADER, Seen, WatchedLoader, WatchedRank};
use crate::source::process::ProcessReader;
use crate::source::shared_memory::SegmentClock;
use crate::units::{Pid, ProcessKey};

/// Name that PyTorch gives the thread that pins batches in memory.
const PIN_THREAD: &str = "pt_data_pin";
/// The number of a loader that is known by the job's reports alone.
const REPORTED_LOADER: u64 = MAIN_LOADER - 1;
/// Waits of one sample at most, the newest: no reader keeps more.
const WAITS: usize = 4096;

#[derive(Debug)]
pub(super) struct RankView {
    pub(super) key: ProcessKey,
    /// The trainer of the built-in job.
    builtin: bool,
    rank: Option<u32>,
    world_size: Option<u32>,
    local_rank: Option<u32>,
    pub(super) tier: Tier,
    pin_thread: Option<Pid>,
    nccl: bool,
    slots: Slots,
    /// Descriptors on which the trainer was seen to wait for a batch.
    polled: Vec<i32>,
    /// CPUs that each worker may run on, asked for now and then.
    affinity: BTreeMap<ProcessKey, Option<u32>>,
    waits: Events<Wait>,
    /// How many waits there were by the polls, and by the rank's own reports.
    seen_waits: Tail<Wait>,
    reported_waits: Tail<Wait>,
    /// Where the polls of the last two samples end, the longer ago first: of two samples in a row, one may be lost.
    polls_end: [u64; 2],
}

impl RankView {
    pub(super) fn new(key: ProcessKey) -> Self {
        Self {
            key,
            builtin: false,
            rank: None,
            world_size: None,
            local_rank: None,
            tier: Tier::T0,
            pin_thread: None,
            nccl: false,
            slots: Slots::default(),
            polled: vec![],
            affinity: BTreeMap::new(),
            waits: Events::new(WAITS),
            seen_waits: Tail::default(),
            reported_waits: Tail::default(),
            polls_end: [0; 2],
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
        self.local_rank = trainer.local_rank;
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

    /// What the poller has to know of it.
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

    /// Its counters and its loaders': what `/proc` says now, what was `seen` and what it `reported` until now.
    pub(super) fn sample(
        &mut self,
        reader: &mut ProcessReader,
        tree: &Tree<'_>,
        placed: &[(u64, Loader)],
        seen: &Seen,
        reported: Option<&RankReported>,
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
        if let Some(main) = main {
            let threads =
                || other::threads(reader, self.key.pid, main, |polls| self.new_polls(polls));
            other::add(&mut loaders, placed, main, threads);
        }
        if let Some(reported) = reported {
            add_reported(&mut loaders, reported);
        }
        self.take_waits(main.map(|main| &main.waits), reported);
        let polls = main.map_or_else(PollTrace::default, |main| self.new_polls(&main.polls));
        self.polls_end = [self.polls_end[1], seen.published];
        RankSample {
            key: self.key,
            rank: self.rank.or(reported.and_then(|reported| reported.rank)),
            world_size: self.world_size,
            local_rank: self.local_rank,
            nccl: self.nccl,
            process,
            main: main.map(|main| main.tally),
            recognised: main.and_then(|main| main.recognised),
            passes: main.map(|main| main.passes.clone()).unwrap_or_default(),
            saving: main.and_then(|main| main.saving),
            not_data: main.map(other::not_data).unwrap_or_default(),
            reported: reported.map(|reported| reported.reported.clone()),
            waits: self.waits.hand_out(1),
            activity: main.map(|main| main.activity.clone()).unwrap_or_default(),
            gil_holders: main
                .map(|main| main.gil_holders.clone())
                .unwrap_or_default(),
            loaders,
            polls,
        }
    }

    /// What this sample and the one before brought.
    fn new_polls(&self, polls: &PollTrace) -> PollTrace {
        polls.since(self.polls_end[0])
    }

    /// Those that it reports where it does, else those that were seen: one row of numbers for both.
    fn take_waits(&mut self, seen: Option<&Tail<Wait>>, reported: Option<&RankReported>) {
        let fresh = reported.is_some_and(|reported| reported.fresh);
        let rows = [
            (seen, &mut self.seen_waits, !fresh),
            (
                reported.map(|reported| &reported.waits),
                &mut self.reported_waits,
                fresh,
            ),
        ];
        for (now, before, counts) in rows {
            let Some(now) = now else { continue };
            if counts {
                let new = now.since(Some(before));
                let lost = now.grown(Some(before)) - new.size_hint().0 as u64;
                self.waits.skip(lost);
                self.waits.extend(new.copied());
            }
            before.count = now.count;
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
        let polled = seen.queues.get(&(self.key, id));
        let queue = pinned.or(polled.map(|queue| queue.tally));
        LoaderSample {
            id,
            kind: if self.builtin {
                LoaderKind::Builtin
            } else {
                LoaderKind::PytorchProcesses
            },
            name: None,
            workers,
            workers_started: self.slots.started(id),
            queue: queue.map(|queue| QueueTally {
                capacity: capacity.map(|(workers, prefetch)| workers.saturating_mul(prefetch)),
                ..queue
            }),
            // The batches that wait to be pinned are counted, and not polled.
            queue_polls: polled
                .filter(|_| pinned.is_none())
                .map_or_else(PollTrace::default, |queue| self.new_polls(&queue.polls)),
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
        let polled = seen.workers.get(&key);
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
            id: polled.and_then(|worker| worker.id).unwrap_or(place),
            thread: false,
            process,
            tally: polled
                .map(|worker| worker.tally)
                .filter(|tally| tally.polls > 0),
            batches,
            activity: polled
                .map(|worker| worker.activity.clone())
                .unwrap_or_default(),
            loads: polled.and_then(|worker| worker.loads.clone()),
            polls: polled.map_or_else(PollTrace::default, |worker| self.new_polls(&worker.polls)),
        }
    }
}

/// PyTorch names its threads that look after a group on NCCL, NCCL its own where `NCCL_SET_THREAD_NAME=1`.
fn is_of_nccl(thread: &str) -> bool {
    thread.starts_with("pt_nccl_") || thread.starts_with("NCCL ")
}

/// Gives what the rank reported of its batches to the loader that it speaks of: the one with most workers, else
/// one that is known by this alone. Who has fallen silent may load on: then what is seen counts, if anything.
fn add_reported(loaders: &mut Vec<LoaderSample>, reported: &RankReported) {
    if loaders.is_empty() {
        loaders.push(LoaderSample::new(REPORTED_LOADER, LoaderKind::Reported));
    }
    // Reports do not name the loader: of several that take turns, each has its own count.
    if loaders
        .iter()
        .filter(|loader| loader.batches.is_some())
        .count()
        > 1
    {
        return;
    }
    // `max_by_key` takes the last of equals: reversed, that is the first.
    let largest = loaders.iter_mut().rev();
    if let Some(loader) = largest.max_by_key(|loader| loader.workers.len()) {
        if reported.fresh || loader.batches.is_none() {
            loader.batches = Some(reported.batches);
        }
        // Polls are spread over time, reports come once a step: only the former tell a share of time.
        let capacity = reported.queue.and_then(|queue| queue.capacity);
        match &mut loader.queue {
            Some(seen) => seen.capacity = seen.capacity.or(capacity),
            None => loader.queue = reported.queue,
        }
    }
}

/// A loader without workers: only its iterator shows it.
fn main_loader(iterator: &IteratorSeen) -> LoaderSample {
    LoaderSample {
        settings: iterator.settings.clone(),
        batches: Some(BatchCount {
            count: iterator.batches,
            source: BatchClock::Iterator,
        }),
        ..LoaderSample::new(MAIN_LOADER, LoaderKind::PytorchMain)
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
    use super::{REPORTED_LOADER, add_reported, is_of_nccl};
    use crate::sample::{BatchClock, BatchCount, LoaderKind, LoaderSample, Reported, Tail};
    use crate::source::job_view::reports::RankReported;

    fn counted(id: u64, count: u64) -> LoaderSample {
        LoaderSample {
            batches: Some(BatchCount {
                count,
                source: BatchClock::SharedMemory,
            }),
            ..LoaderSample::new(id, LoaderKind::PytorchProcesses)
        }
    }

    #[test]
    fn reported_batches_of_loaders_that_take_turns_are_of_neither() {
        let reported = RankReported {
            batches: BatchCount {
                count: 20,
                source: BatchClock::Probe,
            },
            fresh: true,
            reported: Reported::default(),
            waits: Tail::default(),
            rank: None,
            queue: None,
        };
        let counts = |mut loaders: Vec<LoaderSample>| {
            add_reported(&mut loaders, &reported);
            let batches = loaders.iter().map(|loader| loader.batches);
            batches
                .map(|batches| batches.map(|batches| batches.count))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            counts(vec![counted(1, 11), counted(2, 9)]),
            [Some(11), Some(9)]
        );
        assert_eq!(counts(vec![counted(1, 19)]), [Some(20)]);
        let unseen = LoaderSample::new(REPORTED_LOADER, LoaderKind::Reported);
        assert_eq!(counts(vec![unseen, counted(2, 19)]).len(), 2);
        assert_eq!(counts(vec![]), [Some(20)]);
    }

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
