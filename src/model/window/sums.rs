//! What passes between two samples and neither of them alone can tell: waits that ended, workers that
//! started, batches counted by clocks that come and go, readings of GPUs.
//!
//! Sums up in fixed memory; makes no rate and has no opinion.

use std::collections::{BTreeMap, VecDeque};

use crate::model::gpu::GpuSums;
use crate::model::interval::{Interval, Total};
use crate::model::overlap::{Overlap, overlap};
use crate::model::usage::{Counts, Delta, Usage, WCHAR};
use crate::sample::{
    BatchClock, BatchCount, BatchLoad, GpuSample, LoaderSample, RankSample, Sample, Wait,
    WorkerSample, WorkerTally,
};
use crate::units::ProcessKey;

/// Waits, and starts of workers, that are kept of each rank: the newest.
const KEPT: usize = 4096;
/// Loads that are kept of each worker: the newest.
const LOADS: usize = 16;

/// The sum of what passed between an older and a newer sample, step by step.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowSums {
    /// Where the first step began, in seconds since pipetop started.
    from: Option<f64>,
    /// Length of the newest step in seconds.
    pub(crate) last_step: f64,
    ranks: BTreeMap<ProcessKey, RankSums>,
    gpus: BTreeMap<GpuKey, GpuSums>,
}

/// What passed of one rank.
#[derive(Debug, Clone, Default)]
pub(crate) struct RankSums {
    /// Waits that ended, oldest first.
    pub(crate) waits: VecDeque<Wait>,
    /// All that ended; more than `waits` holds where the oldest were dropped.
    pub(crate) waits_ended: u64,
    /// When workers started, in seconds since pipetop started.
    pub(crate) starts: VecDeque<f64>,
    /// Batches of all its loaders.
    pub(crate) batches: Counted,
    loaders: BTreeMap<u64, Counted>,
    /// By loader and the worker's number in it: a loader whose workers start anew with each epoch goes on.
    workers: BTreeMap<(u64, u32), WorkerSums>,
    /// Single loads of each worker that lives, oldest first.
    loads: BTreeMap<ProcessKey, VecDeque<BatchLoad>>,
}

/// What passed of the workers that had one number, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerSums {
    pub(crate) batches: Counted,
    /// `now` is not summed.
    pub(crate) tally: WorkerTally,
    pub(crate) activity: BTreeMap<String, u64>,
    used: [Total; size_of::<Counts>() / size_of::<Option<f64>>()],
}

impl WorkerSums {
    /// `start` is when the worker started, where that lies in this time; `before` is the same process.
    fn add(
        &mut self,
        before: Option<&WorkerSample>,
        worker: &WorkerSample,
        start: Option<f64>,
        interval: &Interval,
    ) {
        let process = before.map(|before| &before.process);
        let delta = Delta::new(process, &worker.process, worker.key, interval);
        for (total, amount) in self.used.iter_mut().zip(delta.grown()) {
            total.add(amount, delta.seconds);
        }
        let tally = before.and_then(|before| before.tally);
        let grown = worker.tally.and_then(|now| now.since(tally));
        self.tally = self.tally.plus(grown.unwrap_or_default());
        for (name, count) in &worker.activity {
            let before = before.and_then(|before| before.activity.get(name));
            let grown = count.saturating_sub(before.copied().unwrap_or(0));
            if grown == 0 {
                continue;
            }
            match self.activity.get_mut(name) {
                Some(sum) => *sum += grown,
                None => drop(self.activity.insert(name.clone(), grown)),
            }
        }
        let made = match (before, start) {
            (Some(before), _) => worker
                .batches
                .zip(before.batches)
                .and_then(|(newer, older)| newer.checked_sub(older))
                .map(|batches| (batches, interval.seconds)),
            (None, Some(start)) => worker.batches.map(|batches| (batches, interval.to - start)),
            (None, None) => None,
        };
        if let Some((batches, seconds)) = made {
            self.batches.add(batches, seconds);
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage::new(self.used.map(Total::per_second))
    }

    /// Bytes that were written by write calls.
    pub(crate) fn written(&self) -> Option<f64> {
        self.used[WCHAR].known()
    }
}

/// Batches, and the seconds in which something counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counted {
    pub(crate) batches: u64,
    pub(crate) seconds: f64,
}

impl Counted {
    fn add(&mut self, batches: u64, seconds: f64) {
        self.batches = self.batches.saturating_add(batches);
        self.seconds += seconds;
    }

    /// Batches counted; `None` where nothing counted.
    pub(crate) fn known(&self) -> Option<u64> {
        (self.seconds > 0.0).then_some(self.batches)
    }

    pub(crate) fn per_second(&self) -> Option<f64> {
        Some(self.known()? as f64 / self.seconds)
    }
}

type GpuKey = (u32, Option<String>);

impl WindowSums {
    /// Adds the step from one sample to the next. What is gone from `newer` is forgotten.
    pub(crate) fn add(&mut self, older: &Sample, newer: &Sample) {
        let interval = Interval::new(older, newer);
        let from = *self.from.get_or_insert(interval.from);
        self.last_step = interval.seconds;
        let ranks = newer.job.iter().flat_map(|job| &job.ranks);
        self.ranks
            .retain(|key, _| ranks.clone().any(|rank| rank.key == *key));
        for rank in ranks {
            let before = older.job.as_ref().and_then(|job| rank_of(&job.ranks, rank));
            self.ranks
                .entry(rank.key)
                .or_default()
                .add(before, rank, &interval, from);
        }
        self.gpus
            .retain(|key, _| newer.gpus.iter().any(|gpu| gpu_key(gpu) == *key));
        for gpu in &newer.gpus {
            let key = gpu_key(gpu);
            let before = older.gpus.iter().find(|older| gpu_key(older) == key);
            // A driver that hangs leaves its last reading standing: no news.
            if gpu.read_at.is_some() && before.is_some_and(|older| older.read_at == gpu.read_at) {
                continue;
            }
            let seen = self.gpus.entry(key).or_default();
            seen.add(before, gpu, interval.seconds);
        }
    }

