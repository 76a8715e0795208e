//! The arguments of the built-in job.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::error::Hinted;
use crate::lab::value;
use crate::lab::workload::presets::{self, DEFAULT, PRESETS, Preset};
use crate::lab::workload::settings::{DeviceKind, JobSettings, Load, StepTime};
use crate::options::value::{span, whole};

/// Settings of the built-in job; the preset gives those that are omitted.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
#[derive(Debug, Default, Clone, PartialEq, Args)]
#[command(next_help_heading = "Built-in job")]
pub struct WorkloadArgs {
    /// Bottleneck to show; `pipetop demo --list` describes them
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PRESETS.map(|preset| preset.name)))]
    pub preset: Option<String>,

    /// Images per batch
    #[arg(long, value_name = "N", value_parser = whole(1..=65_536_u32))]
    batch_size: Option<u32>,

    /// Width and height of an image in pixels
    #[arg(long, value_name = "PIXELS", value_parser = whole(1..=256_u32))]
    image_size: Option<u32>,

    /// Batches that each worker loads ahead
    #[arg(long, value_name = "N", value_parser = whole(1..=64_u32))]
    prefetch_factor: Option<u32>,

    /// Copy batches from pinned memory, in parallel with the steps
    #[arg(long, overrides_with = "no_pin_memory")]
    pin_memory: bool,

    /// Copy batches from pageable memory, between the steps
    #[arg(long)]
    no_pin_memory: bool,

    /// Deliver batches in request order
    #[arg(long, overrides_with = "any_order")]
    in_order: bool,

    /// Deliver whichever batch is ready first
    #[arg(long)]
    any_order: bool,

    /// Time to load a batch, in milliseconds, instead of reading and decoding files
    #[arg(long, value_name = "MS", value_parser = value::milliseconds)]
    load_ms: Option<Duration>,

    /// Variation of the load time: standard deviation / mean
    #[arg(long, value_name = "SHARE", value_parser = value::factor)]
    load_jitter: Option<f64>,

    /// Decode each image this many times; 0 only reads it
    #[arg(long, value_name = "N", conflicts_with = "load_ms", value_parser = whole(0..=1000_u32))]
    decodes: Option<u32>,

    /// Make the last worker this many times slower than the others
    #[arg(long, value_name = "FACTOR", value_parser = value::slowness)]
    slow_worker: Option<f64>,

    /// Compute time per step, in milliseconds
    #[arg(long, value_name = "MS", value_parser = value::milliseconds)]
    step_ms: Option<Duration>,

    /// Compute time per step as a share of the time this machine needs to load a batch
    #[arg(long, value_name = "SHARE", conflicts_with = "step_ms", value_parser = value::factor)]
    step_share: Option<f64>,

    /// Time to copy a batch to the device, in milliseconds
    #[arg(long, value_name = "MS", value_parser = value::milliseconds)]
    copy_ms: Option<Duration>,

    /// Device to compute on
    #[arg(long, value_name = "DEVICE", value_enum)]
    device: Option<DeviceKind>,

    /// Size of the image files to generate, e.g. `64MiB`; kept in the cache directory
    #[arg(long, value_name = "BYTES", value_parser = value::dataset_size)]
    pub dataset_size: Option<u64>,

    /// Read image files with direct I/O, bypassing the page cache
    #[arg(long)]
    direct: bool,

    /// Random seed
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    seed: Option<u64>,
}

/// Number of workers and length of the run, which experiments set themselves.
#[derive(Debug, Default, Clone, PartialEq, Args)]
#[command(next_help_heading = "Built-in job")]
pub struct ExtentArgs {
    #[command(flatten)]
    workers: WorkersArg,

    /// Stop after this many steps
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    steps: Option<u64>,

    /// Stop after this time
    #[arg(long, value_name = "DURATION", value_parser = span)]
    duration: Option<Duration>,
}

/// Number of workers.
#[derive(Debug, Default, Clone, PartialEq, Args)]
#[command(next_help_heading = "Built-in job")]
pub struct WorkersArg {
    /// Loader worker processes
    #[arg(long, value_name = "N", value_parser = whole(1..=256_u32))]
    workers: Option<u32>,
}

impl WorkloadArgs {
    /// Returns the given preset, or the default one.
    pub fn preset(&self) -> &'static Preset {
        let name = self.preset.as_deref().unwrap_or(DEFAULT);
        presets::preset(name).unwrap_or(&PRESETS[0])
    }

    /// Whether --pin-memory was given, which also works with a command.
    pub(super) fn pins(&self) -> bool {
        self.pin_memory
    }

    pub(super) fn pinned(self, pin_memory: bool) -> Self {
        Self { pin_memory, ..self }
    }

    /// Returns the preset's settings, overridden by the arguments.
    ///
    /// # Errors
    /// Returns an error if the arguments conflict.
    pub fn settings(&self) -> Result<JobSettings, Hinted> {
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
        job.device = self.device.unwrap_or(job.device);
        if self.load_jitter.is_some_and(|jitter| jitter > 0.0)
            && matches!(job.load, Load::Files { .. })
        {
            return Err(Hinted::new(
                "--load-jitter needs a fixed load time",
                "add --load-ms, as in --load-ms 100 --load-jitter 0.5",
            ));
        }
        Ok(job)
    }
}

impl ExtentArgs {
    /// Returns the settings, overridden by the arguments.
    pub fn of(&self, job: JobSettings) -> JobSettings {
        JobSettings {
            steps: self.steps.or(job.steps),
            duration: self.duration.or(job.duration),
            ..self.workers.of(job)
        }
    }
}

impl WorkersArg {
    /// Returns the settings, overridden by the arguments.
    pub fn of(&self, job: JobSettings) -> JobSettings {
        JobSettings {
            workers: self.workers.unwrap_or(job.workers),
            ..job
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::DemoArgs;
    use super::*;
    use crate::lab::workload::dataset::Dataset;
    use crate::lab::workload::settings::{WorkerLaunch, word};
    use crate::probe::Cached;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        demo: DemoArgs,
    }

    #[test]
    fn processes_of_a_job_receive_exactly_its_settings() {
        for preset in PRESETS {
            let mut settings = preset.settings();
            settings.dataset = Dataset {
                folder: "/a b/data".into(),
                images: 1600,
            };
            settings.seed = 9;
            settings.steps = Some(70);
            settings.duration = Some(Duration::from_millis(2500));
            settings.cache = Some(Cached {
                batches: 10,
                from: 100,
            });
            let launch = WorkerLaunch {
                settings,
                worker: 3,
                parent: 42,
                slots: 5,
            };
            let read: WorkerLaunch = value::json(&word(&launch)).unwrap();
            assert_eq!(read, launch, "{}", preset.name);
        }
    }

    #[test]
    fn options_override_the_preset() {
        let flags = "--preset blog-starved --workers 3 --in-order --step-ms 0.5 --no-pin-memory";
        let line = std::iter::once("x").chain(flags.split(' '));
        let typed = Line::try_parse_from(line).unwrap();
        let settings = typed.demo.settings().unwrap();
        assert_eq!(settings.workers, 3);
        assert!(settings.in_order && !settings.pin_memory);
        assert_eq!(settings.step, StepTime::Fixed(Duration::from_micros(500)));
        assert_eq!(settings.load, Load::Time(Duration::from_secs(2)));
    }
}
