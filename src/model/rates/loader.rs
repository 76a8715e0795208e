//! Rates of a loader: its queue and its workers. Does not depend on the trainer.

use std::cmp::Ordering;

use crate::model::rates::{LoadRates, LoaderRates, QueueRates, RankRates, WorkerRates, tally};
use crate::model::window::{RankSums, WorkerSums};
use crate::sample::{
    BatchClock, LoaderKind, LoaderSample, QueueSource, QueueTally, WorkerNow, WorkerSample,
    WorkerTally,
};
use crate::units::{Share, total};

/// Returns the rates of a loader; `older` is a sample of the same loader, by its id. The sums are those of the window
/// and of the session.
pub(super) fn rates(
    older: Option<&LoaderSample>,
    newer: &LoaderSample,
    sums: (&RankSums, &RankSums),
) -> LoaderRates {
    let row = |worker: &WorkerSample| self::worker(older, newer.id, worker, sums);
    let mut workers: Vec<_> = newer.workers.iter().map(row).collect();
    workers.sort_by_key(|worker| (worker.id, worker.key.start_ticks));
    let batches_per_s = sums.0.loader(newer.id).per_second();
    divide_batches(&mut workers, newer.id, sums.0, batches_per_s);
    let queue = tally::queue(older.and_then(|older| older.queue), newer.queue);
    LoaderRates {
        gone_seconds: None,
        id: newer.id,
        kind: newer.kind,
        name: newer.name.clone(),
        settings: newer.settings.clone(),
        workers,
        workers_started: newer
            .workers_started
            .saturating_sub(older.map_or(0, |older| older.workers_started)),
        queue: queue.and_then(self::queue),
        batches_per_s,
        wait: None,
        validates: false,
        step_ms: None,
        longest_pass: None,
        batches_taken: newer
            .batches
            .filter(|batches| batches.source == BatchClock::Iterator)
            .map(|batches| batches.count),
    }
}

/// Divides the loader's batches among its workers by the bytes that each wrote: a worker writes as much for one batch
/// as for another, and almost nothing else. By its own batches, which lag behind by what the trainer took between
/// polls, if the bytes of some worker are not known.
fn divide_batches(
    workers: &mut [WorkerRates],
    loader: u64,
    sums: &RankSums,
    batches_per_s: Option<f64>,
) {
    let written = |worker: &WorkerRates| sums.worker(loader, worker.id)?.written();
    let written: Option<Vec<f64>> = workers.iter().map(written).collect();
    let made = || workers.iter().map(|worker| worker.batches_per_s).collect();
    let (Some(parts), Some(rate)) = (written.or_else(made), batches_per_s) else {
        return;
    };
    let all: f64 = parts.iter().sum();
    if all <= 0.0 {
        return;
    }
    for (worker, part) in workers.iter_mut().zip(parts) {
        let own = rate * part / all;
        worker.batches_per_s = Some(own);
        worker.load_ms = load_time(own, worker.busy);
    }
}

impl LoaderRates {
    /// Whether nothing is known of the loader but the place where the training loop takes its batches, and what the job
    /// reports, which does not say what loads them.
    pub(in crate::model) fn is_only_a_place(&self) -> bool {
        let kinds = [LoaderKind::Other, LoaderKind::Reported];
        let seen = self.queue.is_some() || self.batches_per_s.is_some();
        let known = self.name.is_some() || (seen && !self.is_reported());
        kinds.contains(&self.kind) && self.workers.is_empty() && !known
    }

    /// Whether its queue and its batches are those that the job reports.
    pub(in crate::model) fn is_reported(&self) -> bool {
        let by_probe = |queue: QueueRates| queue.source == QueueSource::Probe;
        self.kind == LoaderKind::Reported || self.queue.is_some_and(by_probe)
    }
}

fn queue(grown: QueueTally) -> Option<QueueRates> {
    let polls = grown.polls as f64;
    let mean_ready = grown.ready_sum as f64 / polls;
    Some(QueueRates {
        ready: grown.ready,
        mean_ready,
        capacity: grown.capacity,
        occupancy: grown
            .capacity
            .and_then(|capacity| Share::of(mean_ready, f64::from(capacity))),
        empty: Share::of(grown.empty as f64, polls)?,
        empty_at_most: Share::of(
            grown.empty as f64 + grown.gone as f64,
            polls + grown.gone as f64,
        )?,
        source: grown.source,
    })
}

