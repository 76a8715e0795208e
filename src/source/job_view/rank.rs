//! One trainer of the watched job, with its loaders and their workers: the figures of `/proc` and the counts of the
//! poller, combined into one sample.
//!
//! Does not depend on the other ranks.

use std::collections::BTreeMap;
use std::path::Path;

use super::reports::RankReported;
use super::slots::Slots;
use super::{builtin, other};
use crate::job::{Loader, Process, Tree, loaders};
use crate::sample::{
    Gap, LoaderKind, LoaderSample, LoaderSettings, PollTrace, ProcessSample, QueueTally,
    RankSample, Tail, Tier, Wait, WorkerSample,
};
use crate::source::events::Events;
use crate::source::file::unreadable;
use crate::source::poll::{
    IteratorSeen, MAIN_LOADER, MainSeen, Seen, WatchedLoader, WatchedRank, WorkerSeen,
};
use crate::source::process::ProcessReader;
use crate::source::shared_memory::SegmentClock;
use crate::units::{Pid, ProcessKey};

/// Name that PyTorch gives the thread that pins batches in memory.
const PIN_THREAD: &str = "pt_data_pin";
/// Number used for a loader that is only known from the job's reports.
const REPORTED_LOADER: u64 = MAIN_LOADER - 1;
/// Maximum number of waits in one sample, the newest ones: no reader keeps more.
const WAITS: usize = 4096;

#[derive(Debug)]
pub(super) struct RankView {
    pub(super) key: ProcessKey,
    /// Whether it is the trainer of the built-in job.
    builtin: bool,
    /// Whether its program was a Python interpreter when that was first known.
    began_as_python: Option<bool>,
    pub(super) tier: Tier,
    /// Why the tier could not be determined the last time.
    pub(super) gap: Option<Gap>,
    pin_thread: Option<Pid>,
    nccl: bool,
    slots: Slots,
    /// Descriptors on which the trainer was seen to wait for a batch.
    polled: Vec<i32>,
    /// CPUs that each worker may run on, read from time to time.
    affinity: BTreeMap<ProcessKey, Option<u32>>,
    waits: Events<Wait>,
    /// Number of waits so far, from the polls and from the rank's own reports.
    seen_waits: Tail<Wait>,
    reported_waits: Tail<Wait>,
    /// Ends of the polls of the last two samples, older first: of two samples in a row, one may be lost.
    polls_end: [u64; 2],
}

