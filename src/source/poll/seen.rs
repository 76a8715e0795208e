//! What is to be polled, and the counts of each target: the data exchanged between the sampler and the poller.
//!
//! Does not depend on how polling is done.

use std::collections::BTreeMap;

use crate::job::ResultPipe;
use crate::sample::{
    BatchClock, BatchCount, Gap, LoaderSettings, MainTally, Passes, PollTrace, QueueTally, Tail,
    Wait, WorkerLoads, WorkerTally,
};
use crate::source::python::{Asks, PythonError};
use crate::source::shared_memory::SegmentClock;
use crate::units::{Pid, ProcessKey};

/// What is to be polled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PollTargets {
    pub ranks: Vec<WatchedRank>,
    /// Whether their control group is frozen. In version 1, what a thread is blocked in does not show that: it still
    /// sleeps in the same wait function.
    pub frozen: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedRank {
    pub key: ProcessKey,
    /// Whether it is the built-in job: it runs no Python, and its workers only ever wait for requests.
    pub builtin: bool,
    pub loaders: Vec<WatchedLoader>,
    /// Whether it may compute on an accelerator: it holds one open, or that cannot be read.
    pub accelerated: bool,
    /// The thread that pins batches in memory, if there is one.
    pub pin_thread: Option<Pid>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedLoader {
    pub id: u64,
    pub pipe: Option<ResultPipe>,
    pub workers: Vec<ProcessKey>,
}

/// Counts since each target was first polled.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub mains: BTreeMap<ProcessKey, MainSeen>,
    pub workers: BTreeMap<ProcessKey, WorkerSeen>,
    /// Keyed by rank and loader number.
    pub queues: BTreeMap<(ProcessKey, u64), QueueSeen>,
    /// All polls before this slot are included.
    pub published: u64,
    /// Number of rounds that began a whole period late.
    pub late: u64,
    /// Why something cannot be polled, though it is there.
    pub gap: Option<Gap>,
}

#[derive(Debug, Clone, Default)]
pub struct MainSeen {
    pub tally: MainTally,
    /// The tally at the time from which polls distinguish waits from steps; `None` if they have done so from the start.
    pub recognised: Option<MainTally>,
    pub polls: PollTrace,
    /// Waits that ended since the counts were last taken.
    pub waits: Tail<Wait>,
    /// Batches by the shared memory that the trainer was seen to hold, by loader.
    pub segments: BTreeMap<u64, SegmentClock>,
    /// Counts of the loaders' iterators, by loader; [`super::MAIN_LOADER`] for one without workers.
    pub iterators: BTreeMap<u64, IteratorSeen>,
    /// Passes through each dataset.
    pub passes: Vec<Passes>,
    /// Beats in which it wrote a checkpoint; `None` without stacks.
    pub saving: Option<u64>,
    /// Beats in which it waited for something other than a batch.
    pub not_data: BTreeMap<&'static str, u64>,
    /// Beats among these in which it was ready to run.
    pub not_data_ready: BTreeMap<&'static str, u64>,
    /// How it is known that something other than PyTorch's loaders feeds it; `None` = nothing else was seen.
    pub asks: Option<Asks>,
    /// Whether a loader of PyTorch without workers takes its batches from other threads or processes.
    pub handed_over: bool,
    /// Name of the known loader that hands them over; `None` if no known one does.
    pub behind: Option<&'static str>,
    /// Batches taken from the queue object that feeds it, if they are counted, and how full the queue was if that is known.
    pub queue: Option<(Option<u64>, Option<QueueTally>)>,
    /// Its own threads that load, by thread number.
    pub threads: BTreeMap<Pid, WorkerSeen>,
    pub activity: BTreeMap<String, u64>,
    /// Functions of the thread that held the interpreter's lock while the main thread waited for it.
    pub gil_holders: BTreeMap<String, u64>,
    /// Descriptors that it polled while its stack showed it waiting for a batch.
    pub polled: Vec<i32>,
    /// Why there are no stacks, if there are none.
    pub python_error: Option<PythonError>,
}

#[derive(Debug, Clone, Default)]
pub struct QueueSeen {
    pub tally: QueueTally,
    pub polls: PollTrace,
}

#[derive(Debug, Clone, Default)]
pub struct WorkerSeen {
    pub tally: WorkerTally,
    pub polls: PollTrace,
    pub activity: BTreeMap<String, u64>,
    /// Whether its last stack showed it past its start and not in the loop of PyTorch's workers.
    pub elsewhere: bool,
    /// The loader's number of the worker; the following settings are also from its frames.
    pub id: Option<u32>,
    pub num_workers: Option<u32>,
    pub persistent_workers: Option<bool>,
    pub batch_size: Option<u32>,
    /// Its batches one by one; `None` until a stack has shown where the number of the batch in work is.
    pub loads: Option<WorkerLoads>,
}

/// Slots of polls kept until they are taken: 20 seconds.
pub(super) const SLOTS: usize = 800;

/// Maximum number of function names counted for one process: more than a profile ever shows.
const ACTIVITIES: usize = 256;

/// Counts a function, unless it is new and there are too many names.
pub(super) fn count_activity(activity: &mut BTreeMap<String, u64>, function: String) {
    if activity.len() < ACTIVITIES || activity.contains_key(&function) {
        *activity.entry(function).or_default() += 1;
    }
}

/// Counts of the iterators of one loader, over all epochs.
#[derive(Debug, Clone, Default)]
pub struct IteratorSeen {
    /// Batches yielded since the first iterator that was seen began.
    pub batches: u64,
    pub settings: LoaderSettings,
    /// Polls that found the trainer in this loader.
    pub waits: u64,
    /// The data that it goes through, as in [`MainSeen::passes`].
    pub dataset: Option<u64>,
    /// Whether another loader takes its batches, in its dataset.
    pub nested: bool,
    /// Pinned batches that are ready, if a thread pins them.
    pub pinned: Option<QueueTally>,
}

impl IteratorSeen {
    /// Returns the loader's batches by this clock.
    pub fn yielded(&self) -> BatchCount {
        BatchCount {
            count: self.batches,
            source: BatchClock::Iterator,
        }
    }
}
