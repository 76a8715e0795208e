//! What can be set of the built-in job on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, ValueEnum};

use super::value;
use crate::error::Hinted;
use crate::workload::presets::{self, DEFAULT, PRESETS, Preset};
use crate::workload::settings::{Cache, DeviceKind, Load, Settings, StepTime, WorkerPlace};

/// Settings of the built-in job; each that is left out is the preset's.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
#[derive(Debug, Default, Clone, PartialEq, Args)]
#[command(next_help_heading = "The built-in job")]
pub struct Workload {
    /// The bottleneck to show; `pipetop demo --list` describes them
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PRESETS.map(|preset| preset.name)))]
    pub preset: Option<String>,

    /// Images in a batch
    #[arg(long, value_name = "N", value_parser = up_to(65_536))]
    batch_size: Option<u32>,

    /// Width and height of an image in pixels
    #[arg(long, value_name = "PIXELS", value_parser = up_to(256))]
    image_size: Option<u32>,

    /// Batches that each worker makes ahead
    #[arg(long, value_name = "N", value_parser = up_to(64))]
    prefetch_factor: Option<u32>,

    /// Copy batches from pinned memory, beside the steps
    #[arg(long, overrides_with = "no_pin_memory")]
    pin_memory: bool,

    /// Copy batches from pageable memory, between the steps
    #[arg(long)]
    no_pin_memory: bool,

    /// Hand batches over in the order in which they were asked for
    #[arg(long, overrides_with = "any_order")]
    in_order: bool,

    /// Hand over whatever batch is ready first
    #[arg(long)]
    any_order: bool,

    /// Take so long for a batch, in place of reading and decoding files
    #[arg(long, value_name = "MS", value_parser = value::milliseconds)]
    load_ms: Option<Duration>,

    /// Standard deviation of the load time over its mean
    #[arg(long, value_name = "SHARE", value_parser = value::factor)]
    load_jitter: Option<f64>,

    /// Decode each image so often, to make loading heavier; 0 only reads it
    #[arg(long, value_name = "N", conflicts_with = "load_ms", value_parser = RangedU64ValueParser::<u32>::new().range(0..=1000))]
    decodes: Option<u32>,

    /// Make the last worker so many times slower than the others
    #[arg(long, value_name = "FACTOR", value_parser = value::factor)]
    slow_worker: Option<f64>,

    /// Compute so long for a step
    #[arg(long, value_name = "MS", value_parser = value::milliseconds)]
    step_ms: Option<Duration>,

    /// Compute for this share of the time in which this machine can load a batch, in place of --step-ms
    #[arg(long, value_name = "SHARE", conflicts_with = "step_ms", value_parser = value::factor)]
    step_share: Option<f64>,

    /// Let the copy of a batch to the device take so long
    #[arg(long, value_name = "MS", value_parser = value::milliseconds)]
    copy_ms: Option<Duration>,

    /// What to compute on
    #[arg(long, value_name = "DEVICE", value_enum)]
    device: Option<Device>,

    /// Bytes of image files to make and read, as in `64MiB`; made once, kept in the cache directory
    #[arg(long, value_name = "BYTES", value_parser = value::bytes)]
    pub dataset_size: Option<u64>,

    /// Read image files past the page cache
    #[arg(long)]
    direct: bool,

    /// Seed of all that is random
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// How many workers it has and how long it runs: what an experiment decides by itself.
#[derive(Debug, Default, Clone, PartialEq, Args)]
#[command(next_help_heading = "The built-in job")]
pub struct Extent {
    #[command(flatten)]
    workers: Workers,

    /// End after so many steps
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    steps: Option<u64>,

    /// End after this time
    #[arg(long, value_name = "DURATION", value_parser = value::span)]
    duration: Option<Duration>,
}

/// How many workers it has.
#[derive(Debug, Default, Clone, PartialEq, Args)]
#[command(next_help_heading = "The built-in job")]
pub struct Workers {
    /// Loader worker processes
    #[arg(long, value_name = "N", value_parser = up_to(256))]
    workers: Option<u32>,
}

/// What only the processes of the job tell each other.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Inner {
    #[command(flatten)]
    workload: Workload,

    #[command(flatten)]
    extent: Extent,

    #[arg(long)]
    pub parent: i32,

    #[arg(long)]
    dataset: Option<PathBuf>,

    #[arg(long)]
    cache_batches: Option<u32>,

    #[arg(long)]
    after: Option<u64>,
}

/// The same for a worker.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct InnerWorker {
    #[command(flatten)]
    inner: Inner,

    #[arg(long)]
    worker: u32,

    #[arg(long)]
    slots: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Device {
    /// A GPU where one can be used, else the simulated device
    Auto,
    /// The same, for a machine that is known to have one
    Cuda,
    /// Keeps the times of a GPU and computes nothing
    Sim,
}

