//! Rates of one worker of a loader. Does not depend on the trainer.

use crate::model::rates::tally;
use crate::model::window::{RankSums, WorkerSums};
use crate::sample::{BatchLoad, LoaderSample, UnderWay, WorkerNow, WorkerSample, WorkerTally};
use crate::units::{BytesPerSecond, Pid, ProcessKey, Share, total};

use super::Activity;

#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRates {
    pub key: ProcessKey,
    pub id: u32,
    /// The worker is a thread of the trainer, not a process.
    pub thread: bool,
    pub now: WorkerNow,
    /// CPU time of the process in cores: may exceed 1 with threads.
    pub cpu: Option<f64>,
    /// Share of the time with its main thread on a CPU.
    pub main_cpu: Option<Share>,
    /// Share of the time runnable but not running.
    pub run_delay: Option<Share>,
    /// Share of the time neither waiting for an index nor stopped. `None` if it was stopped for most of the time.
    pub busy: Option<Share>,
    /// Share of the time stopped.
    pub stopped: Option<Share>,
    /// Shares of the time: blocked on a disk, on the network, on handing over a batch, asleep otherwise.
    pub disk: Option<Share>,
    pub network: Option<Share>,
    pub handover: Option<Share>,
    pub asleep: Option<Share>,
    /// Share of the time blocked on a disk or the network in calls that open, list or query files.
    pub about_files: Option<Share>,
    /// Share of the time in which a command that the worker waits for is on a CPU, or runnable.
    pub commands: Option<Share>,
    /// Part of `asleep`: on a lock or a queue that processes share.
    pub locked: Option<Share>,
    /// Shares of the polls: it has a batch to make, and trains a model, or else runs one.
    pub trains: Option<Share>,
    pub infers: Option<Share>,
    /// From block devices, and by read calls from anywhere.
    pub read: Option<BytesPerSecond>,
    pub rchar: Option<BytesPerSecond>,
    /// Bytes written to block devices.
    pub write: Option<BytesPerSecond>,
    pub major_faults_per_s: Option<f64>,
    pub batches_per_s: Option<f64>,
    /// Busy time per batch, in milliseconds.
    pub load_ms: Option<f64>,
    pub cpus_allowed: Option<u32>,
    pub activity: Vec<Activity>,
    /// Its batches one by one. `None` if it cannot be seen which of them is being made.
    pub loads: Option<LoadRates>,
}

/// Single batches of a worker, if polls can tell them apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadRates {
    /// The newest batches of known time, newest first. In the rates of the verdict's window, also those from before it.
    pub last: Vec<BatchLoad>,
    /// Lower bound of the number of batches in this time that were too short for polls to time them.
    pub short: u64,
    /// The batch that it is making now. `None` while it waits for its next.
    pub under_way: Option<UnderWay>,
}

impl WorkerRates {
    pub fn pid(&self) -> Pid {
        self.key.pid
    }

    /// Returns the share of the time waiting for an index.
    pub fn idle(&self) -> Option<Share> {
        let stopped = self.stopped.unwrap_or_default();
        Some(Share(1.0 - self.busy?.0 - stopped.0).clamped())
    }

    /// Returns the share of the time that it wants a CPU, and the part of it in which it does not run. Polls cannot
    /// tell the two apart; the scheduler can, if its count is known.
    pub fn wants_cpu(&self) -> Option<(Share, Option<Share>)> {
        let blocked = [self.disk, self.network, self.handover, self.asleep];
        let blocked: f64 = blocked.iter().flatten().map(|share| share.0).sum();
        let wants = Share(self.busy?.0 - blocked).clamped();
        let waits = self.run_delay.map(|delay| Share(delay.0.min(wants.0)));
        Some((wants, waits))
    }
}

impl LoadRates {
    /// Returns the median and the longest time of the newest batches in milliseconds, taking the middle between the
    /// bounds of each. `None` if there is none.
    pub fn median_and_longest(&self) -> Option<(f64, f64)> {
        let mut times: Vec<f64> = self.last.iter().map(BatchLoad::middle_ms).collect();
        times.sort_by(f64::total_cmp);
        let middle = times.get(times.len() / 2)?;
        let other = times.get(times.len().saturating_sub(1) / 2)?;
        Some((f64::midpoint(*middle, *other), *times.last()?))
    }
}

pub(super) fn rates(
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
pub(super) fn load_time(batches_per_s: f64, busy: Option<Share>) -> Option<f64> {
    let busy = busy.filter(|busy| busy.0 > 0.0)?;
    (batches_per_s > 0.0).then_some(1000.0 * busy.0 / batches_per_s)
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
