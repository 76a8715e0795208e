//! The settings of the built-in job, and how its processes get them.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::dataset::Dataset;
use crate::launch::{LaunchSpec, LoaderOverrides, OWN_PROGRAM};
use crate::probe::Cached;

/// All settings of the built-in job, which the trainer gets as JSON on its command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSettings {
    /// Loader worker processes, at least one.
    pub workers: u32,
    /// Images in a batch.
    pub batch_size: u32,
    /// Width and height of an image in a batch, in pixels.
    pub image_size: u32,
    /// Maximum number of batches that each worker has under way or ready.
    pub prefetch_factor: u32,
    /// Whether batches pass through pinned memory, so that their copies overlap with steps.
    pub pin_memory: bool,
    /// Whether batches are delivered in the order of the requests.
    pub in_order: bool,
    pub load: Load,
    /// Standard deviation of a set load time divided by its mean.
    pub load_jitter: f64,
    /// The last worker is this many times slower than the others.
    pub slow_worker: f64,
    pub step: StepTime,
    /// Time of a batch's copy to the device. `None` = the time that the device needs for the batch's bytes.
    pub copy: Option<Duration>,
    pub device: DeviceKind,
    /// The images to load; empty if nothing is read.
    pub dataset: Dataset,
    /// Whether to bypass the page cache.
    pub direct: bool,
    /// Stop after this many steps, or this long. `None` = never.
    pub steps: Option<u64>,
    pub duration: Option<Duration>,
    /// Reuse the same batches once some were loaded.
    pub cache: Option<Cached>,
    pub seed: u64,
}

/// The source of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Load {
    /// Images are read from files, then decoded and normalised this many times, to make loading slower.
    Files { decodes: u32 },
    /// Nothing is read: a worker sleeps this long.
    Time(Duration),
}

/// Compute time of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum StepTime {
    Fixed(Duration),
    /// This share of the time that the loader needs for a batch on this machine, measured at the start.
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

/// What a worker process needs. It gets this as JSON on its command line, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerLaunch {
    pub settings: JobSettings,
    /// Its number, from 0.
    pub worker: u32,
    /// The trainer's process.
    pub parent: i32,
    /// The descriptor of the shared memory for batches.
    pub slots: i32,
}

impl JobSettings {
    /// Returns the maximum number of batches that can be ready.
    pub fn capacity(&self) -> u32 {
        self.workers.saturating_mul(self.prefetch_factor)
    }

    /// Returns the bytes of a batch: three colours of 32 bits per pixel.
    pub fn batch_bytes(&self) -> usize {
        let side = self.image_size as usize;
        self.batch_size as usize * 3 * side * side * size_of::<f32>()
    }

    /// Returns how to start the job, with the changes of an experiment. `probe` is the address of the socket for its
    /// reports; without one it does not report.
    pub fn spec(&self, changes: LoaderOverrides, probe: Option<String>) -> LaunchSpec {
        let settings = Self {
            workers: changes.workers.unwrap_or(self.workers),
            prefetch_factor: changes.prefetch.unwrap_or(self.prefetch_factor),
            pin_memory: changes.pin.unwrap_or(self.pin_memory),
            cache: changes.cache.or(self.cache),
            ..self.clone()
        };
        let words = [OWN_PROGRAM, "builtin-trainer", &word(&settings)];
        LaunchSpec {
            command: words.map(Into::into).into(),
            environment: vec![],
            probe,
            overrides: LoaderOverrides::default(),
        }
    }
}

/// Returns settings as one word of a command line, for a process of the job.
pub fn word(settings: &impl Serialize) -> String {
    // Fails if a folder's name is not UTF-8; the job then reports that its settings are missing.
    serde_json::to_string(settings).unwrap_or_default()
}
