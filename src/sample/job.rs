//! The watched job: its ranks, their loaders, and the loaders' workers.
//!
//! As all of a sample: cumulative counters as they were read, `None` where not known.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sample::{CgroupSample, Tier};
use crate::units::{Bytes, ProcessKey};

/// The watched job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSample {
    /// The process that stands for the job: the lowest rank's.
    pub key: ProcessKey,
    /// Its command line, cleaned of control characters.
    pub command: String,
    pub access: Tier,
    /// Ordered by rank, then by pid.
    pub ranks: Vec<RankSample>,
    pub cgroup: Option<CgroupSample>,
    /// CPUs that the job's processes may run on (affinity and cpuset), the widest of them.
    pub cpus_allowed: Option<u32>,
    /// The job has ended; what else is here is the last that was seen.
    pub ended: bool,
}

/// One trainer process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankSample {
    pub key: ProcessKey,
    /// `RANK` of its environment; `None` where it has none or it cannot be read.
    pub rank: Option<u32>,
    /// `WORLD_SIZE` of its environment.
    pub world_size: Option<u32>,
    /// Threads of a process group on NCCL were seen in it. Also `false` where they have no name: before PyTorch
    /// 2.4 or so, unless NCCL was told to name its own.
    #[serde(default)]
    pub nccl: bool,
    pub process: ProcessSample,
    /// How often the main thread was seen in each state. `None` where the state cannot be seen.
    pub main: Option<MainTally>,
    /// What it tells of its own steps. `None` where it has told nothing.
    pub reported: Option<Reported>,
    /// Stays in the loader that ended since the previous sample, oldest first; where the rank reports its
    /// steps, the reported ones, also those of no length.
    pub waits: Vec<Wait>,
    /// Python functions that the main thread was seen in, with how often; empty without stacks.
    pub activity: BTreeMap<String, u64>,
    /// Python functions that another of its threads was seen in while it held the interpreter's lock and the main
    /// thread waited for that, with how often.
    #[serde(default)]
    pub gil_holders: BTreeMap<String, u64>,
    /// Every loader that has workers or was seen in use, in order of creation.
    pub loaders: Vec<LoaderSample>,
    /// How often each dataset was gone through, as the loaders' iterators tell, in the order in which they were
    /// first seen. Empty without the right to read memory.
    #[serde(default)]
    pub passes: Vec<Passes>,
    /// Time that the main thread was seen to write a checkpoint, in looks of 10 ms. `None` without stacks.
    #[serde(default)]
    pub saving: Option<u64>,
}

/// Passes through one dataset: the epochs of training, or validations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Passes {
    /// Tells it from the others of the rank.
    pub dataset: u64,
    /// Begun since attaching, the one under way then counted in.
    pub begun: u64,
    /// Batches of all of them, those before attaching of the one under way then counted in.
    pub batches: u64,
}

/// Counters that every process has.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessSample {
    /// `R`, `S`, `D`, `T`, `Z`, ... of the main thread; `None` once gone.
    pub state: Option<char>,
    /// CPU time of all its threads (`utime + stime`).
    pub cpu: Option<Duration>,
    /// Time on a CPU of the main thread, from its `schedstat`.
    pub main_cpu: Option<Duration>,
    /// Time that the main thread was runnable but not running, from its `schedstat`.
    pub main_run_delay: Option<Duration>,
    pub io: Option<IoSample>,
    pub major_faults: Option<u64>,
    pub threads: Option<u32>,
    /// CPUs that the main thread may run on.
    pub cpus_allowed: Option<u32>,
    pub rss: Option<Bytes>,
}

/// `/proc/PID/io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoSample {
    /// Bytes asked for by read calls, wherever they came from (page cache, pipes, devices).
    pub rchar: Bytes,
    pub wchar: Bytes,
    /// Bytes that were fetched from a block device for this process.
    pub read_bytes: Bytes,
    pub write_bytes: Bytes,
}

/// How long the trainer's main thread was seen doing what, since attaching, in looks of 10 ms: one that
/// came later counts for the time since the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MainTally {
    /// Looks in all. The other fields add up to it.
    pub looks: u64,
    /// Blocked until the loader hands over a batch.
    pub waiting: u64,
    /// Receiving a batch that is ready: reading the pipe, fetching shared memory, unpickling.
    pub receiving: u64,
    /// Making the batch itself, in the main thread (`num_workers=0`).
    pub loading: u64,
    /// On a CPU or runnable, outside the loader as far as could be seen.
    pub running: u64,
    /// Asleep for another reason: device, lock, timer, network.
    pub other: u64,
    /// Blocked on a disk.
    pub disk: u64,
    /// Stopped by a signal or a debugger.
    pub stopped: u64,
    /// Of `running` and `other`: looks at which no stack could tell whether the loader was in use.
    pub unseen: u64,
    /// Of all these: asleep until another thread of the process gives up Python's lock (the GIL). `None` where such
    /// waits cannot be told from others.
    #[serde(default)]
    pub gil: Option<GilTally>,
}

