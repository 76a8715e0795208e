//! Who is to be polled, and what was counted of each: what travels between the sampler and the
//! poller.
//!
//! Knows nothing of how it is polled.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::job::ResultPipe;
use crate::sample::{
    LoaderSettings, MainTally, Passes, PollTrace, QueueTally, Tail, Wait, WorkerLoads, WorkerTally,
};
use crate::source::python::{Asks, PythonError};
use crate::source::shared_memory::SegmentClock;
use crate::units::{Pid, ProcessKey};

/// Who is to be polled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PollTargets {
    pub ranks: Vec<WatchedRank>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedRank {
    pub key: ProcessKey,
    /// The built-in job: no Python runs in it, and its workers wait for nothing but requests.
    pub builtin: bool,
    pub loaders: Vec<WatchedLoader>,
    /// The thread that pins batches in memory, where there is one.
    pub pin_thread: Option<Pid>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedLoader {
    pub id: u64,
    pub pipe: Option<ResultPipe>,
    pub workers: Vec<ProcessKey>,
}

/// Counts since each of them was first polled.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub mains: BTreeMap<ProcessKey, MainSeen>,
    pub workers: BTreeMap<ProcessKey, WorkerSeen>,
    /// By rank and the loader's number.
    pub queues: BTreeMap<(ProcessKey, u64), QueueSeen>,
    /// All polls before this slot are here.
    pub published: u64,
    /// Rounds that began a whole period late.
    pub late: u64,
}

#[derive(Debug, Clone, Default)]
pub struct MainSeen {
    pub tally: MainTally,
    /// The tally from which on polls tell waits from steps, where that was not so from the start.
    pub recognised: Option<MainTally>,
    pub polls: PollTrace,
    /// Waits that ended; here are those since the counts were last taken.
    pub waits: Tail<Wait>,
    /// Batches by the shared memory that the trainer was seen to hold, by loader.
    pub segments: BTreeMap<u64, SegmentClock>,
    /// What the loaders' iterators tell, by loader; [`super::MAIN_LOADER`] for one without workers.
    pub iterators: BTreeMap<u64, IteratorSeen>,
    /// Passes through each dataset.
    pub passes: Vec<Passes>,
    /// Polls of 10 ms at which it wrote a checkpoint; `None` without stacks.
    pub saving: Option<u64>,
    /// Polls of 10 ms at which it waited for something that is no batch.
    pub not_data: BTreeMap<&'static str, u64>,
    /// How it is known that something else than PyTorch's loaders feeds it; `None` = nothing else was met.
    pub asks: Option<Asks>,
    /// Batches that were taken from the queue object that feeds it, and how full that was.
    pub queue: Option<(u64, Option<QueueTally>)>,
    /// Its own threads that load, by number.
    pub threads: BTreeMap<Pid, WorkerSeen>,
    pub activity: BTreeMap<String, u64>,
    /// Functions of the thread that held the interpreter's lock while the main thread waited for it.
    pub gil_holders: BTreeMap<String, u64>,
    /// Descriptors that it polled while its stack was seen waiting for a batch.
    pub polled: Vec<i32>,
    /// Why there are no stacks, where there are none.
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
    /// The loader's number for it, and what else its frames have shown.
    pub id: Option<u32>,
    pub num_workers: Option<u32>,
    pub persistent_workers: Option<bool>,
    pub batch_size: Option<u32>,
    /// Its batches one by one; `None` until a stack has shown where the number of the one in work lies.
    pub loads: Option<WorkerLoads>,
}

/// Slots of polls that are kept until they are taken: of 20 seconds.
pub(super) const SLOTS: usize = 800;

/// Names that are counted for one process at most: more than a profile ever shows.
const ACTIVITIES: usize = 256;

/// Counts a function that was seen, as long as there is room for its name.
pub(super) fn count_activity(activity: &mut BTreeMap<String, u64>, function: String) {
    if activity.len() < ACTIVITIES || activity.contains_key(&function) {
        *activity.entry(function).or_default() += 1;
    }
}

/// Counters stay usable where a thread panicked while it held them.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the iterators of one loader tell, over all epochs.
#[derive(Debug, Clone, Default)]
pub struct IteratorSeen {
    /// Batches yielded since the first iterator that was seen began.
    pub batches: u64,
    pub settings: LoaderSettings,
    /// Pinned batches that wait, where a thread pins them.
    pub pinned: Option<QueueTally>,
}
