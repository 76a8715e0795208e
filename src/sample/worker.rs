//! A loader's worker: its counters, its batches, and its states. Does not depend on how it is polled.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::counts::counts;
use crate::sample::{PollTrace, ProcessSample, Tail, WorkerNow};
use crate::units::ProcessKey;

/// One loader worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerSample {
    pub key: ProcessKey,
    /// The loader's id for it; if that cannot be read, its position in order of start.
    pub id: u32,
    /// It is a thread of the trainer and not a process: its usage is part of the trainer's counters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thread: bool,
    pub process: ProcessSample,
    pub tally: Option<WorkerTally>,
    /// Batches that this worker made; `None` if nothing counts them.
    pub batches: Option<u64>,
    /// Python functions that it was seen in while busy, with the number of polls; empty without stacks.
    pub activity: BTreeMap<String, u64>,
    /// Its batches one by one. `None` if it cannot be seen which of them is being made.
    pub loads: Option<WorkerLoads>,
    /// Its states, poll by poll: the newest.
    #[serde(rename = "looks", default, skip_serializing_if = "PollTrace::is_empty")]
    pub polls: PollTrace,
}

/// Single batches of a worker, if polls show when each was started and handed over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerLoads {
    /// Batches that ended.
    pub ended: Tail<BatchLoad>,
    /// Batches since attaching that ended too soon for polls to time them, not counting those that started and ended
    /// between two polls.
    pub short: u64,
    /// The batch that is being made. `None` while it waits for its next.
    pub under_way: Option<UnderWay>,
}

/// How long a worker took for one batch: two bounds, since it is polled at intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchLoad {
    /// The loader's number of the batch, from 0 in each epoch.
    pub batch: u64,
    pub low_ms: u32,
    pub high_ms: u32,
    /// When it was handed over, measured from when pipetop started: halfway between the polls before and after. `None`
    /// in recordings of versions without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Duration>,
}

impl BatchLoad {
    /// Returns the middle between the bounds, in milliseconds.
    pub fn middle_ms(&self) -> f64 {
        f64::midpoint(f64::from(self.low_ms), f64::from(self.high_ms))
    }
}

/// A batch that is being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderWay {
    pub batch: u64,
    /// Lower bound of the time so far, in milliseconds.
    pub for_ms: u32,
}

/// Number of polls that found a worker's main thread in each state, since attaching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerTally {
    /// Polls in all. The next six fields and `stopped` add up to it.
    #[serde(rename = "looks")]
    pub polls: u64,
    /// Waiting for the next index: nothing to do, because the trainer has requested nothing.
    pub idle: u64,
    /// On a CPU or runnable.
    pub cpu: u64,
    /// Blocked on a disk or on a page that is being read.
    pub disk: u64,
    /// Blocked on a socket or a network file system.
    pub network: u64,
    /// Blocked on handing over a batch.
    pub handover: u64,
    /// Asleep in a timer, on a lock or elsewhere while it has a batch to make.
    pub other: u64,
    /// Part of `disk` and `network`: in calls that open, list or query files.
    #[serde(default)]
    pub about_files: u64,
    /// Part of `cpu`: a command that the worker waits for was on a CPU, not the worker itself.
    #[serde(default)]
    pub commands: u64,
    /// Part of `other`: on a lock or a queue that processes share.
    #[serde(default)]
    pub locked: u64,
    /// Stopped by a signal or a debugger, or frozen.
    #[serde(default)]
    pub stopped: u64,
    /// While it has a batch to make: its last stack showed it training a model, or else running one.
    #[serde(default)]
    pub trains: u64,
    #[serde(default)]
    pub infers: u64,
    /// What it was doing at the last poll.
    pub now: WorkerNow,
}

counts!(WorkerTally: polls, idle, cpu, disk, network, handover, other, about_files, commands, locked, stopped, trains, infers);
