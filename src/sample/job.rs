//! The watched job: its ranks, and what each did.
//!
//! As all of a sample: cumulative counters as they were read, `None` where not known.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::counts::counts;
use crate::sample::{CgroupSample, LoaderSample, PollTrace, ProcessSample, Run, Tail, Tier};
use crate::units::ProcessKey;

/// The watched job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSample {
    /// The process that stands for the job: the lowest rank's.
    pub key: ProcessKey,
    /// Its command line, cleaned of control characters.
    pub command: String,
    /// `None` in recordings of older versions.
    #[serde(default)]
    pub run: Option<Run>,
    pub access: Tier,
    /// Ordered by rank, then by pid.
    pub ranks: Vec<RankSample>,
    pub cgroup: Option<CgroupSample>,
    /// CPUs that the job's processes may run on (affinity and cpuset), the widest of them.
    pub cpus_allowed: Option<u32>,
    /// The job has ended; what else is here is the last that was seen.
    pub ended: bool,
}

impl JobSample {
    /// Of which no rank is known yet.
    pub fn new(key: ProcessKey, command: impl Into<String>, access: Tier) -> Self {
        Self {
            key,
            command: command.into(),
            run: None,
            access,
            ranks: vec![],
            cgroup: None,
            cpus_allowed: None,
            ended: false,
        }
    }
}

/// One trainer process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankSample {
    pub key: ProcessKey,
    /// `RANK` of its environment; `None` where it has none or it cannot be read.
    pub rank: Option<u32>,
    /// `WORLD_SIZE` of its environment.
    pub world_size: Option<u32>,
    /// `LOCAL_RANK` of its environment: its rank among those of the machine.
    #[serde(default)]
    pub local_rank: Option<u32>,
    /// Threads of a process group on NCCL were seen in it. Also `false` where they have no name: before PyTorch
    /// 2.4 or so, unless NCCL was reported to name its own.
    #[serde(default)]
    pub nccl: bool,
    pub process: ProcessSample,
    /// How often the main thread was seen in each state. `None` where the state cannot be seen.
    pub main: Option<MainTally>,
    /// What `main` was when it was learned where the main thread asks for its batches: polls before say nothing. `None` where
    /// that was known from the start, or is not known yet.
    #[serde(default)]
    pub recognised: Option<MainTally>,
    /// What it tells of its own steps. `None` where it has reported nothing.
    pub reported: Option<Reported>,
    /// Stays in the loader that ended; where the rank reports its steps, the reported ones, also those of no length.
    pub waits: Tail<Wait>,
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
    /// Time that the main thread was seen to write a checkpoint, in polls of 10 ms. `None` without stacks.
    #[serde(default)]
    pub saving: Option<u64>,
    /// Time that the main thread was seen to wait for something that is no batch, by what that is: `communication`.
    /// In polls of 10 ms.
    #[serde(default)]
    pub not_data: BTreeMap<String, u64>,
    /// What its main thread was seen doing, poll by poll: the newest.
    #[serde(rename = "looks", default, skip_serializing_if = "PollTrace::is_empty")]
    pub polls: PollTrace,
}

impl RankSample {
    /// Of which nothing is known but that it is there.
    pub fn new(key: ProcessKey) -> Self {
        Self {
            key,
            rank: None,
            world_size: None,
            local_rank: None,
            nccl: false,
            process: ProcessSample::default(),
            main: None,
            recognised: None,
            reported: None,
            waits: Tail::default(),
            activity: BTreeMap::new(),
            gil_holders: BTreeMap::new(),
            loaders: vec![],
            passes: vec![],
            saving: None,
            not_data: BTreeMap::new(),
            polls: PollTrace::default(),
        }
    }
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

/// How long the trainer's main thread was seen doing what, since attaching, in polls of 10 ms: one that
/// came later counts for the time since the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MainTally {
    /// Polls in all. The other fields add up to it.
    #[serde(rename = "looks")]
    pub polls: u64,
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
    /// Of `running` and `other`: polls at which no stack could tell whether the loader was in use. Falls back where it turns
    /// out that PyTorch's loader feeds the job, which stacks show.
    pub unseen: u64,
    /// Of `waiting`: for a batch that another rank reads and sends.
    #[serde(default)]
    pub dispatched: u64,
    /// Of all these: asleep until another thread of the process gives up Python's lock (the GIL). `None` where such
    /// waits cannot be told from others.
    #[serde(default)]
    pub gil: Option<GilTally>,
    /// `None` where the kernel does not count it, and in recordings of older versions.
    #[serde(default)]
    pub ready: Option<ReadyTally>,
}

counts!(MainTally: polls, waiting, receiving, loading, running, other, disk, stopped, dispatched);

/// When the main thread was on a CPU or waiting for one: as the kernel counts it, and of the polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadyTally {
    /// By its `schedstat`, since attaching: exact, where polls are a sample.
    pub time: Duration,
    /// Of the polls in the loader, those at a thread that was ready. All of [`MainTally::running`] was, and none of the others.
    pub waiting: u64,
    pub receiving: u64,
    pub loading: u64,
}

counts!(ReadyTally: time, waiting, receiving, loading);

/// Polls at which the main thread slept until another thread of its process gives up Python's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GilTally {
    /// With a batch at hand or on its way, in the loader.
    pub in_loader: u64,
    /// In the step and elsewhere.
    pub outside: u64,
}

counts!(GilTally: in_loader, outside);

/// What a rank reported of its own steps through the probe protocol (T3), since it began to.
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
    /// each step. 0 also where computing is not reported.
    pub overrun: Duration,
    /// When the wait of the first step began, and when the newest step ended, since pipetop started.
    pub first_from: Duration,
    pub last_to: Duration,
    /// What it computes on, in its own words. `None` = not reported.
    pub device: Option<String>,
    /// What the user should know, in its own words, the newest. `None` = nothing was reported.
    pub notice: Option<String>,
}

/// Time of a device, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceTime {
    pub took: Duration,
    /// The length of the steps, waits included, that reported it.
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
