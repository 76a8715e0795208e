//! What can be set of the built-in job, and how its processes get that.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::dataset::Dataset;
use crate::launch::{Cache, LaunchSpec, LoaderOverrides, OWN_PROGRAM};

/// The built-in job, whole. Its processes find it as JSON on their command lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSettings {
    /// Loader worker processes, at least one.
    pub workers: u32,
    /// Images in a batch.
    pub batch_size: u32,
    /// Pixels that an image of a batch is wide and high.
    pub image_size: u32,
    /// Batches that each worker has under way or ready at most.
    pub prefetch_factor: u32,
    /// Batches pass through pinned memory, so that their copies overlap with steps.
    pub pin_memory: bool,
    /// Batches are handed over in the order in which they were asked for.
    pub in_order: bool,
    pub load: Load,
    /// Standard deviation of a set load time over its mean.
    pub load_jitter: f64,
    /// The last worker is so many times slower than the others.
    pub slow_worker: f64,
    pub step: StepTime,
    /// Time of a batch's copy to the device. `None` = what the device takes for the batch's bytes.
    pub copy: Option<Duration>,
    pub device: DeviceKind,
    /// The images that are loaded; none where nothing is read.
    pub dataset: Dataset,
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Load {
    /// Images are read from files, decoded and normalised; each so often, to make it heavier.
    Files { decodes: u32 },
    /// Nothing is read: a worker sleeps so long.
    Time(Duration),
}

/// How long the device computes for a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum StepTime {
    Fixed(Duration),
    /// This share of the time in which the loader can make a batch on this machine, measured at the start.
    OfLoading(f64),
}

/// What the job computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum DeviceKind {
    /// A GPU if one can be used, otherwise a simulated device
    Auto,
    /// The same as auto
    Cuda,
    /// A simulated device: the timing of a GPU, without computing
    Sim,
}

/// What a worker process must know beside the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct WorkerLaunch {
    /// Its number, from 0.
    #[arg(long)]
    pub worker: u32,
    /// The trainer's process.
    #[arg(long)]
    pub parent: i32,
    /// The descriptor of the memory that batches lie in.
    #[arg(long)]
    pub slots: i32,
}

impl JobSettings {
    /// The most batches that can be ready.
    pub fn capacity(&self) -> u32 {
        self.workers.saturating_mul(self.prefetch_factor)
    }

    /// Bytes of a batch: three colours of 32 bits a pixel.
    pub fn batch_bytes(&self) -> usize {
        let side = self.image_size as usize;
        self.batch_size as usize * 3 * side * side * size_of::<f32>()
    }

    /// How to start the job, with what an experiment changes in it. `probe` is the address of the socket that it shall
    /// report to; without one it reports to nobody.
    pub fn spec(&self, changes: LoaderOverrides, probe: Option<String>) -> LaunchSpec {
        let settings = Self {
            workers: changes.workers.unwrap_or(self.workers),
            prefetch_factor: changes.prefetch.unwrap_or(self.prefetch_factor),
            pin_memory: changes.pin.unwrap_or(self.pin_memory),
            cache: changes.cache.or(self.cache),
            ..self.clone()
        };
        let words = [OWN_PROGRAM, "builtin-trainer", &settings.word()];
        LaunchSpec {
            command: words.map(Into::into).into(),
            environment: vec![],
            probe,
            overrides: LoaderOverrides::default(),
        }
    }

    /// One word of a command line, for the processes of the job.
    pub fn word(&self) -> String {
        // A folder whose name is no text has none: the job says that its settings are missing.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// # Errors
    /// Never for what [`JobSettings::word`] wrote.
    pub fn parse(word: &str) -> serde_json::Result<Self> {
        serde_json::from_str(word)
    }
}

impl WorkerLaunch {
    /// The same as flags of a command line.
    pub fn flags(self) -> [String; 3] {
        let Self {
            worker,
            parent,
            slots,
        } = self;
        [
            format!("--worker={worker}"),
            format!("--parent={parent}"),
            format!("--slots={slots}"),
        ]
    }
}
