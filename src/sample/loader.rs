//! What feeds a rank: its settings, its queue, its batches, and its workers.
//!
//! As all of a sample: cumulative counters as they were read, `None` where not known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::counts;
use crate::sample::{PollTrace, WorkerSample};

/// What feeds a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoaderSample {
    /// Stays the same while the job keeps its loader, also when the workers are re-made.
    pub id: u64,
    pub kind: LoaderKind,
    /// What [`LoaderKind::Other`] is called; `None` = it has no name that is known.
    #[serde(default)]
    pub name: Option<String>,
    pub settings: LoaderSettings,
    /// Ordered by worker number, then by start.
    pub workers: Vec<WorkerSample>,
    /// Workers that ended or were re-made since attaching.
    pub workers_started: u64,
    pub queue: Option<QueueTally>,
    /// Batches yielded to the trainer; counts on over epochs. `None` where nothing counts them.
    pub batches: Option<BatchCount>,
    /// Batches that were ready, poll by poll: the newest.
    #[serde(
        rename = "queue_looks",
        default,
        skip_serializing_if = "PollTrace::is_empty"
    )]
    pub queue_polls: PollTrace,
}

impl LoaderSample {
    /// Of which nothing is known but that it is there.
    pub fn new(id: u64, kind: LoaderKind) -> Self {
        Self {
            id,
            kind,
            name: None,
            settings: LoaderSettings::default(),
            workers: vec![],
            workers_started: 0,
            queue: None,
            batches: None,
            queue_polls: PollTrace::default(),
        }
    }

    /// The workers that are processes. What threads count, their trainer counts, too.
    pub fn processes(&self) -> impl Iterator<Item = &WorkerSample> {
        self.workers.iter().filter(|worker| !worker.thread)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoaderKind {
    /// PyTorch `DataLoader` with worker processes.
    PytorchProcesses,
    /// PyTorch `DataLoader` with `num_workers=0`.
    PytorchMain,
    /// The built-in job's: worker processes, queued as PyTorch's are.
    Builtin,
    /// Another library's, or the program's own: known by the names of its functions, or by where the training loop asks
    /// for its next batch.
    Other,
    /// None was found: that there is one is known from the steps that the job reports.
    Reported,
}

/// As far as it can be read; a `None` is not a default but not known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoaderSettings {
    pub num_workers: Option<u32>,
    pub prefetch_factor: Option<u32>,
    pub pin_memory: Option<bool>,
    pub persistent_workers: Option<bool>,
    pub in_order: Option<bool>,
    /// `fork`, `spawn` or `forkserver`.
    pub start_method: Option<String>,
    pub batch_size: Option<u32>,
}

/// Batches so far, and what counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchCount {
    pub count: u64,
    pub source: BatchClock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchClock {
    /// The iterator's own counter, read from memory (T2): exact, includes batches before attaching.
    Iterator,
    /// What was taken from the queue object that feeds the main thread, read from memory (T2): exact, from when it was
    /// found on.
    Queue,
    /// Numbers in the names of shared-memory segments (T1).
    SharedMemory,
    /// Messages that the workers of the built-in job wrote (T1): batches that were made.
    Messages,
    /// Waits that ended (T1): a lower bound.
    Waits,
    /// The job's own numbers of its steps (T3): exact, from its first step on.
    Probe,
}

/// How full the queue between workers and trainer was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueTally {
    #[serde(rename = "looks")]
    pub polls: u64,
    /// Polls at which no batch was ready.
    pub empty: u64,
    /// Ready batches summed over the polls.
    pub ready_sum: u64,
    /// Ready batches at the last poll.
    pub ready: u32,
    /// The most that can be ready: `num_workers x prefetch_factor`.
    pub capacity: Option<u32>,
    pub source: QueueSource,
}

counts!(QueueTally: polls, empty, ready_sum);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueSource {
    /// Unread bytes in the result pipe over bytes per batch.
    #[default]
    Pipe,
    /// The result queue's semaphore.
    Semaphore,
    /// Counters of the iterator in memory.
    Iterator,
    /// The length of the queue object in memory.
    Object,
    /// The job tells it, each time that it comes for a batch: a poll is a step.
    Probe,
}
