//! The job in the report: its ranks, the loader of each, and that loader's workers.
//!
//! If a rank has several loaders, the one that represents it comes first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::round::{bytes_per_s, number, round, share};
use super::verdict::interval;
use crate::model::rates::{
    Activity, DeviceRates, JobRates, LoadRates, LoaderRates, QueueRates, RankRates, StepRates,
    WorkerRates, rank_numbers,
};
use crate::sample::{BatchLoad, LoaderKind, LoaderSettings, QueueSource, Run, WorkerNow};
use crate::units::{Pid, Share};

/// The job: one or more trainer processes with their loaders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobReport {
    /// Process ID of the trainer with the lowest rank.
    pub pid: Pid,
    /// Command line of that process.
    pub command: String,
    /// Its identity among all runs of a cluster. null: in recordings of older versions.
    #[serde(default)]
    pub run: Option<Run>,
    /// Ranks of the whole run: `WORLD_SIZE` in its environment. null: not set, or not readable.
    #[serde(default)]
    pub world_size: Option<u32>,
    /// One entry for each trainer process, by rank.
    pub ranks: Vec<RankReport>,
    /// The job has ended: its figures are the last ones from before.
    #[serde(default)]
    pub ended: bool,
}

/// One trainer process and its loader: of several the one that it waits for, else the one that yields most batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankReport {
    /// `RANK` in its environment. null: not set, or not readable.
    pub rank: Option<u32>,
    /// `LOCAL_RANK` in its environment: its rank on this machine. null: not set, or not readable.
    #[serde(default)]
    pub local_rank: Option<u32>,
    pub pid: Pid,
    /// null: no loader found.
    pub loader: Option<LoaderReport>,
    /// Worker processes of that loader, by worker number. Empty: none, or loading runs in the main thread.
    pub workers: Vec<WorkerReport>,
    /// Queue of ready batches between workers and trainer. null: not visible.
    pub queue: Option<QueueReport>,
    /// Further loaders that it takes batches from, for example if two alternate.
    #[serde(default)]
    pub other_loaders: Vec<OtherLoaderReport>,
    pub step: StepReport,
    /// The device the rank computes on, as the job reports it. null: the job reports none.
    pub device: Option<DeviceReport>,
    /// Share of wall time that the main thread was blocked in the loader. null: not visible.
    pub wait_share: Option<Share>,
    /// Low and high end of `wait_share` at 95 %. null: not visible.
    pub wait_interval: Option<[Share; 2]>,
    /// Time spent on data other than the training data. null: not visible.
    #[serde(default)]
    pub validation: Option<ValidationReport>,
}

/// Time spent on validation, in shares of wall time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationReport {
    /// Its waits and its steps.
    pub share: Share,
    /// Its waits.
    pub wait_share: Share,
}

/// The device of a rank, as the job reports it. Shares are of the rank's time and may overlap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceReport {
    /// Name in the job's words. null: not reported.
    pub name: Option<String>,
    /// Share of time computing for the rank. null: not reported.
    pub busy_share: Option<Share>,
    /// Share of time copying batches to the device. null: not reported.
    pub copy_share: Option<Share>,
    /// A message of the job about its device. null: none.
    pub notice: Option<String>,
}

/// A loader and its settings. A setting that is null could not be read; it is not the default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoaderReport {
    /// Number from 1 that distinguishes it from the rank's other loaders with worker processes. null: it is not one of
    /// these.
    #[serde(default)]
    pub number: Option<u32>,
    pub kind: LoaderKind,
    /// Name of a loader of kind `other`, or of the one that feeds PyTorch's in the main thread. null: no name is known.
    pub name: Option<String>,
    #[serde(flatten)]
    pub settings: LoaderSettings,
    /// Share of wall time that the main thread was blocked in this loader. null: not visible for every loader of the
    /// rank.
    #[serde(default)]
    pub wait_share: Option<Share>,
    /// Batches per second that the trainer takes from it. null: not counted.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub batches_per_s: Option<f64>,
    /// Time between two of its batches minus the wait in milliseconds, while the trainer goes through its data. null: the
    /// trainer does not go through the data of several loaders in turn.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub step_ms: Option<f64>,
    /// It goes through data that is not trained on.
    #[serde(default)]
    pub validates: bool,
}

