//! Computes every rate, share and estimate of the time between two samples.
//!
//! Takes the first and the last sample of a window and its sums, and returns one [`Rates`]. Reads no clock and no file,
//! and does not judge what is good.
//!
//! The result is `None`, never 0 or a spike, for a kernel counter that went backwards, is missing on one side, or whose
//! process was replaced. A tally that pipetop keeps since attaching counts from 0 if the older sample lacks it.

mod estimate;
mod gpu;
mod job;
mod loader;
mod machine;
mod polled_wait;
mod ratio;
mod reported;
mod sequential;
mod step;
mod tally;
mod time_on_data;
mod used;
mod whole;
mod worker;

#[cfg(test)]
mod tests;

#[cfg(feature = "testing")]
pub use gpu::CounterRates;
pub use gpu::GpuRates;
pub use sequential::Bounds;
pub use used::Used;
pub use worker::{Activity, LoadRates, WorkerRates};

use std::collections::BTreeSet;

use crate::model::Overlap;
use crate::sample::{LoaderKind, LoaderSettings, OtherProgram, QueueSource, Run, Tier};
use crate::units::{Bytes, BytesPerSecond, ProcessKey, Share};

/// Rates of the time between an older and a newer sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Measured time between the two samples, in seconds.
    pub seconds: f64,
    pub host: HostRates,
    pub disks: Vec<DiskRates>,
    pub gpus: Vec<GpuRates>,
    pub job: Option<JobRates>,
    /// CPU time of pipetop itself, as a share of one core.
    pub own_cpu: Option<Share>,
}

