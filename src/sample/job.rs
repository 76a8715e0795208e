//! The watched job and its ranks.
//!
//! As everywhere in a sample: cumulative counters as they were read, `None` if not known.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::counts::counts;
use crate::sample::{
    CgroupSample, LoaderSample, PollTrace, ProcessSample, Run, Tail, Tier, WorkerSample,
};
use crate::units::ProcessKey;

/// Names of waits in an event loop, in no function of the program. In a notebook's kernel it is the wait for the next
/// cell, or for what a cell awaits.
pub const EVENTS: &str = "events";
pub const CELLS: &str = "cells";
/// Name of the wait in a call that writes to a file, in any function.
pub const WRITTEN_FILE: &str = "a file that it writes";
/// Names of the waits until the device has done its work, for copies to it, and for the other ranks.
pub const SYNCHRONIZE: &str = "synchronize";
pub const COPIES: &str = "copies to the device";
pub const COMMUNICATION: &str = "communication";

/// The watched job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobSample {
    /// The process that represents the job: that of the lowest rank.
    pub key: ProcessKey,
    /// Its command line, cleaned of control characters.
    pub command: String,
    /// `None` in recordings of older versions.
    pub run: Option<Run>,
    pub access: Tier,
    /// Ordered by rank, then by pid.
    pub ranks: Vec<RankSample>,
    /// CPU time of its other processes: what the ranks and their workers started, such as commands or the process of a
    /// `multiprocessing.Manager`. Empty in recordings of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<(ProcessKey, Duration)>,
    pub cgroup: Option<CgroupSample>,
    /// CPUs that the job's processes may run on (affinity and cpuset); of several sets, the largest.
    pub cpus_allowed: Option<u32>,
    /// The job has ended; all other fields are as they were last read.
    pub ended: bool,
}

impl JobSample {
    /// Returns a job without known ranks.
    pub fn new(key: ProcessKey, command: impl Into<String>, access: Tier) -> Self {
        Self {
            key,
            command: command.into(),
            access,
            ..Self::default()
        }
    }

    pub fn rank(&self, key: ProcessKey) -> Option<&RankSample> {
        self.ranks.iter().find(|rank| rank.key == key)
    }

    /// Returns the processes of the ranks, then those of their workers.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessKey, &ProcessSample)> {
        let ranks = self.ranks.iter().map(|rank| (rank.key, &rank.process));
        let loaders = self.ranks.iter().flat_map(|rank| &rank.loaders);
        let workers = loaders.flat_map(LoaderSample::processes);
        ranks.chain(workers.map(|worker| (worker.key, &worker.process)))
    }
}

/// One trainer process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RankSample {
    pub key: ProcessKey,
    /// `RANK` in its environment; `None` if it is not set or cannot be read.
    pub rank: Option<u32>,
    /// `WORLD_SIZE` in its environment.
    pub world_size: Option<u32>,
    /// `LOCAL_RANK` in its environment: its rank among those on this machine.
    pub local_rank: Option<u32>,
    /// Threads of an NCCL process group were seen in it. Also `false` if they have no name: before PyTorch 2.4 or so,
    /// unless NCCL was configured to name its threads.
    #[serde(default)]
    pub nccl: bool,
    pub process: ProcessSample,
    /// How often the main thread was seen in each state. `None` if the state cannot be seen.
    pub main: Option<MainTally>,
    /// The value of `main` when pipetop found where the main thread requests its batches: polls before that cannot tell
    /// waits from steps. `None` if that was known from the start, or is not known yet.
    pub recognised: Option<MainTally>,
    /// Its reports of its own steps. `None` if it has reported nothing.
    pub reported: Option<Reported>,
    /// Waits in the loader that ended; if the rank reports its steps, the reported waits, including those of length
    /// zero.
    pub waits: Tail<Wait>,
    /// Python functions that the main thread was seen in, with the number of polls; empty without stacks.
    pub activity: BTreeMap<String, u64>,
    /// Python functions in which another of its threads was seen while that thread held the interpreter's lock and the
    /// main thread waited for it, with the number of polls.
    #[serde(default)]
    pub gil_holders: BTreeMap<String, u64>,
    /// All loaders that have workers or were seen in use, in order of creation.
    pub loaders: Vec<LoaderSample>,
    /// Passes through each dataset, by the loaders' iterators; the last one is the one that yielded last. Empty without
    /// permission to read memory.
    #[serde(default)]
    pub passes: Vec<Passes>,
    /// Time that the main thread was seen writing a checkpoint, in units of [`BEAT`]. `None` without stacks.
    pub saving: Option<u64>,
    /// Time that the main thread was seen waiting for something other than a batch, by what it waited for (such as
    /// `communication`). In units of [`BEAT`].
    #[serde(default)]
    pub not_data: BTreeMap<String, u64>,
    /// The part of `not_data` in which the main thread was ready to run, on a CPU or without one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_data_ready: BTreeMap<String, u64>,
    /// States of its main thread, poll by poll: the newest.
    #[serde(rename = "looks", default, skip_serializing_if = "PollTrace::is_empty")]
    pub polls: PollTrace,
}

