//! What was read: one [`Sample`] holds every raw counter of one instant.
//!
//! Counters are cumulative and as the kernel or driver gives them; `None` means *not known* and a
//! [`Gap`] says why. Nothing here is a rate, an estimate or an opinion, and nothing here knows how it
//! was read or what will be made of it. A recording holds exactly these values.

mod files;
mod gpu;
mod job;
#[cfg(test)]
pub(crate) mod literals;
mod processes;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Moment, Pid};

pub use files::{OpenFile, OpenFiles};
pub use gpu::{
    Absent, GpuCounters, GpuHealth, GpuInstance, GpuProcess, GpuSample, GpuTraffic, GpuUser, Link,
    PcieSampled, ProcessPlace, UsedBy, Xid,
};
pub use job::{
    BatchClock, BatchCount, BatchLoad, DeviceTime, GilTally, IoSample, JobSample, LoaderKind,
    LoaderSample, LoaderSettings, MainTally, Passes, ProcessSample, QueueSource, QueueTally,
    RankSample, Reported, UnderWay, Wait, WorkerLoads, WorkerNow, WorkerSample, WorkerTally,
};
pub use processes::{ProcessRole, ProcessSeen, ProcessesSample, ThreadSample, ThreadsSample};

/// Everything that one round of reading brought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Moment,
    pub host: HostSample,
    pub disks: Vec<DiskSample>,
    pub gpus: Vec<GpuSample>,
    /// `None` while there is no job to watch.
    pub job: Option<JobSample>,
    /// Jobs to choose from, while there are several and none was named.
    pub candidates: Vec<JobCandidate>,
    pub own: OwnSample,
    /// Of the process that was asked about; `None` where none was. Not recorded.
    #[serde(skip)]
    pub files: Option<OpenFiles>,
    /// The job's processes in full, while somebody looks at them. Not recorded.
    #[serde(skip)]
    pub processes: Option<ProcessesSample>,
    /// What could not be read, and why. Part of the reading: never dropped.
    pub gaps: Vec<Gap>,
}

/// A training job that could be watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCandidate {
    /// The trainer of the lowest rank.
    pub pid: Pid,
    pub command: String,
    pub ranks: usize,
    /// Loader workers of all ranks.
    pub workers: usize,
}

/// A source, or a part of one, that gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Gap {
    /// The source's name as `pipetop doctor` lists it: `nvml`, `python`, `queue`, ...
    pub source: String,
    /// One plain sentence part: `libnvidia-ml.so.1 not found`.
    pub reason: String,
    /// What would change it; empty where nothing would.
    pub hint: String,
}

/// How deep the watched job can be looked into.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum Tier {
    /// What any user may read.
    #[default]
    T0,
    /// The same user: wait channels, descriptors, I/O counters.
    T1,
    /// The right to attach: system call arguments and memory, so Python stacks.
    T2,
    /// The job reports its own steps.
    T3,
}

/// The machine as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostSample {
    /// CPUs that are online.
    pub cpus: u32,
    /// Busy time of all CPUs together, from `/proc/stat`.
    pub cpu_busy: Option<Duration>,
    /// Total memory and what is available, from `/proc/meminfo`.
    pub mem_total: Option<Bytes>,
    pub mem_available: Option<Bytes>,
    /// `/proc/pressure/*`, or the job's own cgroup's where that exists. `None` without PSI.
    pub pressure: Option<PressureSample>,
    /// Clock ticks between boot and the start of pipetop, on the clock of [`crate::units::ProcessKey::start_ticks`]:
    /// what places the start of a process in our time.
    pub boot_ticks_at_start: Option<u64>,
    /// Clock ticks in a second (`sysconf(_SC_CLK_TCK)`).
    pub ticks_per_second: Option<u64>,
}

/// Pressure stall totals: time in which at least one task waited for the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PressureSample {
    pub cpu: Option<Duration>,
    pub io: Option<Duration>,
    pub memory: Option<Duration>,
}

/// One block device, from `/proc/diskstats`. Cumulative since boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSample {
    pub device: String,
    pub reads: u64,
    pub read_bytes: Bytes,
    /// Time that reads took, summed over reads.
    pub read_time: Duration,
    pub writes: u64,
    pub write_bytes: Bytes,
    pub write_time: Duration,
    /// Time in which at least one request was under way.
    pub busy: Duration,
    /// Requests x time, for the mean queue depth.
    pub queued: Duration,
    /// The job's open files lie on this device.
    pub holds_job_files: bool,
}

/// Limits and accounting of the job's control group: the tightest on the way up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CgroupSample {
    /// The job's own group, as `/proc/PID/cgroup` names it.
    pub path: String,
    /// CPUs' worth of time per second; `None` = no limit or not known.
    pub cpu_quota: Option<f64>,
    /// Scheduler periods and how many of them were cut short, cumulative.
    pub periods: Option<u64>,
    pub throttled_periods: Option<u64>,
    pub throttled: Option<Duration>,
    /// CPUs in the effective cpuset.
    pub cpuset: Option<u32>,
    pub mem_limit: Option<Bytes>,
    pub mem_used: Option<Bytes>,
}

/// What pipetop itself costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OwnSample {
    /// CPU time of all own threads.
    pub cpu: Option<Duration>,
    pub rss: Option<Bytes>,
    /// Looks that came later than a whole period: the machine or the budget was too tight.
    pub late: u64,
}