/// A share with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    pub share: Share,
    pub low: Share,
    pub high: Share,
    /// Polls that the share is based on or, if the job reports its steps, steps.
    pub polls: u64,
    /// Share of the time whose polls may or may not have been in the loader, because it was not recognised.
    pub unknown: Share,
    /// The same share, but only of the time since the loader was recognised. Unlike in the time before, it depends on
    /// what the main thread did.
    pub unclear: Share,
    /// The wider interval for judging early. `None` if nothing shows how much the share varies.
    pub early: Option<Bounds>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostRates {
    pub cpus: u32,
    /// Busy share of all CPUs together.
    pub cpu: Option<Share>,
    pub mem_total: Option<Bytes>,
    pub mem_available: Option<Bytes>,
    /// Shares of time in which at least one task waited for the resource. `None` without PSI.
    pub pressure_cpu: Option<Share>,
    pub pressure_io: Option<Share>,
    pub pressure_memory: Option<Share>,
    /// Programs outside the job that use the CPUs most. Empty while CPUs are free, and if none is visible.
    pub others: Vec<OtherProgram>,
    /// Pages read back from swap per second.
    pub swapped_in_per_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DiskRates {
    pub device: String,
    pub read: BytesPerSecond,
    pub write: BytesPerSecond,
    /// Share of time with at least one request in progress.
    pub util: Share,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Mean time of a request in milliseconds; `None` if there was none.
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
    /// CPU time of all known processes of the job, in cores.
    pub cpu_cores: Option<f64>,
    /// Bytes per second fetched from block devices by all of them.
    pub read: Option<BytesPerSecond>,
    /// Bytes per second requested by read calls of all workers, from any source.
    pub rchar: Option<BytesPerSecond>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct CgroupRates {
    /// Limit in CPUs; `None` means no limit or not known.
    pub cpu_quota: Option<f64>,
    /// Share of scheduler periods that were throttled by the quota.
    pub throttled_periods: Option<Share>,
    pub cpuset: Option<u32>,
    pub mem_limit: Option<Bytes>,
    pub mem_used: Option<Bytes>,
    /// Frozen now; `None` = not known.
    pub frozen: Option<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RankRates {
    pub key: ProcessKey,
    pub rank: Option<u32>,
    /// Tells it apart from the job's other ranks; see [`rank_numbers`].
    pub number: u32,
    pub world_size: Option<u32>,
    pub local_rank: Option<u32>,
    /// Threads of an NCCL process group were seen in it; also `false` if they have no name.
    pub nccl: bool,
    /// State letter of the main thread now; `None` means gone.
    pub state: Option<char>,
    /// Share of time blocked in the loader: as reported by the job if its reports cover most of the time, else as
    /// polled. `None` if it cannot be seen.
    pub wait: Option<Estimate>,
    /// Shares of the time: blocked for a batch, receiving one, making one itself. Their sum is `wait`. If a job reports
    /// its waits but was not polled in any, all of it is `waiting` and the others are `None`.
    pub waiting: Option<Share>,
    pub receiving: Option<Share>,
    pub loading: Option<Share>,
    /// Part of `waiting`: for batches that another rank reads and sends.
    pub dispatched: Option<Share>,
    /// Part of `waiting`: while the pinning thread was working on a batch.
    pub pinning: Option<Share>,
    /// Part of `loading`: blocked on a network, or on a file system behind one.
    pub network: Option<Share>,
    /// Part of `loading`: in the training loop itself, outside PyTorch's loader.
    pub in_loop: Option<Share>,
    /// Share of the time in which it was polled: below 1 if pipetop itself was stopped. `None` if it is not polled.
    pub polled: Option<Share>,
    /// Shares of the time: blocked on a disk, stopped.
    pub disk: Option<Share>,
    pub stopped: Option<Share>,
    /// Share of the time in which nothing of its process ran: the main thread was asleep outside the loader, neither in
    /// a timer nor in a wait that has a name, and no other thread was on a CPU. `None` if that is not known.
    pub blocked: Option<Share>,
    /// Share of the polls whose last stack showed a model or its training. `None` without polls.
    pub computing: Option<Share>,
    /// Shares of the time: main thread on a CPU (as a share of one core), and runnable but not running.
    pub main_cpu: Option<Share>,
    pub main_run_delay: Option<Share>,
    /// What the rank's process reads and writes. `None` if that may not be read.
    pub io: Option<IoRates>,
    /// Shares of the time in waits for something other than a batch, longest first.
    pub not_data: Vec<Activity>,
    /// Least share of the time in waits for the device: polls may misjudge it.
    pub synchronized_at_least: Share,
    /// Passes over the main dataset since attaching, with the one in progress. `None` if no iterator shows it.
    pub epoch: Option<u64>,
    /// Time spent on data other than the training data. `None` if no iterator shows it.
    pub validation: Option<ValidationRates>,
    /// Shares of the time in waits that were caused by a start of workers, and for the first batch of a pass.
    pub startup: Option<Share>,
    pub first_batches: Option<Share>,
    /// Period in batches at which the trainer waits. `None` means no period was seen.
    pub period_batches: Option<u32>,
    /// Mean length of the wait around a random moment of waiting. `None` without waits.
    pub wait_seconds: Option<f64>,
    pub step: StepRates,
    /// Overlap of its waits with the idle time of each GPU that has a history, whether or not the rank uses that GPU.
    pub overlaps: Vec<Overlap>,
    /// The same over the time in which a GPU oscillates, for GPUs that oscillate too slowly for the window.
    pub slow_overlaps: Vec<Overlap>,
    /// The device that the rank computes on, by its own reports. `None` if it reports nothing.
    pub device: Option<DeviceRates>,
    /// Hottest functions of the main thread, by share of the polls whose stack names one.
    pub activity: Vec<Activity>,
    /// Share of all polls whose stack names a function: the others find a wait, or no function. `None` in older
    /// recordings.
    pub named: Option<Share>,
    /// Asleep until another thread of the process releases Python's lock (the GIL). `None` if such waits cannot be
    /// distinguished from others.
    pub gil: Option<GilRates>,
    /// Functions that held the lock then, by share of the polls that saw one.
    pub gil_holders: Vec<Activity>,
    pub loaders: Vec<LoaderRates>,
}

/// Time spent on validation, waits included, and the loader's waits during it: both are shares of all time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ValidationRates {
    pub time: Share,
    pub waiting: Share,
}

/// What one process reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IoRates {
    /// Bytes from and to block devices.
    pub read: BytesPerSecond,
    pub write: BytesPerSecond,
    /// Bytes by read calls, from any source.
    pub rchar: BytesPerSecond,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepRates {
    /// Batches that the trainer took in this time; `None` if nothing counts them.
    pub batches: Option<u64>,
    pub batches_per_s: Option<f64>,
    /// Time between two batches minus the wait.
    pub step_ms: Option<f64>,
    pub wait_ms: Option<f64>,
    /// Worker time to make one batch.
    pub load_ms: Option<f64>,
}

/// A device as reported by the job that uses it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceRates {
    /// Name in the job's words. `None` means not reported.
    pub name: Option<String>,
    /// A notice for the user, in the job's words.
    pub notice: Option<String>,
    /// Share of time in which it computed for the rank. `None` if not reported.
    pub busy: Option<Share>,
    /// Share of time in which batches were copied to it, whether or not it computed. `None` if not reported.
    pub copying: Option<Share>,
    /// Share of time in which the rank waited and the device had nothing to do, by the device's clock. `None` if not
    /// reported.
    pub idle_in_waits: Option<Share>,
    /// No step's computation continued after the step's end: while the rank waits, the device is idle.
    pub rests_with_each_step: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LoaderRates {
    pub id: u64,
    pub kind: LoaderKind,
    /// Name of a loader of another library.
    pub name: Option<String>,
    pub settings: LoaderSettings,
    /// Ordered by worker id.
    pub workers: Vec<WorkerRates>,
    /// Worker processes that started in this time.
    pub workers_started: u64,
    pub queue: Option<QueueRates>,
    pub batches_per_s: Option<f64>,
    /// Share of the time that the trainer spent in it. `None` unless it is known for each of the trainer's loaders.
    pub wait: Option<Share>,
    /// It goes through data that is not trained on.
    pub validates: bool,
    /// Time between two of its batches minus the wait, while the trainer goes through its data. `None` unless the
    /// trainer goes through another loader's data at other times, for example for a validation.
    pub step_ms: Option<f64>,
    /// Batches that the trainer has taken from it so far, by the iterator's own counter; `None` if that is not read,
    /// since other clocks cannot tell whose batch is the next.
    pub batches_taken: Option<u64>,
    /// Batches of its longest pass through its data. `None` until that is known.
    pub longest_pass: Option<u64>,
    /// Seconds since its workers ended, as they do between two epochs: all other fields are from before that. `None`
    /// while the loader exists.
    pub gone_seconds: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueRates {
    /// Ready batches at the last poll.
    pub ready: u32,
    /// Mean number of ready batches over the time.
    pub mean_ready: f64,
    pub capacity: Option<u32>,
    /// Mean number of ready batches over the capacity.
    pub occupancy: Option<Share>,
    /// Share of the polls of the queue at which no batch was ready.
    pub empty: Share,
    /// The same share, if the queue counts as empty while it could not be polled between two epochs.
    pub empty_at_most: Share,
    pub source: QueueSource,
}

/// Shares of the time in which the main thread waits for Python's lock.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GilRates {
    /// While a batch is ready or on its way: part of the wait share, but no lack of data.
    pub in_loader: Share,
    /// In the step and elsewhere.
    pub outside: Share,
}

/// Returns a number for each rank of a job by which it can be told apart: its `RANK`, unless an earlier one has the
/// same, as a process that inherited it, or it is not known; then the lowest that is no rank's `RANK`.
pub fn rank_numbers(ranks: &[Option<u32>]) -> Vec<u32> {
    let all: BTreeSet<u32> = ranks.iter().flatten().copied().collect();
    let mut free = (0..).filter(|number| !all.contains(number));
    let mut taken = BTreeSet::new();
    let own = ranks
        .iter()
        .map(|rank| rank.filter(|rank| taken.insert(*rank)));
    own.map(|own| own.or_else(|| free.next()).unwrap_or(u32::MAX))
        .collect()
}

impl Rates {
    /// Gives ranks without a loader those from `before`, while the window still covers them: between epochs there may
    /// be no loader, or nothing but its place in the training loop. A job that reports its steps goes on with another
    /// loader, or ends: it keeps them for a few seconds only. So does a rank that goes on with another of its loaders.
    pub(super) fn keep_loaders(&mut self, before: &Self, seconds: f64) {
        /// As long as the screen's window.
        const REPORTING: f64 = 10.0;
        /// A guess: one that is gone for longer may have ended for good.
        const OF_SEVERAL: f64 = 3.0;
        let now = self.job.iter_mut().flat_map(|job| &mut job.ranks);
        for rank in now {
            let before = before.job.as_ref().and_then(|job| job.rank(rank.key));
            let Some(before) = before else {
                continue;
            };
            let none = rank.loaders.iter().all(LoaderRates::is_only_a_place);
            let reports = rank.loaders.iter().any(LoaderRates::is_reported);
            let most = self.seconds.min(match (none, reports) {
                (false, _) => OF_SEVERAL,
                (true, true) => REPORTING,
                (true, false) => f64::MAX,
            });
            let gone = |it: &LoaderRates| it.gone_seconds.unwrap_or_default() + seconds;
            let is_of_several = |it: &LoaderRates| {
                it.number().is_some() && rank.loaders.iter().all(|one| one.id != it.id)
            };
            let kept = before.loaders.iter();
            let kept = kept.filter(|it| !it.is_only_a_place() && gone(it) < most);
            let kept = kept.filter(|it| none || is_of_several(it));
            let kept = kept.map(|loader| LoaderRates {
                gone_seconds: Some(gone(loader)),
                ..loader.clone()
            });
            let kept: Vec<_> = kept.collect();
            if none && !kept.is_empty() {
                rank.step.load_ms = before.step.load_ms.or(rank.step.load_ms);
                rank.loaders.clear();
            }
            rank.loaders.extend(kept);
        }
    }
}
