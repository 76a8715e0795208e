//! What two samples say together: every rate, share and estimate of the time between them.
//!
//! Pure: the first and the last sample of a window and its sums in, one [`Rates`] out. Knows no clock, no file and no opinion about what is good.
//!
//! A counter of the kernel that went backwards, that one side lacks, or whose process is another one by
//! now gives `None`: never 0 and never a spike. A tally that pipetop itself keeps since attaching counts
//! from 0 where the older sample did not have it yet.

mod estimate;
mod gpu;
mod job;
mod loader;
mod machine;
mod ratio;
mod reported;
mod sequential;
mod tally;
mod used;
mod whole;

#[cfg(test)]
mod tests;

#[cfg(feature = "testing")]
pub use gpu::CounterRates;
pub use gpu::GpuRates;
pub use sequential::Bounds;
pub use used::Used;

use crate::model::Overlap;
use crate::sample::{
    BatchLoad, LoaderKind, LoaderSettings, OtherProgram, QueueSource, Run, Tier, UnderWay,
    WorkerNow,
};
use crate::units::{Bytes, BytesPerSecond, Pid, ProcessKey, Share};

/// The time between an older and a newer sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Measured time between the two samples.
    pub seconds: f64,
    pub host: HostRates,
    pub disks: Vec<DiskRates>,
    pub gpus: Vec<GpuRates>,
    pub job: Option<JobRates>,
    /// CPU time of pipetop itself, as a share of one core.
    pub own_cpu: Option<Share>,
    pub own_rss: Option<Bytes>,
    /// Polls that came late, in this time.
    pub own_late: u64,
}