impl RankSample {
    /// Returns a rank of which nothing is known except that it exists.
    pub fn new(key: ProcessKey) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }

    pub fn loader(&self, id: u64) -> Option<&LoaderSample> {
        self.loaders.iter().find(|loader| loader.id == id)
    }

    pub fn workers(&self) -> impl Iterator<Item = &WorkerSample> {
        self.loaders.iter().flat_map(|loader| &loader.workers)
    }

    pub fn worker(&self, key: ProcessKey) -> Option<&WorkerSample> {
        self.workers().find(|worker| worker.key == key)
    }
}

/// Passes through one dataset: the epochs of training, or validations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Passes {
    /// Identifies the dataset among those of the rank.
    pub dataset: u64,
    /// Passes that began since attaching, plus the one that was then in progress.
    pub begun: u64,
    /// Batches of all these passes, including those before attaching of the pass that was then in progress.
    pub batches: u64,
    /// Batches of the longest of these passes. 0 in recordings of older versions, as below.
    #[serde(default)]
    pub longest: u64,
    /// How often the trainer came back to it from another dataset.
    #[serde(default)]
    pub returns: u64,
    /// Time that the main thread spent on it, waits and steps, in units of [`BEAT`]. Incomplete if datasets alternate in
    /// each step.
    #[serde(default)]
    pub polls: u64,
    /// Part of `polls` in its loader.
    #[serde(default)]
    pub waited: u64,
    /// Part of `polls` in training-only code.
    #[serde(default)]
    pub trained: u64,
}

/// Unit of time in which the states of a main thread are counted. In recordings of older versions it is 10 ms.
pub const BEAT: Duration = Duration::from_millis(5);
/// Longest time between two polls that counts: after a longer one, the machine was asleep or pipetop was stopped, and
/// nothing is known of that time.
pub const MAX_GAP: Duration = Duration::from_secs(1);

/// Time that the trainer's main thread was seen in each state, since attaching, in units of [`BEAT`], which are called polls
/// here: a poll counts for the time since the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MainTally {
    /// Total number of polls: the sum of the states below, up to `stopped`.
    #[serde(rename = "looks")]
    pub polls: u64,
    /// How often it was polled in that time: seldom if polling is expensive. 0 in recordings of older versions.
    #[serde(default)]
    pub observed: u64,
    /// Blocked until the loader delivers a batch.
    pub waiting: u64,
    /// Receiving a batch that is ready: reading the pipe, fetching shared memory, unpickling.
    pub receiving: u64,
    /// Making the batch itself, in the main thread (`num_workers=0`).
    pub loading: u64,
    /// On a CPU or runnable, and not in the loader, if that could be seen.
    pub running: u64,
    /// Asleep for another reason: device, lock, timer, network.
    pub other: u64,
    /// Blocked on a disk.
    pub disk: u64,
    /// Stopped by a signal or a debugger.
    pub stopped: u64,
    /// Part of `running` and `other`: polls at which no stack showed whether the loader was in use. Decreases if the
    /// job turns out to be fed by PyTorch's loader, which stacks show.
    pub unseen: u64,
    /// Part of `unseen`: in a generator, perhaps making a batch, whichever loader feeds the generator.
    #[serde(default)]
    pub in_generator: u64,
    /// Part of `unseen`: at work outside the loader, perhaps on a batch: before the model gets it, or between epochs.
    #[serde(default)]
    pub preparing: u64,
    /// Part of `waiting`: for a batch that another rank reads and sends.
    #[serde(default)]
    pub dispatched: u64,
    /// Part of `waiting`: while the pinning thread was working on a batch.
    #[serde(default)]
    pub pinning: u64,
    /// Part of `waiting`: starting the loader's workers, or ending them.
    #[serde(default)]
    pub starting: u64,
    /// Part of `loading`: blocked on a network, or on a file system behind one.
    #[serde(default)]
    pub network: u64,
    /// Part of `loading`: in the training loop itself, outside PyTorch's loader.
    #[serde(default)]
    pub in_loop: u64,
    /// Part of `other`: asleep, but neither in a timer nor in a wait that has a name. Not counted if it uses an
    /// accelerator.
    #[serde(default)]
    pub blocked: u64,
    /// Polls whose last stack showed a model or its training.
    #[serde(default)]
    pub computing: u64,
    /// Polls that began well after they were due because no CPU was free, and those of them in the loader.
    #[serde(default)]
    pub delayed: u64,
    #[serde(default)]
    pub delayed_in_loader: u64,
    /// Sum of the delays of all polls: how much later than due each began.
    #[serde(default)]
    pub delay: Duration,
    /// Part of all polls: asleep until another thread of the process releases Python's lock (the GIL). `None` if such
    /// waits cannot be distinguished from others.
    pub gil: Option<GilTally>,
    /// `None` if the kernel does not count it, and in recordings of older versions.
    pub ready: Option<ReadyTally>,
}