fn worker(
    older: Option<&LoaderSample>,
    loader: u64,
    newer: &WorkerSample,
    (sums, session): (&RankSums, &RankSums),
) -> WorkerRates {
    let nothing = WorkerSums::default();
    let sums = sums.worker(loader, newer.id).unwrap_or(&nothing);
    let usage = sums.usage();
    let polls =
        |of: fn(&WorkerTally) -> u64| Share::of(of(&sums.tally) as f64, sums.tally.polls as f64);
    let stopped = polls(|tally| tally.stopped);
    let busy = polls(|tally| tally.idle.saturating_add(tally.stopped)).map(Share::complement);
    let busy = busy.filter(|_| stopped.is_none_or(|it| it.0 < MOSTLY_STOPPED));
    let ready = usage.main_cpu.zip(usage.run_delay);
    let ready = ready.map(|(cpu, delay)| cpu.0 + delay.0);
    let weight = weight_of_sleep(&sums.tally, busy, ready);
    let slept = |of: fn(&WorkerTally) -> u64| polls(of).map(|share| Share(share.0 * weight));
    let batches_per_s = sums.batches.per_second();
    WorkerRates {
        key: newer.key,
        id: newer.id,
        thread: newer.thread,
        now: newer.tally.map_or(WorkerNow::Unknown, |tally| tally.now),
        cpu: usage.cpu,
        main_cpu: usage.main_cpu,
        run_delay: usage.run_delay,
        busy,
        stopped,
        disk: slept(|tally| tally.disk),
        network: slept(|tally| tally.network),
        handover: slept(|tally| tally.handover),
        asleep: slept(|tally| tally.other),
        about_files: slept(|tally| tally.about_files),
        commands: polls(|tally| tally.commands),
        locked: slept(|tally| tally.locked),
        trains: polls(|tally| tally.trains),
        infers: polls(|tally| tally.infers),
        read: usage.read,
        rchar: usage.rchar,
        write: usage.write,
        major_faults_per_s: usage.major_faults_per_s,
        batches_per_s,
        load_ms: batches_per_s.and_then(|rate| load_time(rate, busy)),
        cpus_allowed: newer.process.cpus_allowed,
        activity: tally::activity(None, &sums.activity),
        loads: newer.loads.as_ref().map(|loads| {
            let mut workers = older.into_iter().flat_map(|loader| &loader.workers);
            let before = workers.find(|old| old.key == newer.key);
            let before = before.and_then(|older| older.loads.as_ref());
            LoadRates {
                last: session.loads(newer.key),
                short: loads
                    .short
                    .saturating_sub(before.map_or(0, |before| before.short)),
                under_way: loads.under_way,
            }
        }),
    }
}

/// Minimum share of the time stopped at which it is not known how busy a worker was.
const MOSTLY_STOPPED: f64 = 0.5;
/// Minimum polls that found a busy worker asleep for their distribution to be used.
const MIN_POLLS: u64 = 30;

/// Returns the weight of a poll that found a busy worker asleep, given the kernel's exact count of how long the worker
/// was `ready` to run. A sleep of less than 0.1 ms, as for a read from a fast disk, has often ended by the time of the
/// poll, because the poll itself takes the CPU that was free.
fn weight_of_sleep(tally: &WorkerTally, busy: Option<Share>, ready: Option<f64>) -> f64 {
    let asleep = [tally.disk, tally.network, tally.handover, tally.other];
    let asleep = total(asleep);
    if asleep < MIN_POLLS {
        return 1.0;
    }
    let polled = asleep as f64 / tally.polls as f64;
    let counted = busy.zip(ready).map(|(busy, ready)| busy.0 - ready);
    counted.map_or(1.0, |counted| (counted / polled).max(1.0))
}

/// Returns the busy time per batch, in milliseconds. `None` if no poll found it busy: that is short, not 0.
fn load_time(batches_per_s: f64, busy: Option<Share>) -> Option<f64> {
    let busy = busy.filter(|busy| busy.0 > 0.0)?;
    (batches_per_s > 0.0).then_some(1000.0 * busy.0 / batches_per_s)
}