/// A loader of a rank other than the one that represents it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherLoaderReport {
    #[serde(flatten)]
    pub loader: LoaderReport,
    pub workers: Vec<WorkerReport>,
    /// null: not visible.
    pub queue: Option<QueueReport>,
}

/// One worker process of the loader. Shares are of wall time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerReport {
    /// The loader's number of the worker; in order of start if that is not readable.
    pub id: u32,
    /// Process ID. If `thread`: ID of the thread.
    pub pid: Pid,
    /// It is a thread of the trainer, not a process.
    pub thread: bool,
    /// CPU time in percent of one core, from `/proc/PID/stat`: more than 100 with several threads. null: not known.
    #[schemars(range(min = 0.0))]
    pub cpu_percent: Option<f64>,
    /// What the worker was doing at the last poll.
    pub state: WorkerNow,
    /// Share of time with a batch to make. null: not visible.
    pub busy_share: Option<Share>,
    /// Share of time runnable without a CPU, from `schedstat`. null: not known.
    pub run_delay_share: Option<Share>,
    /// Share of time blocked on a disk or the network. null: not visible.
    pub io_wait_share: Option<Share>,
    /// Bytes per second read from block devices (`read_bytes` of `/proc/PID/io`). null: no permission.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes per second returned by read calls, from caches, pipes and devices alike (`rchar`). null: no permission.
    pub rchar_bytes_per_s: Option<u64>,
    /// Batches per second made by this worker. null: not counted.
    #[schemars(range(min = 0.0))]
    pub batches_per_s: Option<f64>,
    /// Mean busy time for one batch in milliseconds. null: no batch, or not counted.
    #[schemars(range(min = 0.0))]
    pub load_ms: Option<f64>,
    /// The newest 16 batches at most, newest first. Batches too short to time are left out. null: single batches are
    /// not visible.
    #[schemars(length(max = 16))]
    pub last_loads_ms: Option<Vec<LoadReport>>,
    /// Python functions it was seen in, most frequent first. Empty without stacks.
    pub activity: Vec<ActivityReport>,
}

/// The load time of one batch: between two bounds, since the worker is polled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReport {
    /// The loader's number of the batch, from 0 in each epoch.
    pub batch: u64,
    /// Lower bound in milliseconds.
    pub low: u32,
    /// Upper bound in milliseconds.
    pub high: u32,
}

/// A function and how often it was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityReport {
    pub name: String,
    /// Share of the stacks taken.
    pub share: Share,
}

/// The queue of ready batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueReport {
    /// Mean number of ready batches.
    #[schemars(range(min = 0.0))]
    pub ready: f64,
    /// The most batches it holds: `num_workers` x `prefetch_factor`. null: not known.
    pub capacity: Option<u32>,
    /// `ready` / `capacity`. null: capacity not known.
    pub occupancy: Option<Share>,
    /// Share of time without a ready batch.
    pub empty_share: Share,
    pub source: QueueSource,
}

/// Means per batch. null: no batch in this time, or nothing counts or times it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StepReport {
    /// Batches per second that the trainer takes, from all its loaders: two for a step that takes one of each of two. One
    /// that comes through two loaders, one in the dataset of the other, counts once.
    #[schemars(range(min = 0.0))]
    pub batches_per_s: Option<f64>,
    /// Milliseconds from one batch to the next, without the wait.
    #[schemars(range(min = 0.0))]
    pub step_ms: Option<f64>,
    /// Milliseconds the trainer waits for a batch.
    #[schemars(range(min = 0.0))]
    pub wait_ms: Option<f64>,
    /// Milliseconds a worker takes to make a batch.
    #[schemars(range(min = 0.0))]
    pub load_ms: Option<f64>,
}

impl JobReport {
    /// Returns the ranks, each with the number that tells it apart; `None` for a single trainer without one.
    pub(crate) fn numbered_ranks(&self) -> impl Iterator<Item = (Option<u32>, &RankReport)> {
        let ranks: Vec<_> = self.ranks.iter().map(|rank| rank.rank).collect();
        let numbers = match ranks[..] {
            [None] => vec![None],
            _ => rank_numbers(&ranks).into_iter().map(Some).collect(),
        };
        numbers.into_iter().zip(&self.ranks)
    }