impl RankView {
    pub(super) fn new(key: ProcessKey) -> Self {
        Self {
            key,
            builtin: false,
            began_as_python: None,
            tier: Tier::T0,
            gap: None,
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

    /// Whether this process is still the trainer: it has not ended, and Python was not replaced by another program.
    pub(super) fn is(&self, now: &Process) -> bool {
        let replaced = self.began_as_python == Some(true) && now.runs_python == Some(false);
        now.key == self.key && now.state != 'Z' && !replaced
    }

    /// Returns its current loaders, with the number of each. `thorough`: also reads what seldom changes.
    pub(super) fn follow(
        &mut self,
        reader: &mut ProcessReader,
        tree: &Tree<'_>,
        trainer: &Process,
        thorough: bool,
    ) -> Vec<(u64, Loader)> {
        self.builtin = trainer.is_builtin_trainer();
        self.began_as_python = self.began_as_python.or(trainer.runs_python);
        let workers = tree.workers(trainer);
        if thorough {
            let tier = reader.tier(self.key.pid);
            self.gap = tier.as_ref().err().map(|error| {
                let path = format!("/proc/{}/syscall", self.key.pid);
                unreadable("job", Path::new(&path), error)
            });
            self.tier = tier.unwrap_or(self.tier);
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

    /// Returns the data that the poller needs.
    pub(super) fn watched(&self, trainer: &Process, placed: &[(u64, Loader)]) -> WatchedRank {
        let loader = |(id, loader): &(u64, Loader)| WatchedLoader {
            id: *id,
            pipe: loader.pipe,
            workers: loader.workers.clone(),
        };
        WatchedRank {
            key: self.key,
            builtin: self.builtin,
            pin_thread: self.pin_thread,
            accelerated: trainer.gpu != Some(false),
            loaders: placed.iter().map(loader).collect(),
        }
    }

    /// Returns its counters and those of its loaders: `/proc` now, what was `seen`, and what it `reported` so far.
    pub(super) fn sample(
        &mut self,
        reader: &mut ProcessReader,
        tree: &Tree<'_>,
        trainer: &Process,
        placed: &[(u64, Loader)],
        seen: &Seen,
        reported: Option<&RankReported>,
    ) -> RankSample {
        let polled = seen.mains.get(&self.key);
        let nothing = MainSeen::default();
        let main = polled.unwrap_or(&nothing);
        if polled.is_some() {
            self.polled.clone_from(&main.polled);
        }
        let mut process = reader.sample(self.key);
        process.cpus_allowed = reader.cpus_allowed(self.key.pid);
        let with_workers = placed
            .iter()
            .map(|(id, loader)| self.loader(reader, tree, *id, loader, seen));
        let in_main = main.iterators.get(&MAIN_LOADER);
        let mut loaders = with_workers.chain(in_main.map(main_loader)).collect();
        if polled.is_some() {
            let threads =
                || other::threads(reader, self.key.pid, main, |polls| self.new_polls(polls));
            other::add(&mut loaders, placed, main, threads);
        }
        if let Some(reported) = reported {
            add_reported(&mut loaders, reported);
        }
        self.take_waits(polled.map(|main| &main.waits), reported);
        let polls = self.new_polls(&main.polls);
        self.polls_end = [self.polls_end[1], seen.published];
        RankSample {
            key: self.key,
            rank: trainer.rank.or(reported.and_then(|reported| reported.rank)),
            world_size: trainer.world_size,
            local_rank: trainer.local_rank,
            nccl: self.nccl,
            process,
            main: polled.map(|main| main.tally),
            recognised: main.recognised,
            passes: main.passes.clone(),
            saving: main.saving,
            not_data: other::by_name(&main.not_data),
            not_data_ready: other::by_name(&main.not_data_ready),
            reported: reported.map(|reported| reported.reported.clone()),
            waits: self.waits.take(1),
            activity: main.activity.clone(),
            gil_holders: main.gil_holders.clone(),
            loaders,
            polls,
        }
    }

    /// Returns the polls of this sample and the previous one.
    fn new_polls(&self, polls: &PollTrace) -> PollTrace {
        polls.since(self.polls_end[0])
    }

    /// Adds the reported waits while the rank reports, else the seen ones. Both are in one numbered series.
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
        let segments = segments.filter(|_| !other::is_elsewhere(tree, loader, seen));
        let taken = segments.and_then(other::taken);
        let yielded = iterator.map(IteratorSeen::yielded);
        let made = self.builtin.then(|| builtin::batches(&workers)).flatten();
        let settings = if self.builtin {
            let trainer = tree.get(self.key.pid);
            trainer.map_or_else(LoaderSettings::default, |trainer| {
                builtin::settings(&trainer.command)
            })
        } else {
            let mut known = settings(tree, loader, iterator, seen);
            // If the iterator is not known, the pinning thread shows it.
            known.pin_memory = known.pin_memory.or(self.pin_thread.map(|_| true));
            known
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
                other::kind(tree, loader, seen, yielded.is_some() || taken.is_some())
            },
            name: None,
            workers,
            workers_started: self.slots.started(id),
            queue: queue.map(|queue| QueueTally {
                capacity: capacity.map(|(workers, prefetch)| workers.saturating_mul(prefetch)),
                ..queue
            }),
            // Batches that wait to be pinned are counted, not polled.
            queue_polls: polled
                .filter(|_| pinned.is_none())
                .map_or_else(PollTrace::default, |queue| self.new_polls(&queue.polls)),
            batches: yielded.or(taken).or(made),
            waits: iterator.map(|iterator| iterator.waits),
            dataset: iterator.and_then(|iterator| iterator.dataset),
            nested: iterator.is_some_and(|iterator| iterator.nested),
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
        let nothing = WorkerSeen::default();
        let polled = seen.workers.get(&key).unwrap_or(&nothing);
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
            id: polled.id.unwrap_or(place),
            thread: false,
            process,
            tally: Some(polled.tally).filter(|tally| tally.polls > 0),
            batches,
            activity: polled.activity.clone(),
            loads: polled.loads.clone(),
            polls: self.new_polls(&polled.polls),
        }
    }
}

/// Whether a thread belongs to NCCL by its name. PyTorch names the threads that it uses for a group on NCCL; NCCL names
/// its own if `NCCL_SET_THREAD_NAME=1`.
fn is_of_nccl(thread: &str) -> bool {
    thread.starts_with("pt_nccl_") || thread.starts_with("NCCL ")
}

/// Adds the rank's reported batches to the loader that they refer to: the one with the most workers, or a new one if
/// there is none. A rank that stopped reporting may still load: then the seen count is used, if any.
fn add_reported(loaders: &mut Vec<LoaderSample>, reported: &RankReported) {
    if loaders.is_empty() {
        loaders.push(LoaderSample::new(REPORTED_LOADER, LoaderKind::Reported));
    }
    // Reports do not name the loader: if there are several, each has its own count, if any.
    let in_use = |loader: &&LoaderSample| loader.batches.is_some() || !loader.workers.is_empty();
    let counted = loaders.iter().any(|loader| loader.batches.is_some());
    if counted && loaders.iter().filter(in_use).count() > 1 {
        return;
    }
    // `max_by_key` returns the last of equal elements: reversed, that is the first.
    let largest = loaders.iter_mut().rev();
    if let Some(loader) = largest.max_by_key(|loader| loader.workers.len()) {
        if reported.fresh || loader.batches.is_none() {
            loader.batches = Some(reported.batches);
        }
        // Polls are spread over time, while reports come once per step: only polls give a share of time.
        let capacity = reported.queue.and_then(|queue| queue.capacity);
        match &mut loader.queue {
            Some(seen) => seen.capacity = seen.capacity.or(capacity),
            None => loader.queue = reported.queue,
        }
    }
}

/// Returns a loader without workers, which only its iterator shows.
fn main_loader(iterator: &IteratorSeen) -> LoaderSample {
    LoaderSample {
        settings: iterator.settings.clone(),
        batches: Some(iterator.yielded()),
        waits: Some(iterator.waits),
        dataset: iterator.dataset,
        ..LoaderSample::new(MAIN_LOADER, LoaderKind::PytorchMain)
    }
}

/// Returns the settings from the iterator, completed from the workers' frames and their number.
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

/// Returns how `multiprocessing` started the workers, from their command lines.
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
    use crate::sample::literals::worker;
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
        // If two loaders have workers, the count of one does not apply to the other.
        let with_workers = |loader| LoaderSample {
            workers: vec![worker(1.0, 0)],
            ..loader
        };
        let uncounted = LoaderSample::new(2, LoaderKind::PytorchProcesses);
        assert_eq!(
            counts(vec![with_workers(counted(1, 11)), with_workers(uncounted)]),
            [Some(11), None]
        );
        let unseen = LoaderSample::new(REPORTED_LOADER, LoaderKind::Reported);
        assert_eq!(counts(vec![unseen, counted(2, 19)]).len(), 2);
        assert_eq!(counts(vec![]), [Some(20)]);
    }

    #[test]
    fn nccl_threads_are_recognised() {
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
