//! A loader of a rank: its settings, its queue, its batches, and its workers.
//!
//! As everywhere in a sample: cumulative counters as they were read, `None` if not known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::counts;
use crate::sample::{PollTrace, WorkerSample};

/// A loader of a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoaderSample {
    /// Stays the same while the job keeps its loader, even if the workers are restarted.
    pub id: u64,
    pub kind: LoaderKind,
    /// Name of the library if the kind is [`LoaderKind::Other`]; `None` if no name is known.
    pub name: Option<String>,
    pub settings: LoaderSettings,
    /// Ordered by worker id, then by start.
    pub workers: Vec<WorkerSample>,
    /// Workers that were started since the loader's first set of workers.
    pub workers_started: u64,
    pub queue: Option<QueueTally>,
    /// Batches yielded, over all epochs. `None` if nothing counts them.
    pub batches: Option<BatchCount>,
    /// Polls that found the trainer in it. `None` if polls do not show which of its loaders a trainer is in.
    pub waits: Option<u64>,
    /// The data that its newest iterator goes through: one of the rank's `passes`. `None` if no iterator shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<u64>,
    /// Whether another loader's dataset takes its batches, and not the trainer itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nested: bool,
    /// Number of ready batches, poll by poll: the newest.
    #[serde(
        rename = "queue_looks",
        default,
        skip_serializing_if = "PollTrace::is_empty"
    )]
    pub queue_polls: PollTrace,
}

impl LoaderSample {
    /// Returns a loader of which nothing is known except that it exists.
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
            waits: None,
            dataset: None,
            nested: false,
            queue_polls: PollTrace::default(),
        }
    }

    /// Returns the workers that are processes. The usage of worker threads is part of their trainer's.
    pub fn processes(&self) -> impl Iterator<Item = &WorkerSample> {
        self.workers.iter().filter(|worker| !worker.thread)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoaderKind {
    /// PyTorch `DataLoader` with worker processes.
    PytorchProcesses,
    /// Child processes that look like the workers of a loader; nothing shows yet whose they are.
    Processes,
    /// PyTorch `DataLoader` with `num_workers=0`.
    PytorchMain,
    /// The loader of the built-in job: worker processes with queues like PyTorch's.
    Builtin,
    /// A loader of another library or the program's own: recognised by the names of its functions, or by where the
    /// training loop requests its next batch.
    Other,
    /// No loader was found, but the steps that the job reports show that there is one.
    Reported,
}

/// Settings that could be read; `None` means not known, not the default.
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

/// Number of batches so far, and its source.
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
    /// Items taken from the queue object that feeds the main thread, read from memory (T2): exact, from when it was
    /// found.
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

/// Fill levels of the queue between workers and trainer, as polled.
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
    /// Maximum number of ready batches: `num_workers x prefetch_factor`.
    pub capacity: Option<u32>,
    pub source: QueueSource,
    /// Further polls, at which the workers' pipe was gone: from the end of an epoch until the pipe of the next one is
    /// found.
    #[serde(default)]
    pub gone: u64,
}

counts!(QueueTally: polls, empty, ready_sum, gone);

impl QueueTally {
    /// Counts a poll at which this many batches were ready.
    pub fn count(&mut self, ready: u32) {
        self.polls += 1;
        self.empty += u64::from(ready == 0);
        self.ready_sum += u64::from(ready);
        self.ready = ready;
    }
}

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
    /// The job reports it each time that it requests a batch: a poll is a step.
    Probe,
}
