//! What can be set of the built-in job, and how its processes are told.

use std::fmt::Display;
use std::time::Duration;

use clap::ValueEnum;

use super::dataset::Dataset;

/// The built-in job, whole.
#[derive(Debug, Clone, PartialEq)]
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
    pub cache: Option<CachedBatches>,
    pub seed: u64,
}

/// Where a batch comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Images are read from files, decoded and normalised; each so often, to make it heavier.
    Files { decodes: u32 },
    /// Nothing is read: a worker sleeps so long.
    Time(Duration),
}

/// How long the device computes for a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepTime {
    Fixed(Duration),
    /// This share of the time in which the loader can make a batch on this machine, measured at the start.
    OfLoading(f64),
}

/// To measure what free loading would give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedBatches {
    /// Batches that are handed over in turn.
    pub batches: u32,
    /// Batches that are loaded before.
    pub after: u64,
}

/// What the job computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeviceKind {
    /// A GPU if one can be used, otherwise a simulated device
    Auto,
    /// The same as auto
    Cuda,
    /// A simulated device: the timing of a GPU, without computing
    Sim,
}

/// What a worker process must know beside the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLaunch {
    /// Its number, from 0.
    pub worker: u32,
    /// The trainer's process.
    pub parent: i32,
    /// The descriptor of the memory that batches lie in.
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

    /// The same as flags of a command line, for the processes of the job.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = Flags::default();
        flags.set("workers", self.workers);
        flags.set("batch-size", self.batch_size);
        flags.set("image-size", self.image_size);
        flags.set("prefetch-factor", self.prefetch_factor);
        flags.choose(self.pin_memory, "pin-memory", "no-pin-memory");
        flags.choose(self.in_order, "in-order", "any-order");
        match self.load {
            Load::Files { decodes } => {
                flags.set("decodes", decodes);
                flags.set("dataset", self.dataset.folder.display());
                flags.set("images", self.dataset.images);
                if self.direct {
                    flags.0.push("--direct".into());
                }
            }
            Load::Time(time) => flags.set("load-ms", milliseconds(time)),
        }
        flags.set("load-jitter", self.load_jitter);
        flags.set("slow-worker", self.slow_worker);
        match self.step {
            StepTime::Fixed(time) => flags.set("step-ms", milliseconds(time)),
            StepTime::OfLoading(share) => flags.set("step-share", share),
        }
        if let Some(copy) = self.copy {
            flags.set("copy-ms", milliseconds(copy));
        }
        if let Some(device) = self.device.to_possible_value() {
            flags.set("device", device.get_name());
        }
        if let Some(steps) = self.steps {
            flags.set("steps", steps);
        }
        if let Some(duration) = self.duration {
            flags.set("duration", format!("{}ms", duration.as_millis()));
        }
        if let Some(cache) = self.cache {
            flags.set("cache-batches", cache.batches);
            flags.set("after", cache.after);
        }
        flags.set("seed", self.seed);
        flags.0
    }
}

impl WorkerLaunch {
    /// The same as flags of a command line.
    pub fn flags(self) -> Vec<String> {
        let mut flags = Flags::default();
        flags.set("worker", self.worker);
        flags.set("parent", self.parent);
        flags.set("slots", self.slots);
        flags.0
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[derive(Debug, Default)]
struct Flags(Vec<String>);

impl Flags {
    fn set(&mut self, name: &str, value: impl Display) {
        self.0.push(format!("--{name}={value}"));
    }

    fn choose(&mut self, yes: bool, name: &str, other: &str) {
        self.0.push(format!("--{}", if yes { name } else { other }));
    }
}