impl Workload {
    /// The preset that was named, or the default one.
    pub fn preset(&self) -> &'static Preset {
        let name = self.preset.as_deref().unwrap_or(DEFAULT);
        presets::preset(name).unwrap_or(&PRESETS[0])
    }

    /// Whether --pin-memory was typed, which also means something where a command is given.
    pub(super) fn pins(&self) -> bool {
        self.pin_memory
    }

    pub(super) fn pinned(self, pin_memory: bool) -> Self {
        Self { pin_memory, ..self }
    }

    /// The preset's settings, with what was typed in their place.
    ///
    /// # Errors
    /// Where what was typed cannot go together.
    pub fn settings(&self) -> Result<Settings, Hinted> {
        let mut job = self.preset().settings();
        let set = |to: &mut u32, typed: Option<u32>| *to = typed.unwrap_or(*to);
        set(&mut job.batch_size, self.batch_size);
        set(&mut job.image_size, self.image_size);
        set(&mut job.prefetch_factor, self.prefetch_factor);
        job.pin_memory = (job.pin_memory || self.pin_memory) && !self.no_pin_memory;
        job.in_order = (job.in_order || self.in_order) && !self.any_order;
        job.load = match (self.load_ms, self.decodes, job.load) {
            (Some(time), ..) => Load::Time(time),
            (None, Some(decodes), _) => Load::Files { decodes },
            (None, None, load) => load,
        };
        job.step = match (self.step_ms, self.step_share) {
            (Some(time), _) => StepTime::Fixed(time),
            (None, Some(share)) => StepTime::OfLoading(share),
            (None, None) => job.step,
        };
        job.load_jitter = self.load_jitter.unwrap_or(job.load_jitter);
        job.slow_worker = self.slow_worker.unwrap_or(job.slow_worker);
        job.copy = self.copy_ms.or(job.copy);
        job.direct |= self.direct;
        job.seed = self.seed.unwrap_or(job.seed);
        job.device = match self.device {
            Some(Device::Auto) => DeviceKind::Auto,
            Some(Device::Cuda) => DeviceKind::Cuda,
            Some(Device::Sim) => DeviceKind::Sim,
            None => job.device,
        };
        if self.load_jitter.is_some_and(|jitter| jitter > 0.0)
            && matches!(job.load, Load::Files { .. })
        {
            return Err(Hinted::new(
                "--load-jitter varies a set load time, and files take the time that they take",
                "give the load time, as in --load-ms 100 --load-jitter 0.5",
            ));
        }
        Ok(job)
    }
}

impl Extent {
    /// The settings with what was typed in their place.
    pub fn of(&self, job: Settings) -> Settings {
        Settings {
            steps: self.steps.or(job.steps),
            duration: self.duration.or(job.duration),
            ..self.workers.of(job)
        }
    }
}

impl Workers {
    /// The settings with what was typed in their place.
    pub fn of(&self, job: Settings) -> Settings {
        Settings {
            workers: self.workers.unwrap_or(job.workers),
            ..job
        }
    }
}

impl Inner {
    /// # Errors
    /// Never for what [`Settings::flags`] wrote.
    pub fn settings(&self) -> Result<Settings, Hinted> {
        let cache = self.cache_batches.zip(self.after);
        Ok(Settings {
            dataset: self.dataset.clone().unwrap_or_default(),
            cache: cache.map(|(batches, after)| Cache { batches, after }),
            // A preset's own are not meant here: what is left out is not there.
            copy: self.workload.copy_ms,
            direct: self.workload.direct,
            ..self.extent.of(self.workload.settings()?)
        })
    }
}

impl InnerWorker {
    /// # Errors
    /// Never for what [`Settings::flags`] wrote.
    pub fn settings(&self) -> Result<Settings, Hinted> {
        self.inner.settings()
    }

    pub fn place(&self) -> WorkerPlace {
        WorkerPlace {
            worker: self.worker,
            parent: self.inner.parent,
            slots: self.slots,
        }
    }
}

fn up_to(most: u64) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=most)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Demo;
    use super::*;

    #[derive(Debug, Parser)]
    struct Line<T: Args> {
        #[command(flatten)]
        typed: T,
    }

    fn typed<T: Args>(flags: &[String]) -> T {
        let line = std::iter::once("x").chain(flags.iter().map(String::as_str));
        Line::<T>::try_parse_from(line).unwrap().typed
    }

    #[test]
    fn the_processes_of_a_job_are_told_exactly_its_settings() {
        for preset in PRESETS {
            let mut settings = preset.settings();
            settings.dataset = "/a b/data".into();
            settings.seed = 9;
            settings.steps = Some(70);
            settings.duration = Some(Duration::from_millis(2500));
            settings.cache = Some(Cache {
                batches: 10,
                after: 100,
            });
            let place = WorkerPlace {
                worker: 3,
                parent: 42,
                slots: 5,
            };
            let flags = [place.flags(), settings.flags()].concat();
            let worker: InnerWorker = typed(&flags);
            if matches!(settings.load, Load::Time(_)) {
                // Nothing is read.
                settings.dataset = PathBuf::new();
            }
            assert_eq!(worker.settings().unwrap(), settings, "{}", preset.name);
            assert_eq!(worker.place(), place);
        }
    }

    #[test]
    fn what_is_typed_stands_over_the_preset() {
        let flags = "--preset blog-starved --workers 3 --in-order --step-ms 0.5 --no-pin-memory";
        let flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
        let demo: Demo = typed(&flags);
        let settings = demo.settings().unwrap();
        assert_eq!(settings.workers, 3);
        assert!(settings.in_order && !settings.pin_memory);
        assert_eq!(settings.step, StepTime::Fixed(Duration::from_micros(500)));
        assert_eq!(settings.load, Load::Time(Duration::from_secs(2)));
    }
}
