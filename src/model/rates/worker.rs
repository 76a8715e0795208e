//! Rates of one worker of a loader, and the functions that a process was seen in.

use crate::sample::{BatchLoad, UnderWay, WorkerNow};
use crate::units::{BytesPerSecond, Pid, ProcessKey, Share};

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
    /// Returns its busy share. If too few polls saw it, as in its first second, it is known only of a worker that is on a
    /// CPU, or waits for one, for most of the time: that one hardly idles.
    pub(crate) fn busy_or_on_cpu(&self) -> Option<Share> {
        const MOST: f64 = 0.8;
        let awake = || Some(self.main_cpu?.0 + self.run_delay?.0);
        let awake = || awake().filter(|share| *share >= MOST);
        self.busy.or_else(|| Some(Share(awake()?).clamped()))
    }

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

/// A function and the share of polls it was seen in.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    pub name: String,
    pub share: Share,
}