counts!(MainTally: polls, observed, waiting, receiving, loading, running, other, disk, stopped, in_generator, preparing, dispatched, pinning, starting, network, in_loop, blocked, computing, delayed, delayed_in_loader, delay);

impl MainTally {
    /// Returns the polls in the loader.
    pub fn in_loader(self) -> u64 {
        let waiting = self.waiting.saturating_add(self.receiving);
        waiting.saturating_add(self.loading)
    }
}

/// Time that the main thread was on a CPU or waiting for one, as counted by the kernel and by polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadyTally {
    /// From its `schedstat`, since attaching: exact, whereas polls are a sample.
    pub time: Duration,
    /// The time in which that was counted. 0 in recordings of older versions.
    #[serde(default)]
    pub span: Duration,
    /// Polls in the loader at which the thread was ready. Those of [`MainTally::running`] are all ready, those of the
    /// other states are not.
    pub waiting: u64,
    pub receiving: u64,
    pub loading: u64,
}

counts!(ReadyTally: time, span, waiting, receiving, loading);

/// Polls at which the main thread slept until another thread of its process releases Python's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GilTally {
    /// In the loader, while a batch is ready or on its way.
    pub in_loader: u64,
    /// In the step and elsewhere.
    pub outside: u64,
}

counts!(GilTally: in_loader, outside);

/// Reports of a rank on its own steps through the probe protocol (T3), since its first report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reported {
    /// Steps whose report arrived.
    pub steps: u64,
    /// Steps that must have happened but whose report did not arrive.
    pub lost: u64,
    /// Time waited for batches and time worked on steps, summed over the steps whose report arrived.
    pub waited: Duration,
    pub stepped: Duration,
    /// Copies of batches to the device. `None` if the rank does not report them.
    pub copy: Option<DeviceTime>,
    /// The device's computing. `None` if the rank does not report it.
    pub busy: Option<DeviceTime>,
    /// Time of the waits in which the device had nothing to do, that is, lost time. `None` if the rank does not report
    /// it.
    pub idle: Option<DeviceTime>,
    /// Time that the device computed for a step beyond the step's own length: it was still busy when the step ended. 0
    /// also if computing is not reported.
    pub overrun: Duration,
    /// When the wait of the first step began, and when the newest step ended, measured from when pipetop started.
    pub first_from: Duration,
    pub last_to: Duration,
    /// The device that it computes on, in its own words. `None` = not reported.
    pub device: Option<String>,
    /// The newest notice for the user, in its own words. `None` = not reported.
    pub notice: Option<String>,
}

/// Time of a device, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceTime {
    pub took: Duration,
    /// Total length of the steps, waits included, that reported it.
    pub of: Duration,
}

/// One wait of the main thread in the loader: until a batch was there, received or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Measured from when pipetop started.
    pub from: Duration,
    pub to: Duration,
    /// Batches yielded before it, if the batch clock is known.
    pub batch: Option<u64>,
    /// When a batch was seen to have come although the wait went on: the steps in between were too short to be seen.
    pub first: Option<Duration>,
    /// Whether it was for the first batch of a pass through the data: no batch of that pass had been requested before.
    #[serde(default)]
    pub begins: bool,
}

impl Wait {
    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.to.saturating_sub(self.from).as_secs_f64()
    }
}
