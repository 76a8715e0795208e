//! One [`Sample`] holds every raw counter of one instant.
//!
//! Counters are cumulative, as the kernel or driver reports them. Events are numbered ([`Tail`]), so that losing a
//! sample loses no events. `None` means *not known*, and a [`Gap`] has the reason. There are no rates, estimates or
//! judgements here, and nothing that depends on how a value was read or how it is used. A recording holds exactly these
//! values.

mod cgroup;
mod counts;
mod files;
mod gpu;
mod job;
mod loader;
mod poll_trace;
mod process;
mod processes;
mod replay_position;
mod run;
mod tail;
#[cfg(test)]
mod tests;
mod tier;
mod worker;
mod worker_now;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Moment, Pid, ProcessKey};

pub use cgroup::CgroupSample;
pub use files::{OpenFile, OpenFiles};
pub use gpu::{
    Absent, GpuCounters, GpuHealth, GpuInstance, GpuProcess, GpuSample, GpuTraffic, GpuUser, Link,
    NO_PERMISSION, PcieSampled, ProcessPlace, UsedBy, Xid,
};
pub use job::{
    BEAT, CELLS, COMMUNICATION, COPIES, DeviceTime, EVENTS, GilTally, JobSample, MAX_GAP,
    MainTally, Passes, RankSample, ReadyTally, Reported, SYNCHRONIZE, WRITTEN_FILE, Wait,
};
pub use loader::{
    BatchClock, BatchCount, LoaderKind, LoaderSample, LoaderSettings, QueueSource, QueueTally,
};
pub use poll_trace::{PollTrace, SLOT, SlotState, TrainerNow, slot};
pub use process::{IoSample, ProcessSample};
pub use processes::{ProcessRole, ProcessSeen, ProcessesSample, ThreadSample, ThreadsSample};
pub use replay_position::ReplayPosition;
pub use run::{Run, RunSource};
pub use tail::Tail;
#[cfg(test)]
pub(crate) use tests::literals;
pub use tier::Tier;
pub use worker::{BatchLoad, UnderWay, WorkerLoads, WorkerSample, WorkerTally};
pub use worker_now::WorkerNow;

/// All values from one round of reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Moment,
    pub host: HostSample,
    pub disks: Vec<DiskSample>,
    pub gpus: Vec<GpuSample>,
    /// `None` while there is no job to watch.
    pub job: Option<JobSample>,
    /// Jobs to choose from, while there are several and none was selected.
    pub candidates: Vec<JobCandidate>,
    pub own: OwnSample,
    /// Open files of the selected process; `None` if none is selected. Not recorded.
    #[serde(skip)]
    pub files: Option<OpenFiles>,
    /// The job's processes in full, while they are on screen. Not recorded.
    #[serde(skip)]
    pub processes: Option<ProcessesSample>,
    /// What could not be read, and why. Part of the reading: never dropped.
    pub gaps: Vec<Gap>,
}

impl Sample {
    /// Returns a sample of which only the time is known.
    pub fn new(at: Moment) -> Self {
        Self {
            at,
            host: HostSample::default(),
            disks: vec![],
            gpus: vec![],
            job: None,
            candidates: vec![],
            own: OwnSample::default(),
            files: None,
            processes: None,
            gaps: vec![],
        }
    }

    /// Returns the ranks of the job; none while there is no job.
    pub fn ranks(&self) -> &[RankSample] {
        self.job.as_ref().map_or(&[], |job| &job.ranks)
    }

    pub fn rank(&self, key: ProcessKey) -> Option<&RankSample> {
        self.job.as_ref()?.rank(key)
    }

    /// Returns the number of loader workers of all ranks.
    pub fn workers(&self) -> usize {
        self.ranks().iter().flat_map(RankSample::workers).count()
    }
}

/// A training job that could be watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobCandidate {
    /// The trainer of the lowest rank.
    pub pid: Pid,
    pub command: String,
    pub ranks: usize,
    /// Loader workers of all ranks.
    pub workers: usize,
}

