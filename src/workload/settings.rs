//! What can be set of the built-in job.

use std::path::PathBuf;
use std::time::Duration;

/// The built-in job, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Loader worker processes, at least one.
    pub workers: u32,
    /// Images in a batch.
    pub batch_size: u32,
    /// Batches that each worker has under way or ready at most.
    pub prefetch_factor: u32,
    /// Batches pass through pinned memory, so that their copies overlap with steps.
    pub pin_memory: bool,
    /// Batches are handed over in the order in which they were asked for.
    pub in_order: bool,
    pub load: Load,
    /// Standard deviation of the load time over its mean.
    pub load_jitter: f64,
    /// The last worker is so many times slower than the others.
    pub slow_worker: f64,
    pub step: StepTime,
    /// Time of a batch's copy to the device. `None` = what the device takes for the batch's bytes.
    pub copy: Option<Duration>,
    pub device: DeviceKind,
    /// Where the images lie; `None` where batches are not read from files.
    pub dataset: Option<PathBuf>,
    /// Read past the page cache.
    pub direct: bool,
    /// End after so many steps, or so long. `None` = go on.
    pub steps: Option<u64>,
    pub duration: Option<Duration>,
    /// Hand over the same batches again and again, once some were loaded.
    pub cache: Option<Cache>,
    pub seed: u64,
}

/// Where a batch comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Images are read from files, decoded and normalised; so often each, to make it heavier.
    Files { decodes: u32 },
    /// Nothing is read: a worker sleeps so long.
    Time(Duration),
}

/// How long the device computes for a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepTime {
    Fixed(Duration),
    /// This share of the time in which the loader could make a batch on this machine, measured at the start.
    OfLoading(f64),
}

/// To measure what free loading would give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Batches that are handed over in turn.
    pub batches: u32,
    /// Batches that are loaded before.
    pub after: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A GPU where one can be used, else the simulated device.
    Auto,
    Cuda,
    Sim,
}