    pub(crate) fn rank(&self, key: ProcessKey) -> Option<&RankSums> {
        self.ranks.get(&key)
    }

    /// The rank's waits beside each GPU's idle time.
    pub(crate) fn overlaps(&self, rank: ProcessKey) -> Vec<Overlap> {
        let waits = self.ranks.get(&rank).map(|rank| &rank.waits);
        let beside = |waits| {
            let gpus = self.gpus.iter();
            gpus.filter_map(move |((index, _), gpu)| overlap(*index, waits, &gpu.pieces))
        };
        waits.into_iter().flat_map(beside).collect()
    }

    pub(crate) fn gpu(&self, gpu: &GpuSample) -> Option<&GpuSums> {
        self.gpus.get(&gpu_key(gpu))
    }
}

impl RankSums {
    /// `from` is where the first step began.
    fn add(
        &mut self,
        older: Option<&RankSample>,
        newer: &RankSample,
        interval: &Interval,
        from: f64,
    ) {
        let waits = older.map(|older| &older.waits);
        self.waits_ended = self.waits_ended.saturating_add(newer.waits.grown(waits));
        keep(KEPT, &mut self.waits, newer.waits.since(waits).copied());
        let loaders = &newer.loaders;
        self.loads.retain(|key, _| {
            let mut workers = loaders.iter().flat_map(|loader| &loader.workers);
            workers.any(|worker| worker.key == *key)
        });
        let mut counted = None;
        for loader in loaders {
            let before = older.and_then(|rank| loader_of(&rank.loaders, loader));
            if let Some(batches) = batches_grown(older.is_some(), before, loader) {
                self.loaders
                    .entry(loader.id)
                    .or_default()
                    .add(batches, interval.seconds);
                counted = Some(batches.saturating_add(counted.unwrap_or(0)));
            }
            self.add_workers(before, loader, interval, from);
        }
        if let Some(batches) = counted {
            self.batches.add(batches, interval.seconds);
        }
    }

    fn add_workers(
        &mut self,
        older: Option<&LoaderSample>,
        newer: &LoaderSample,
        interval: &Interval,
        from: f64,
    ) {
        for worker in &newer.workers {
            let before = older.and_then(|loader| {
                let mut workers = loader.workers.iter();
                workers.find(|before| before.key == worker.key)
            });
            // It may have started some steps before it was found.
            let start = interval
                .start_of(worker.key)
                .filter(|start| before.is_none() && *start >= from);
            keep(KEPT, &mut self.starts, start);
            if let Some(loads) = &worker.loads {
                let kept = self.loads.entry(worker.key).or_default();
                let before = before.and_then(|before| before.loads.as_ref());
                let before = before.map(|loads| &loads.ended);
                keep(LOADS, kept, loads.ended.since(before).copied());
            }
            let place = (newer.id, worker.id);
            let sums = self.workers.entry(place).or_default();
            sums.add(before, worker, start, interval);
        }
    }

    pub(crate) fn loader(&self, id: u64) -> Counted {
        self.loaders.get(&id).copied().unwrap_or_default()
    }

    /// Of the workers with this number.
    pub(crate) fn worker(&self, loader: u64, id: u32) -> Option<&WorkerSums> {
        self.workers.get(&(loader, id))
    }

    /// The newest loads of a worker, newest first.
    pub(crate) fn loads(&self, key: ProcessKey) -> Vec<BatchLoad> {
        let loads = self.loads.get(&key).into_iter().flatten();
        loads.rev().copied().collect()
    }
}

/// Batches of a loader in one step; `None` where its clock is not known, changed or went backwards.
///
/// A loader that is new to a rank we already watched counts from 0 if its clock is our own; the other
/// clocks may show batches from before we saw it.
fn batches_grown(watched: bool, older: Option<&LoaderSample>, newer: &LoaderSample) -> Option<u64> {
    let BatchCount { count, source } = newer.batches?;
    match older {
        Some(older) => older
            .batches
            .filter(|older| older.source == source)
            .and_then(|older| count.checked_sub(older.count)),
        None => (watched && source == BatchClock::Waits).then_some(count),
    }
}

fn rank_of<'a>(ranks: &'a [RankSample], rank: &RankSample) -> Option<&'a RankSample> {
    ranks.iter().find(|other| other.key == rank.key)
}

fn loader_of<'a>(loaders: &'a [LoaderSample], loader: &LoaderSample) -> Option<&'a LoaderSample> {
    loaders.iter().find(|other| other.id == loader.id)
}

fn gpu_key(gpu: &GpuSample) -> GpuKey {
    (gpu.index, gpu.uuid.clone())
}

/// Takes new ones in; of more than `most` the oldest go.
fn keep<T>(most: usize, kept: &mut VecDeque<T>, new: impl IntoIterator<Item = T>) {
    for item in new {
        if kept.len() == most {
            kept.pop_front();
        }
        kept.push_back(item);
    }
}
