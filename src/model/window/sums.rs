//! Sums of what happened between samples, which no single sample shows: waits that ended, workers that started, batches
//! of clocks that are not always available, readings of GPUs.
//!
//! Uses fixed memory; neither computes rates nor judges.

use std::collections::{BTreeMap, VecDeque};

use crate::model::gpu::GpuSums;
use crate::model::interval::{SampleInterval, Total, count_grown};
use crate::model::overlap::{Overlap, overlap};
use crate::model::usage::{Counts, Delta, Usage, WCHAR};
use crate::sample::{
    BatchClock, BatchCount, BatchLoad, GpuSample, LoaderKind, LoaderSample, RankSample, Sample,
    Wait, WorkerSample, WorkerTally,
};
use crate::units::{ProcessKey, keep_newest};

/// Number of newest waits, and of newest worker starts, kept of each rank.
const MAX_WAITS: usize = 4096;
/// Number of newest loads kept of each worker.
const LOADS: usize = 16;

/// The sum of what happened between an older and a newer sample, step by step.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowSums {
    /// Start of the first step, in seconds since pipetop started.
    from: Option<f64>,
    /// Length of the newest step in seconds.
    pub(crate) last_step: f64,
    ranks: BTreeMap<ProcessKey, RankSums>,
    gpus: BTreeMap<GpuKey, GpuSums>,
}

/// What happened in one rank.
#[derive(Debug, Clone, Default)]
pub(crate) struct RankSums {
    /// Waits that ended, oldest first.
    pub(crate) waits: VecDeque<Wait>,
    /// Number of all that ended; more than in `waits` if the oldest were dropped.
    pub(crate) waits_ended: u64,
    /// When workers started, in seconds since pipetop started.
    pub(crate) starts: VecDeque<f64>,
    /// Batches that it took from all its loaders.
    batches: Total,
    loaders: BTreeMap<u64, Total>,
    /// By loader and worker id: these sums continue if a loader restarts its workers with each epoch.
    workers: BTreeMap<(u64, u32), WorkerSums>,
    /// Single loads of each living worker, oldest first.
    loads: BTreeMap<ProcessKey, VecDeque<BatchLoad>>,
}

/// What happened in the workers that had one id, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerSums {
    pub(crate) batches: Total,
    /// `now` is not summed.
    pub(crate) tally: WorkerTally,
    pub(crate) activity: BTreeMap<String, u64>,
    used: [Total; size_of::<Counts>() / size_of::<Option<f64>>()],
}

impl WorkerSums {
    /// `start` is when the worker started, if that is in this time; `before` is an older sample of the same process.
    fn add(
        &mut self,
        before: Option<&WorkerSample>,
        worker: &WorkerSample,
        start: Option<f64>,
        interval: &SampleInterval,
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
        let (older, seconds) = match (before, start) {
            (Some(before), _) => (before.batches, interval.seconds),
            (None, Some(start)) => (Some(0), interval.to - start),
            (None, None) => (None, 0.0),
        };
        (self.batches).add(count_grown(older, worker.batches), seconds);
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage::new(self.used.map(Total::per_second))
    }

    /// Returns the bytes that were written by write calls.
    pub(crate) fn written(&self) -> Option<f64> {
        self.used[WCHAR].known()
    }
}

/// Ratio of waits to counted batches above which most batches are not counted: a wait may be seen in several parts.
const WAITS_A_BATCH: u64 = 3;
/// Minimum waits for that ratio to decide anything.
const WAITS: u64 = 20;

/// Whether so many waits have ended that most batches cannot have been counted: an iterator of one batch is gone before
/// it can be read.
pub(crate) fn are_missed(batches: u64, waits: u64) -> bool {
    waits >= WAITS && batches.saturating_mul(WAITS_A_BATCH) < waits
}

impl RankSums {
    /// Returns the batches that it took from all its loaders.
    pub(crate) fn batches(&self) -> Total {
        if are_missed(self.batches.whole().unwrap_or(0), self.waits_ended) {
            return Total::default();
        }
        self.batches
    }
}

type GpuKey = (u32, Option<String>);