/// Returns the worker time to make one batch of the rank's main loader: the busy time of its workers over the batches
/// that it yielded, or the main thread's own loading if there is no worker. If nothing counts the rank's batches,
/// returns the mean over workers whose own are counted: those counts lag by a batch or two.
pub(super) fn load_ms(
    loaders: &[LoaderRates],
    loading: Option<Share>,
    period_ms: Option<f64>,
) -> Option<f64> {
    let main = main_loader(loaders);
    let workers = main.map_or(&[][..], |loader| &loader.workers);
    // Each of several loaders has its own period.
    let own = main.filter(|main| others(loaders, main).next().is_some());
    let own = own.and_then(|loader| loader.batches_per_s);
    let Some(period_ms) = own.map(|rate| 1000.0 / rate).or(period_ms) else {
        let each: Vec<f64> = workers.iter().filter_map(|worker| worker.load_ms).collect();
        return (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64);
    };
    let busy: Option<f64> = if workers.is_empty() {
        loading.map(|share| share.0).filter(|share| *share > 0.0)
    } else {
        workers.iter().map(|worker| Some(worker.busy?.0)).sum()
    };
    Some(busy? * period_ms / timed(workers))
}

/// Returns the same by the rate of the main loader alone, which leaves out the time without workers. `None` if it has none.
pub(super) fn load_ms_of_workers(loaders: &[LoaderRates]) -> Option<f64> {
    let main = main_loader(loaders).filter(|loader| !loader.workers.is_empty())?;
    let rate = main.batches_per_s.filter(|rate| *rate > 0.0)?;
    load_ms(loaders, None, Some(1000.0 / rate))
}

/// Returns the part of the batches that comes from workers whose load time is known: a worker that no poll found busy
/// made its batches in a short time, not in none.
fn timed(workers: &[WorkerRates]) -> f64 {
    let rate = |worker: &WorkerRates| worker.batches_per_s.unwrap_or(0.0);
    let all: f64 = workers.iter().map(rate).sum();
    let timed = workers.iter().filter(|worker| worker.load_ms.is_some());
    let timed: f64 = timed.map(rate).sum();
    if timed > 0.0 { timed / all } else { 1.0 }
}

impl RankRates {
    /// Returns the loader that represents the rank. `None` if it has none.
    pub fn main_loader(&self) -> Option<&LoaderRates> {
        main_loader(&self.loaders)
    }

    /// Returns the other loaders that the rank takes batches from, for example if two alternate.
    pub fn other_loaders(&self) -> impl Iterator<Item = &LoaderRates> {
        let main = self.main_loader().into_iter();
        main.flat_map(|main| others(&self.loaders, main))
    }

    /// Returns the loaders that the rank takes batches from, ordered by their ids.
    pub fn loaders_in_use(&self) -> Vec<&LoaderRates> {
        let mut all: Vec<_> = self.main_loader().into_iter().collect();
        all.extend(self.other_loaders());
        all.sort_by_key(|loader| loader.id);
        all
    }
}

impl LoaderRates {
    /// Returns a number from 1 that distinguishes the loader from the others of its rank that have worker processes.
    pub fn number(&self) -> Option<u32> {
        u32::try_from(self.id).ok()?.checked_add(1)
    }

    /// Returns the loader's name if there are several.
    pub fn title(&self) -> String {
        match (self.number(), self.kind) {
            (Some(number), _) => format!("loader {number}"),
            (None, LoaderKind::PytorchMain) => "main-thread loader".to_owned(),
            (None, _) => self.name.clone().unwrap_or_else(|| "own loader".to_owned()),
        }
    }
}

/// Returns the loaders other than the main one that yield batches.
fn others<'a>(
    loaders: &'a [LoaderRates],
    main: &LoaderRates,
) -> impl Iterator<Item = &'a LoaderRates> {
    let main = main.id;
    let others = loaders.iter().filter(move |loader| loader.id != main);
    others.filter(|loader| loader.batches_per_s.is_some_and(|rate| rate > 0.0))
}

/// Divides the rank's wait among its loaders by the polls that found the trainer in each. Does nothing if the polls of
/// a loader that it takes batches from are not counted.
pub(super) fn divide_wait(
    loaders: &mut [LoaderRates],
    wait: Option<Share>,
    polls: impl Fn(u64) -> Option<u64>,
) {
    let in_use = |loader: &&mut LoaderRates| loader.batches_per_s.is_some_and(|rate| rate > 0.0);
    let counted = loaders.iter_mut().filter(in_use);
    let counted: Option<Vec<_>> = counted
        .map(|loader| polls(loader.id).map(|polls| (loader, polls as f64)))
        .collect();
    let (Some(counted), Some(wait)) = (counted, wait) else {
        return;
    };
    let all: f64 = counted.iter().map(|(_, polls)| polls).sum();
    for (loader, polls) in counted {
        loader.wait = Share::of(polls * wait.0, all);
    }
}