    pub(super) fn new(job: &JobRates) -> Self {
        Self {
            pid: job.key.pid,
            command: job.command.clone(),
            run: job.run.clone(),
            world_size: job.ranks.iter().find_map(|rank| rank.world_size),
            ranks: job.ranks.iter().map(RankReport::new).collect(),
            ended: job.ended,
        }
    }
}

impl RankReport {
    fn new(rank: &RankRates) -> Self {
        let loader = rank.main_loader();
        let workers = loader.map_or(&[][..], |loader| &loader.workers);
        let queue = loader.and_then(|loader| loader.queue.as_ref());
        let wait = rank.wait;
        Self {
            rank: rank.rank,
            local_rank: rank.local_rank,
            pid: rank.key.pid,
            loader: loader.map(LoaderReport::new),
            workers: workers.iter().map(WorkerReport::new).collect(),
            queue: queue.map(QueueReport::new),
            other_loaders: rank.other_loaders().map(OtherLoaderReport::new).collect(),
            step: StepReport::new(&rank.step),
            device: rank.device.as_ref().map(DeviceReport::new),
            wait_share: rank.wait_share().map(share),
            wait_interval: wait.map(|wait| interval(wait.low, wait.high)),
            validation: rank.validation.map(|validation| ValidationReport {
                share: share(validation.time),
                wait_share: share(validation.waiting),
            }),
        }
    }
}

impl DeviceReport {
    fn new(device: &DeviceRates) -> Self {
        Self {
            name: device.name.clone(),
            busy_share: device.busy.map(share),
            copy_share: device.copying.map(share),
            notice: device.notice.clone(),
        }
    }
}

impl LoaderReport {
    fn new(loader: &LoaderRates) -> Self {
        Self {
            number: loader.number(),
            kind: loader.kind,
            name: loader.name.clone(),
            settings: loader.settings.clone(),
            wait_share: loader.wait.map(share),
            batches_per_s: number(loader.batches_per_s, 3),
            step_ms: number(loader.step_ms, 3),
            validates: loader.validates,
        }
    }
}

impl OtherLoaderReport {
    fn new(loader: &LoaderRates) -> Self {
        Self {
            loader: LoaderReport::new(loader),
            workers: loader.workers.iter().map(WorkerReport::new).collect(),
            queue: loader.queue.as_ref().map(QueueReport::new),
        }
    }
}

impl WorkerReport {
    fn new(worker: &WorkerRates) -> Self {
        // The report has only the sum; the verdict's cause distinguishes disk and network.
        let io_wait = worker.disk.zip(worker.network);
        let io_wait = io_wait.map(|(disk, network)| Share(disk.0 + network.0).clamped());
        Self {
            id: worker.id,
            pid: worker.key.pid,
            thread: worker.thread,
            cpu_percent: number(worker.cpu.map(|cores| 100.0 * cores), 1),
            state: worker.now,
            busy_share: worker.busy.map(share),
            run_delay_share: worker.run_delay.map(share),
            io_wait_share: io_wait.map(share),
            read_bytes_per_s: bytes_per_s(worker.read),
            rchar_bytes_per_s: bytes_per_s(worker.rchar),
            batches_per_s: number(worker.batches_per_s, 3),
            load_ms: number(worker.load_ms, 3),
            last_loads_ms: worker.loads.as_ref().map(loads),
            activity: worker.activity.iter().map(ActivityReport::new).collect(),
        }
    }
}

fn loads(loads: &LoadRates) -> Vec<LoadReport> {
    let load = |load: &BatchLoad| LoadReport {
        batch: load.batch,
        low: load.low_ms,
        high: load.high_ms,
    };
    loads.last.iter().map(load).collect()
}

impl ActivityReport {
    fn new(activity: &Activity) -> Self {
        Self {
            name: activity.name.clone(),
            share: share(activity.share),
        }
    }
}

impl QueueReport {
    pub(super) fn new(queue: &QueueRates) -> Self {
        Self {
            ready: round(queue.mean_ready, 2),
            capacity: queue.capacity,
            occupancy: queue.occupancy.map(share),
            empty_share: share(queue.empty),
            source: queue.source,
        }
    }
}

impl StepReport {
    pub(super) fn new(step: &StepRates) -> Self {
        Self {
            batches_per_s: number(step.batches_per_s, 3),
            step_ms: number(step.step_ms, 3),
            wait_ms: number(step.wait_ms, 3),
            load_ms: number(step.load_ms, 3),
        }
    }
}