impl WindowSums {
    /// Adds the step from one sample to the next. Drops ranks and GPUs that are missing in `newer`.
    pub(crate) fn add(&mut self, older: &Sample, newer: &Sample) {
        let interval = SampleInterval::new(older, newer);
        let from = *self.from.get_or_insert(interval.from);
        self.last_step = interval.seconds;
        self.ranks.retain(|key, _| newer.rank(*key).is_some());
        for rank in newer.ranks() {
            let before = older.rank(rank.key);
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
            // If the driver hangs, its last reading is repeated: there is nothing new.
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

    /// Returns the overlap of the rank's waits with each GPU's idle time.
    pub(crate) fn overlaps(&self, rank: ProcessKey) -> Vec<Overlap> {
        let waits = self.ranks.get(&rank).map(|rank| &rank.waits);
        let beside = |waits| {
            let gpus = self.gpus.iter();
            gpus.filter_map(move |((index, _), gpu)| overlap(*index, waits, &gpu.at_rest()))
        };
        waits.into_iter().flat_map(beside).collect()
    }

    pub(crate) fn gpu(&self, gpu: &GpuSample) -> Option<&GpuSums> {
        self.gpus.get(&gpu_key(gpu))
    }
}

impl RankSums {
    /// `from` is the start of the first step.
    fn add(
        &mut self,
        older: Option<&RankSample>,
        newer: &RankSample,
        interval: &SampleInterval,
        from: f64,
    ) {
        let waits = older.map(|older| &older.waits);
        self.waits_ended = self.waits_ended.saturating_add(newer.waits.grown(waits));
        keep(
            MAX_WAITS,
            &mut self.waits,
            newer.waits.since(waits).copied(),
        );
        self.loads.retain(|key, _| newer.worker(*key).is_some());
        let mut counted = None;
        for loader in &newer.loaders {
            let before = older.and_then(|rank| rank.loader(loader.id));
            if let Some(batches) = batches_grown(older.is_some(), before, loader) {
                self.loaders
                    .entry(loader.id)
                    .or_default()
                    .add(Some(batches as f64), interval.seconds);
                // Between two epochs, reports go on without workers: no batch can come.
                let is_a_place = [LoaderKind::Other, LoaderKind::Reported].contains(&loader.kind);
                let without_workers = is_a_place && loader.workers.is_empty();
                let pauses = without_workers && !self.workers.is_empty() && batches == 0;
                if !loader.nested && !pauses {
                    counted = Some(batches.saturating_add(counted.unwrap_or(0)));
                }
            }
            self.add_workers(before, loader, interval, from);
        }
        let counted = counted.map(|batches| batches as f64);
        self.batches.add(counted, interval.seconds);
    }

    fn add_workers(
        &mut self,
        older: Option<&LoaderSample>,
        newer: &LoaderSample,
        interval: &SampleInterval,
        from: f64,
    ) {
        for worker in &newer.workers {
            let before = older.and_then(|loader| {
                let mut workers = loader.workers.iter();
                workers.find(|before| before.key == worker.key)
            });
            // The worker may have started some steps before it was found.
            let start = interval
                .start_of(worker.key)
                .filter(|start| before.is_none() && *start >= from);
            keep(MAX_WAITS, &mut self.starts, start);
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

    pub(crate) fn loader(&self, id: u64) -> Total {
        self.loaders.get(&id).copied().unwrap_or_default()
    }

    /// Returns the sums of the workers with this id.
    pub(crate) fn worker(&self, loader: u64, id: u32) -> Option<&WorkerSums> {
        self.workers.get(&(loader, id))
    }

    /// Returns the newest loads of a worker, newest first.
    pub(crate) fn loads(&self, key: ProcessKey) -> Vec<BatchLoad> {
        let loads = self.loads.get(&key).into_iter().flatten();
        loads.rev().copied().collect()
    }
}

/// Returns the batches of a loader in one step; `None` if its clock is not known, has changed or went backwards.
///
/// A loader that is new in a rank that was already watched counts from 0 if pipetop counts its waits; other clocks may
/// include batches from before it was seen.
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

fn gpu_key(gpu: &GpuSample) -> GpuKey {
    (gpu.index, gpu.uuid.clone())
}

/// Appends new items. If there are more than `most`, drops the oldest.
fn keep<T>(most: usize, kept: &mut VecDeque<T>, new: impl IntoIterator<Item = T>) {
    for item in new {
        keep_newest(kept, item, most);
    }
}