/// A source, or a part of one, that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// The source's name as `pipetop doctor` lists it: `nvml`, `python`, `queue`, ...
    pub source: String,
    /// Part of a sentence, for example `libnvidia-ml.so.1 not found`.
    pub reason: String,
    /// How to fix it; empty if nothing helps.
    pub hint: String,
}

/// The reason of the gap on a machine without an NVIDIA GPU.
pub const NO_GPU: &str = "no NVIDIA GPU on this machine";

impl Gap {
    pub fn new(source: &str, reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            source: source.to_owned(),
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    /// Returns whether there is no GPU to read, so that nothing is missing.
    pub fn is_no_gpu(&self) -> bool {
        self.reason == NO_GPU
    }
}

/// The machine as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostSample {
    /// CPUs that are online.
    pub cpus: u32,
    /// Busy time of all CPUs together, from `/proc/stat`.
    pub cpu_busy: Option<Duration>,
    /// The part of it in which a hypervisor ran something else. The kernel counts it for no process.
    pub cpu_stolen: Option<Duration>,
    /// Total and available memory, from `/proc/meminfo`.
    pub mem_total: Option<Bytes>,
    pub mem_available: Option<Bytes>,
    /// Pages that were read back from swap since boot, from `/proc/vmstat`.
    pub swapped_in: Option<u64>,
    /// From `/proc/pressure/*`, or from the job's own cgroup if that has it. `None` without PSI.
    pub pressure: Option<PressureSample>,
    /// Clock ticks between boot and the start of pipetop, on the clock of [`crate::units::ProcessKey::start_ticks`]:
    /// converts the start of a process to time since pipetop started.
    pub boot_ticks_at_start: Option<u64>,
    /// Clock ticks per second (`sysconf(_SC_CLK_TCK)`).
    pub ticks_per_second: Option<u64>,
    /// Programs outside the job that use the CPUs most, the busiest first; read only while few CPUs are free.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherProgram>,
}

/// All processes with one name that are not part of the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherProgram {
    pub name: String,
    /// CPUs that they used between the last two readings.
    pub cpus: f64,
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
    /// Time in which at least one request was in progress.
    pub busy: Duration,
    /// Sum of requests in progress over time, for the mean queue depth.
    pub queued: Duration,
    /// The job has open files on this device.
    pub holds_job_files: bool,
}

/// What pipetop itself uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OwnSample {
    /// CPU time of all own threads.
    pub cpu: Option<Duration>,
    pub rss: Option<Bytes>,
    /// Polls that came later than a whole period: the machine or the budget was too tight.
    pub late: u64,
}

impl Sample {
    /// Drops the events that are in `earlier`, so that consecutive samples store each event once.
    pub fn drop_events(&mut self, earlier: &Self) {
        for gpu in &mut self.gpus {
            if let Some(before) = earlier.gpus.iter().find(|before| before.is(gpu)) {
                gpu.util_samples.forget(&before.util_samples);
            }
        }
        let (Some(job), Some(before)) = (&mut self.job, &earlier.job) else {
            return;
        };
        for rank in &mut job.ranks {
            let Some(before) = before.rank(rank.key) else {
                continue;
            };
            rank.waits.forget(&before.waits);
            rank.polls.forget(&before.polls);
            for loader in &mut rank.loaders {
                if let Some(known) = before.loader(loader.id) {
                    loader.queue_polls.forget(&known.queue_polls);
                }
            }
            let workers = before.workers();
            let before: BTreeMap<_, _> = workers.map(|worker| (worker.key, worker)).collect();
            let loaders = rank.loaders.iter_mut();
            for worker in loaders.flat_map(|loader| &mut loader.workers) {
                let Some(before) = before.get(&worker.key) else {
                    continue;
                };
                worker.polls.forget(&before.polls);
                if let (Some(loads), Some(before)) = (&mut worker.loads, &before.loads) {
                    loads.ended.forget(&before.ended);
                }
            }
        }
    }
}
