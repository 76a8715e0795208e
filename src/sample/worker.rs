//! A loader's worker: its counters, its batches, and what it was seen doing. Knows nothing of how it is polled.

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
    /// The loader's number for it; by order of start where it cannot be read.
    pub id: u32,
    /// It is a thread of the trainer, whose counters include its own; not a process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thread: bool,
    pub process: ProcessSample,
    pub tally: Option<WorkerTally>,
    /// Batches that this worker made; `None` where nothing counts them.
    pub batches: Option<u64>,
    /// Python functions that it was seen in while busy, with how often; empty without stacks.
    pub activity: BTreeMap<String, u64>,
    /// Its batches one by one. `None` where it cannot be seen which of them is in work.
    #[serde(default)]
    pub loads: Option<WorkerLoads>,
    /// What it was seen doing, poll by poll: the newest.
    #[serde(rename = "looks", default, skip_serializing_if = "PollTrace::is_empty")]
    pub polls: PollTrace,
}

/// Single batches of a worker, as far as polls tell when each was begun and handed over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerLoads {
    /// Those that ended.
    pub ended: Tail<BatchLoad>,
    /// Those since attaching that ended too soon for polls to tell how long they took. What came and went between
    /// two polls is not among them.
    pub short: u64,
    /// What is in work. `None` while it waits for its next.
    pub under_way: Option<UnderWay>,
}

/// How long a worker had one batch in work: between two bounds, as it was polled only now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchLoad {
    /// The loader's number for it, from 0 in each epoch.
    pub batch: u64,
    pub low_ms: u32,
    pub high_ms: u32,
    /// When it was handed over, since pipetop started: halfway between the polls around that. `None` in recordings from
    /// before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Duration>,
}

impl BatchLoad {
    /// Milliseconds: halfway between the bounds.
    pub fn middle_ms(&self) -> f64 {
        f64::midpoint(f64::from(self.low_ms), f64::from(self.high_ms))
    }

    /// Milliseconds that the load may have been shorter or longer than that.
    pub fn uncertainty_ms(&self) -> f64 {
        f64::from(self.high_ms.saturating_sub(self.low_ms)) / 2.0
    }
}

/// A batch in work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderWay {
    pub batch: u64,
    /// For at least so long.
    pub for_ms: u32,
}

/// How often a worker's main thread was seen doing what, since attaching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerTally {
    /// Polls in all. The other fields add up to it.
    #[serde(rename = "looks")]
    pub polls: u64,
    /// Waiting for the next index: nothing to do (upstream is the trainer).
    pub idle: u64,
    /// On a CPU or runnable.
    pub cpu: u64,
    /// Blocked on a disk or on a page that is being read.
    pub disk: u64,
    /// Blocked on a socket or a network file system.
    pub network: u64,
    /// Blocked on handing a batch over.
    pub handover: u64,
    /// Asleep in a timer, on a lock or elsewhere while a batch is due.
    pub other: u64,
    /// What it was doing at the last poll.
    pub now: WorkerNow,
}

counts!(WorkerTally: polls, idle, cpu, disk, network, handover, other);

impl WorkerTally {
    /// Both together; what is done now is `more`'s.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            polls: self.polls.saturating_add(more.polls),
            idle: self.idle.saturating_add(more.idle),
            cpu: self.cpu.saturating_add(more.cpu),
            disk: self.disk.saturating_add(more.disk),
            network: self.network.saturating_add(more.network),
            handover: self.handover.saturating_add(more.handover),
            other: self.other.saturating_add(more.other),
            now: more.now,
        }
    }
}