/// Looks at which the main thread slept until another thread of its process gives up Python's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GilTally {
    /// With a batch at hand or on its way, in the loader.
    pub in_loader: u64,
    /// In the step and elsewhere.
    pub outside: u64,
}

/// What a rank told of its own steps through the probe protocol (T3), since it began to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reported {
    /// Steps whose report came.
    pub steps: u64,
    /// Steps that are known to have been whose report did not come.
    pub lost: u64,
    /// Waited for a batch, and worked on a step, summed over the steps whose report came.
    pub waited: Duration,
    pub stepped: Duration,
    /// Copies of batches to the device. `None` where the rank does not tell them.
    pub copy: Option<DeviceTime>,
    /// The device's computing. `None` where the rank does not tell it.
    pub busy: Option<DeviceTime>,
    /// Time of the waits in which the device had nothing to do: what is lost. `None` where the rank does not
    /// tell it.
    #[serde(default)]
    pub idle: Option<DeviceTime>,
    /// Time that the device computed for a step beyond the step's own length: it did not come to rest with
    /// each step. 0 also where computing is not told.
    pub overrun: Duration,
    /// When the wait of the first step began, and when the newest step ended, since pipetop started.
    pub first_from: Duration,
    pub last_to: Duration,
    /// What it computes on, in its own words. `None` = not told.
    pub device: Option<String>,
    /// What the user should know, in its own words, the newest. `None` = nothing was told.
    pub notice: Option<String>,
}

/// Time of a device, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceTime {
    pub took: Duration,
    /// The length of the steps, waits included, that told it.
    pub of: Duration,
}

/// One stay of the main thread in the loader: until a batch was there, received or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Since pipetop started.
    pub from: Duration,
    pub to: Duration,
    /// Batches yielded before it, where the batch clock is known.
    pub batch: Option<u64>,
}

/// What feeds a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoaderSample {
    /// Stays the same while the job keeps its loader, also when the workers are re-made.
    pub id: u64,
    pub kind: LoaderKind,
    pub settings: LoaderSettings,
    /// Ordered by worker number, then by start.
    pub workers: Vec<WorkerSample>,
    /// Workers that ended or were re-made since attaching.
    pub workers_started: u64,
    pub queue: Option<QueueTally>,
    /// Batches yielded to the trainer; counts on over epochs. `None` where nothing counts them.
    pub batches: Option<BatchCount>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoaderKind {
    /// PyTorch `DataLoader` with worker processes.
    PytorchProcesses,
    /// PyTorch `DataLoader` with `num_workers=0`.
    PytorchMain,
    /// The built-in job's: worker processes, queued as PyTorch's are.
    Builtin,
    /// None was found: that there is one is known from the steps that the job reports.
    Reported,
}

/// As far as it can be read; a `None` is not a default but not known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    pub looks: u64,
    /// Looks at which no batch was ready.
    pub empty: u64,
    /// Ready batches summed over the looks.
    pub ready_sum: u64,
    /// Ready batches at the last look.
    pub ready: u32,
    /// The most that can be ready: `num_workers x prefetch_factor`.
    pub capacity: Option<u32>,
    pub source: QueueSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueSource {
    /// Unread bytes in the result pipe over bytes per batch.
    #[default]
    Pipe,
    /// The result queue's semaphore.
    Semaphore,
    /// Counters of the iterator in memory.
    Iterator,
    /// The job tells it, each time that it comes for a batch: a look is a step.
    Probe,
}

/// One loader worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerSample {
    pub key: ProcessKey,
    /// The loader's number for it; by order of start where it cannot be read.
    pub id: u32,
    pub process: ProcessSample,
    pub tally: Option<WorkerTally>,
    /// Batches that this worker made; `None` where nothing counts them.
    pub batches: Option<u64>,
    /// Python functions that it was seen in while busy, with how often; empty without stacks.
    pub activity: BTreeMap<String, u64>,
    /// Its batches one by one. `None` where it cannot be seen which of them is in work.
    #[serde(default)]
    pub loads: Option<WorkerLoads>,
}

/// Single batches of a worker, as far as looks tell when each was begun and handed over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerLoads {
    /// Those that ended since the previous sample, oldest first; of many the newest.
    pub ended: Vec<BatchLoad>,
    /// Those since attaching that ended too soon for looks to tell how long they took. What came and went between
    /// two looks is not among them.
    pub short: u64,
    /// What is in work. `None` while it waits for its next.
    pub under_way: Option<UnderWay>,
}

/// How long a worker had one batch in work: between two bounds, as it was looked at only now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchLoad {
    /// The loader's number for it, from 0 in each epoch.
    pub batch: u64,
    pub low_ms: u32,
    pub high_ms: u32,
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
    /// Looks in all. The other fields add up to it.
    pub looks: u64,
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
    /// What it was doing at the last look.
    pub now: WorkerNow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerNow {
    #[default]
    Unknown,
    /// Waiting for an index.
    Idle,
    Cpu,
    /// Runnable, not running.
    Runnable,
    /// Reading from a disk.
    Read,
    Network,
    Handover,
    /// Asleep while a batch is due.
    Sleep,
    Stopped,
    /// Importing, before its first batch.
    Starting,
    Gone,
}