/// A share with the interval that it lies in at 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    pub share: Share,
    pub low: Share,
    pub high: Share,
    /// Polls that it rests on; where the job reports its steps, steps.
    pub polls: u64,
    /// Of the time: polls at which the loader was not recognised, and which may have been in it or not.
    pub unknown: Share,
    /// The same of the time since it was recognised. It depends on what the main thread did, where the time before does not.
    pub unclear: Share,
    /// The wider interval for judging before much was seen. `None` where nothing shows how much the share varies.
    pub early: Option<Bounds>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostRates {
    pub cpus: u32,
    /// Busy share of all CPUs together.
    pub cpu: Option<Share>,
    pub mem_total: Option<Bytes>,
    pub mem_available: Option<Bytes>,
    /// Share of time in which at least one task waited for it. `None` without PSI.
    pub pressure_cpu: Option<Share>,
    pub pressure_io: Option<Share>,
    pub pressure_memory: Option<Share>,
    /// Programs outside the job that use the CPUs most. Empty while CPUs are free, and where none is seen.
    pub others: Vec<OtherProgram>,
    /// Pages that were read back from swap.
    pub swapped_in_per_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DiskRates {
    pub device: String,
    pub read: BytesPerSecond,
    pub write: BytesPerSecond,
    /// Share of time with at least one request under way.
    pub util: Share,
    /// Reads a second.
    pub reads_per_s: f64,
    /// Mean time of a request; `None` where there was none.
    pub await_ms: Option<f64>,
    pub queue_depth: f64,
    pub holds_job_files: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct JobRates {
    pub key: ProcessKey,
    pub command: String,
    pub run: Option<Run>,
    pub access: Tier,
    pub ended: bool,
    /// Ordered as in the sample: by rank.
    pub ranks: Vec<RankRates>,
    pub cgroup: Option<CgroupRates>,
    pub cpus_allowed: Option<u32>,
    /// CPU time of all the job's processes that are known, in cores.
    pub cpu_cores: Option<f64>,
    /// Bytes fetched from block devices by all of them.
    pub read: Option<BytesPerSecond>,
    /// Bytes asked for by read calls of all workers, wherever they came from.
    pub rchar: Option<BytesPerSecond>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct CgroupRates {
    /// CPUs' worth of time; `None` = no limit or not known.
    pub cpu_quota: Option<f64>,
    /// Share of scheduler periods that were cut short by the quota.
    pub throttled_periods: Option<Share>,
    pub cpuset: Option<u32>,
    pub mem_limit: Option<Bytes>,
    pub mem_used: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RankRates {
    pub key: ProcessKey,
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    pub local_rank: Option<u32>,
    /// Threads of a process group on NCCL were seen in it; `false` also where they have no name.
    pub nccl: bool,
    /// State letter of the main thread now; `None` = gone.
    pub state: Option<char>,
    /// Share of time blocked in the loader: as the job reports it where its reports cover most of the time,
    /// else as it was seen. `None` where it cannot be seen.
    pub wait: Option<Estimate>,
    /// Of the time: blocked for a batch, receiving one, making one itself. Sum = `wait`; where a job that
    /// reports its waits was not seen in any, all of it is `waiting` and the others are not known.
    pub waiting: Option<Share>,
    pub receiving: Option<Share>,
    pub loading: Option<Share>,
    /// Of `waiting`: for batches that another rank reads and sends.
    pub dispatched: Option<Share>,
    /// Of the time: on a disk, stopped.
    pub disk: Option<Share>,
    pub stopped: Option<Share>,
    /// Of the time: main thread on a CPU (as a share of one core), and runnable but not running.
    pub main_cpu: Option<Share>,
    pub main_run_delay: Option<Share>,
    /// What its process reads and writes. `None` where that may not be read.
    pub io: Option<IoRates>,
    /// Of the time: waits for something that is no batch, the longest first.
    pub not_data: Vec<Activity>,
    /// How often the data that most batches come from was gone through since attaching, the pass under way counted in.
    /// `None` where no iterator tells.
    pub epoch: Option<u64>,
    /// Of the time: waits that a start of workers caused.
    pub startup: Option<Share>,
    /// The trainer waits every so many batches. `None` = no rhythm seen.
    pub period_batches: Option<u32>,
    pub step: StepRates,
    /// Its waits beside the idle time of each GPU that has a history; which of them it uses is not said here.
    pub overlaps: Vec<Overlap>,
    /// The same over the time in which a GPU swings, of those that do so more slowly than the window shows.
    pub beside_swings: Vec<Overlap>,
    /// What the rank computes on, by its own reports. `None` where it reports nothing.
    pub device: Option<DeviceRates>,
    /// Hottest functions of the main thread, by share of the polls with a stack.
    pub activity: Vec<Activity>,
    /// Asleep until another thread of the process gives up Python's lock (the GIL). `None` where such waits cannot
    /// be distinguished from others.
    pub gil: Option<GilRates>,
    /// Functions that held it then, by share of the polls that saw one.
    pub gil_holders: Vec<Activity>,
    pub loaders: Vec<LoaderRates>,
}

/// What one process reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IoRates {
    /// From and to block devices.
    pub read: BytesPerSecond,
    pub write: BytesPerSecond,
    /// By read calls, from anywhere.
    pub rchar: BytesPerSecond,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepRates {
    /// Batches that the trainer took in this time; `None` where nothing counts them.
    pub batches: Option<u64>,
    pub batches_per_s: Option<f64>,
    /// Time between two batches less the wait.
    pub step_ms: Option<f64>,
    pub wait_ms: Option<f64>,
    /// Worker time to make one batch.
    pub load_ms: Option<f64>,
}

/// A device as the job that uses it tells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceRates {
    /// In the job's words. `None` = not reported.
    pub name: Option<String>,
    /// What the user should know of it, in the job's words.
    pub notice: Option<String>,
    /// Share of time that it computed for the rank. `None` where that is not reported.
    pub busy: Option<Share>,
    /// Share of time in which batches were copied to it, beside computing or not. `None` where that is not reported.
    pub copying: Option<Share>,
    /// Share of time in which the rank waited and the device had nothing to do, by the device's clock. `None` where
    /// that is not reported.
    pub idle_in_waits: Option<Share>,
    /// It computed for no step beyond the step's end: while the rank waits, it idles.
    pub rests_with_each_step: bool,
}

/// A function and the share of polls it was seen in.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    pub name: String,
    pub share: Share,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LoaderRates {
    pub id: u64,
    pub kind: LoaderKind,
    /// What one of another library is called.
    pub name: Option<String>,
    pub settings: LoaderSettings,
    /// Ordered by worker number.
    pub workers: Vec<WorkerRates>,
    /// Worker processes that started in this time.
    pub workers_started: u64,
    pub queue: Option<QueueRates>,
    pub batches_per_s: Option<f64>,
    /// Batches that the trainer took from it so far, by the iterator's own counter; `None` where
    /// that is not seen, as lesser clocks cannot tell whose batch is the next.
    pub batches_taken: Option<u64>,
    /// Seconds since its workers ended, as they do between two epochs: all else is from before that. `None` while it is
    /// there.
    pub gone_seconds: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueRates {
    /// Ready batches at the last poll.
    pub ready: u32,
    /// Mean of ready batches over the time.
    pub mean_ready: f64,
    pub capacity: Option<u32>,
    /// Mean ready / capacity.
    pub occupancy: Option<Share>,
    pub empty: Share,
    pub source: QueueSource,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRates {
    pub key: ProcessKey,
    pub id: u32,
    /// It is a thread of the trainer, not a process.
    pub thread: bool,
    pub now: WorkerNow,
    /// CPU time of the process, in shares of one core: may exceed 1 with threads.
    pub cpu: Option<f64>,
    /// Of the time: its main thread on a CPU.
    pub main_cpu: Option<Share>,
    /// Of the time: runnable, not running.
    pub run_delay: Option<Share>,
    /// Of the time: not waiting for an index.
    pub busy: Option<Share>,
    /// Of the time: blocked on a disk, on the network, on handing over, asleep otherwise.
    pub disk: Option<Share>,
    pub network: Option<Share>,
    pub handover: Option<Share>,
    pub asleep: Option<Share>,
    /// From block devices, and by read calls from anywhere.
    pub read: Option<BytesPerSecond>,
    pub rchar: Option<BytesPerSecond>,
    /// To block devices.
    pub write: Option<BytesPerSecond>,
    pub major_faults_per_s: Option<f64>,
    pub batches_per_s: Option<f64>,
    /// Busy time per batch.
    pub load_ms: Option<f64>,
    pub cpus_allowed: Option<u32>,
    pub activity: Vec<Activity>,
    /// Its batches one by one. `None` where it cannot be seen which of them is in work.
    pub loads: Option<LoadRates>,
}

/// Single batches of a worker, as far as polls tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadRates {
    /// The newest whose time is known, newest first. In the rates of the verdict's window also those from before
    /// it.
    pub last: Vec<BatchLoad>,
    /// Batches of this time, at least, that ended too soon for polls to tell theirs.
    pub short: u64,
    /// What it has in work now. `None` while it waits for its next.
    pub under_way: Option<UnderWay>,
}

/// Of the time: the main thread waits for Python's lock.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GilRates {
    /// With a batch at hand or on its way: a part of the wait share, but no lack of data.
    pub in_loader: Share,
    /// In the step and elsewhere.
    pub outside: Share,
}

impl RankRates {
    /// What it is called: its rank; where it tells none, its place among those of the job.
    pub fn number(&self, place: usize) -> u32 {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        self.rank.unwrap_or(place)
    }
}

impl Rates {
    /// CPUs' worth of time that the machine spends neither on the job nor on pipetop. `None` where one of them is not
    /// known.
    pub fn used_by_others(&self, job: &JobRates) -> Option<f64> {
        let busy = self.host.cpu?.0 * f64::from(self.host.cpus);
        let own = self.own_cpu.map_or(0.0, |cpu| cpu.0);
        Some((busy - job.cpu_cores? - own).max(0.0))
    }

    /// Between two epochs a job may have no loader at all. Keeps those from `before` of ranks that have none now, for as
    /// long as this time still shows them.
    pub(super) fn keep_loaders(&mut self, before: &Self, seconds: f64) {
        let most = self.seconds;
        let ranks = |rates: &Self| rates.job.as_ref().map(|job| job.ranks.clone());
        let before = ranks(before).unwrap_or_default();
        let now = self.job.iter_mut().flat_map(|job| &mut job.ranks);
        for rank in now.filter(|rank| rank.loaders.is_empty()) {
            let Some(before) = before.iter().find(|before| before.key == rank.key) else {
                continue;
            };
            rank.step.load_ms = rank.step.load_ms.or(before.step.load_ms);
            let kept = before.loaders.iter();
            rank.loaders = kept
                .map(|loader| LoaderRates {
                    gone_seconds: Some(loader.gone_seconds.unwrap_or_default() + seconds),
                    ..loader.clone()
                })
                .filter(|loader| loader.gone_seconds.is_some_and(|gone| gone < most))
                .collect();
        }
    }
}

impl LoadRates {
    /// The middle one and the longest of the newest, in milliseconds: each in the middle between its bounds. `None`
    /// where there is none.
    pub fn median_and_longest(&self) -> Option<(f64, f64)> {
        let mut times: Vec<f64> = self.last.iter().map(BatchLoad::middle_ms).collect();
        times.sort_by(f64::total_cmp);
        let middle = times.get(times.len() / 2)?;
        let other = times.get(times.len().saturating_sub(1) / 2)?;
        Some((f64::midpoint(*middle, *other), *times.last()?))
    }
}

impl WorkerRates {
    pub fn pid(&self) -> Pid {
        self.key.pid
    }
}
