//! Rates of a loader: its queue and its workers. Knows nothing of the trainer.

use crate::model::interim::RankInterim;
use crate::model::rates::{LoadRates, LoaderRates, QueueRates, WorkerRates, tally};
use crate::model::span::{Growth, Span};
use crate::sample::{BatchClock, LoaderSample, QueueTally, WorkerNow, WorkerSample, WorkerTally};
use crate::units::{BytesPerSecond, Share};

/// `older` is the same loader, by its id.
pub(super) fn rates(
    older: Option<&LoaderSample>,
    newer: &LoaderSample,
    interim: &RankInterim,
    span: &Span,
) -> LoaderRates {
    let row = |worker: &WorkerSample| {
        let older = older.and_then(|loader| {
            let mut workers = loader.workers.iter();
            workers.find(|old| old.key == worker.key)
        });
        self::worker(older, worker, interim, span)
    };
    let mut workers: Vec<_> = newer.workers.iter().map(row).collect();
    workers.sort_by_key(|worker| (worker.id, worker.key.start_ticks));
    let batches_per_s = interim.loader(newer.id).per_second();
    share_out(&mut workers, older, newer, batches_per_s);
    let queue = tally::queue(older.and_then(|older| older.queue), newer.queue);
    LoaderRates {
        id: newer.id,
        kind: newer.kind,
        settings: newer.settings.clone(),
        workers,
        workers_started: newer
            .workers_started
            .saturating_sub(older.map_or(0, |older| older.workers_started)),
        queue: queue.and_then(self::queue),
        batches_per_s,
        batches_taken: newer
            .batches
            .filter(|batches| batches.source == BatchClock::Iterator)
            .map(|batches| batches.count),
    }
}

/// Gives each worker its part of the loader's batches, by the bytes that it wrote: a worker writes as much
/// for one batch as for another, and next to nothing else. The clock of a worker's own segments lags
/// behind by what the trainer took unseen; it stays where the bytes of some worker are not known.
fn share_out(
    workers: &mut [WorkerRates],
    older: Option<&LoaderSample>,
    newer: &LoaderSample,
    batches_per_s: Option<f64>,
) {
    let bytes = |loader: &LoaderSample, key| {
        let worker = loader.workers.iter().find(|worker| worker.key == key)?;
        Some(worker.process.io?.wchar.0)
    };
    let written: Option<Vec<u64>> = workers
        .iter()
        .map(|worker| bytes(newer, worker.key)?.checked_sub(bytes(older?, worker.key)?))
        .collect();
    let (Some(written), Some(rate)) = (written, batches_per_s) else {
        return;
    };
    let all: u64 = written.iter().sum();
    if all == 0 {
        return;
    }
    for (worker, written) in workers.iter_mut().zip(written) {
        let own = rate * written as f64 / all as f64;
        worker.batches_per_s = Some(own);
        worker.load_ms = load_time(own, worker.busy);
    }
}

/// Busy time for one batch, in milliseconds.
fn load_time(batches_per_s: f64, busy: Option<Share>) -> Option<f64> {
    (batches_per_s > 0.0).then_some(1000.0 * busy?.0 / batches_per_s)
}

fn queue(grown: QueueTally) -> Option<QueueRates> {
    let looks = grown.looks as f64;
    let mean_ready = grown.ready_sum as f64 / looks;
    Some(QueueRates {
        ready: grown.ready,
        mean_ready,
        capacity: grown.capacity,
        occupancy: grown
            .capacity
            .and_then(|capacity| Share::of(mean_ready, f64::from(capacity))),
        empty: Share::of(grown.empty as f64, looks)?,
        source: grown.source,
    })
}

fn worker(
    older: Option<&WorkerSample>,
    newer: &WorkerSample,
    interim: &RankInterim,
    span: &Span,
) -> WorkerRates {
    let grown = Growth::new(
        older.map(|older| &older.process),
        &newer.process,
        newer.key,
        span,
    );
    let tally = tally::worker(older.and_then(|older| older.tally), newer.tally);
    let looks = |of: fn(&WorkerTally) -> u64| {
        tally.and_then(|tally| Share::of(of(&tally) as f64, tally.looks as f64))
    };
    let busy = looks(|tally| tally.idle).map(Share::rest);
    let batches_per_s = interim.worker(newer.key).per_second();
    WorkerRates {
        key: newer.key,
        id: newer.id,
        now: newer.tally.map_or(WorkerNow::Unknown, |tally| tally.now),
        cpu: grown
            .time(|process| process.cpu)
            .map(|cpu| cpu / grown.seconds),
        run_delay: grown
            .time(|process| process.main_run_delay)
            .and_then(|delay| Share::of(delay, grown.seconds)),
        busy,
        disk: looks(|tally| tally.disk),
        network: looks(|tally| tally.network),
        handover: looks(|tally| tally.handover),
        asleep: looks(|tally| tally.other),
        read: grown
            .count(|process| Some(process.io?.read_bytes.0))
            .map(|bytes| BytesPerSecond(bytes / grown.seconds)),
        rchar: grown
            .count(|process| Some(process.io?.rchar.0))
            .map(|bytes| BytesPerSecond(bytes / grown.seconds)),
        write: grown
            .count(|process| Some(process.io?.write_bytes.0))
            .map(|bytes| BytesPerSecond(bytes / grown.seconds)),
        major_faults_per_s: grown
            .count(|process| process.major_faults)
            .map(|faults| faults / grown.seconds),
        batches_per_s,
        load_ms: batches_per_s.and_then(|rate| load_time(rate, busy)),
        cpus_allowed: newer.process.cpus_allowed,
        activity: tally::activity(older.map(|older| &older.activity), &newer.activity),
        loads: newer.loads.as_ref().map(|loads| {
            let before = older.and_then(|older| older.loads.as_ref());
            LoadRates {
                last: interim.loads(newer.key),
                short: loads
                    .short
                    .saturating_sub(before.map_or(0, |before| before.short)),
                under_way: loads.under_way,
            }
        }),
    }
}

/// Worker time to make one batch of a rank: the busy time of all its workers over the batches that it
/// took, or the main thread's own loading where there is no worker. Where nothing counts the rank's
/// batches, the mean over workers whose own are counted: those counts are late by a batch or two.
pub(super) fn load_ms(
    loaders: &[LoaderRates],
    loading: Option<Share>,
    period_ms: Option<f64>,
) -> Option<f64> {
    let workers = || loaders.iter().flat_map(|loader| &loader.workers);
    let Some(period_ms) = period_ms else {
        let each: Vec<f64> = workers().filter_map(|worker| worker.load_ms).collect();
        return (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64);
    };
    let busy: Option<f64> = if workers().next().is_some() {
        workers().map(|worker| Some(worker.busy?.0)).sum()
    } else {
        loading.map(|share| share.0).filter(|share| *share > 0.0)
    };
    Some(busy? * period_ms)
}