/// Computes the steps of loaders that the trainer takes batches from at different times, such as those for training and
/// for validation. `own` is the share of the time that it goes through the data of a loader, and `counted` the share in
/// which the loader's batches were counted: the two are almost equal if the loader's workers end with each pass.
pub(super) fn steps_in_turn(
    loaders: &mut [LoaderRates],
    own: impl Fn(&LoaderRates) -> Option<Share>,
    counted: impl Fn(u64) -> Option<Share>,
) {
    let step = |loader: &LoaderRates| {
        let own = own(loader)?;
        let stepping = Share::of(own.0 - loader.wait?.0, own.0).filter(|share| share.0 > 0.0)?;
        let rate = loader.batches_per_s.filter(|rate| *rate > 0.0)?;
        Some(1000.0 * stepping.0 / (rate * (counted(loader.id)?.0 / own.0).max(1.0)))
    };
    for loader in loaders {
        loader.step_ms = step(loader);
    }
}

/// Minimum share of the time in waits for a loader that shows that it is the limiting one.
const WAITED_FOR: f64 = 0.05;
/// Minimum ratio of two rates that count as equal: a batch more or less in a window makes no difference.
const EQUAL_RATIO: f64 = 0.8;

/// Returns the loader that represents its rank: the one that it waits for, else the one that yields most batches. Among
/// equals, such as loaders that each give a batch to every step, returns the one whose workers are busiest, since that
/// one limits; then the one whose queue is seen, then the one with more workers, then the first. `None` without any
/// loader.
pub(super) fn main_loader(loaders: &[LoaderRates]) -> Option<&LoaderRates> {
    let wait = |loader: &LoaderRates| loader.wait.map_or(0.0, |wait| wait.0);
    let waited_for = loaders.iter().map(wait).fold(0.0, f64::max) >= WAITED_FOR;
    let rate = |loader: &LoaderRates| {
        if waited_for {
            wait(loader)
        } else {
            loader.batches_per_s.unwrap_or(0.0)
        }
    };
    let most = loaders.iter().map(rate).fold(0.0, f64::max);
    let busy = |loader: &LoaderRates| {
        let busy = loader.workers.iter().filter_map(|worker| worker.busy);
        busy.map(|share| share.0).sum::<f64>() / loader.workers.len().max(1) as f64
    };
    let before = |one: &&LoaderRates, other: &&LoaderRates| {
        let apart = (busy(one) - busy(other)).abs() > 1.0 - EQUAL_RATIO;
        let busier = busy(one).total_cmp(&busy(other));
        let busier = if apart { busier } else { Ordering::Equal };
        busier
            .then(one.queue.is_some().cmp(&other.queue.is_some()))
            .then(one.workers.len().cmp(&other.workers.len()))
    };
    let as_many = loaders
        .iter()
        .filter(|loader| rate(loader) >= EQUAL_RATIO * most);
    // `max_by` returns the last of equals: in reverse order, that is the first.
    as_many.rev().max_by(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sleeps_that_polls_miss_are_counted_by_the_kernel() {
        let tally = WorkerTally {
            polls: 200,
            cpu: 120,
            disk: 60,
            other: 20,
            ..WorkerTally::default()
        };
        let weight = |tally: &WorkerTally, ready| weight_of_sleep(tally, Some(Share(1.0)), ready);
        // 40 % of the polls found it asleep, and it was ready for 30 % of the time.
        assert!((weight(&tally, Some(0.3)) - 1.75).abs() < 1e-9);
        // When CPUs are short, polls come late and find the worker asleep too often: that is not corrected.
        assert!((weight(&tally, Some(0.8)) - 1.0).abs() < 1e-9);
        assert!((weight(&tally, None) - 1.0).abs() < 1e-9);
        let few = WorkerTally {
            cpu: 180,
            disk: 20,
            other: 0,
            ..tally
        };
        assert!((weight(&few, Some(0.3)) - 1.0).abs() < 1e-9);
    }
}
