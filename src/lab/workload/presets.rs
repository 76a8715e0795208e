//! Settings that each show one bottleneck.

use std::time::Duration;

use super::dataset::Dataset;
use super::settings::{DeviceKind, JobSettings, Load, StepTime};
use super::step_time::cpus_allowed;

/// A named setting of the built-in job.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    /// Description of the bottleneck.
    pub shows: &'static str,
    /// Where to see it best on the screen.
    pub look_at: &'static str,
    /// The right verdict, by its name in the report.
    pub expected: &'static str,
    change: fn(&mut JobSettings),
}

impl Preset {
    pub fn settings(&self) -> JobSettings {
        let mut settings = plain();
        (self.change)(&mut settings);
        settings
    }
}

/// The default of `pipetop demo`.
pub const DEFAULT: &str = "decode";

/// All presets, the default first.
pub const PRESETS: [Preset; 12] = [
    Preset {
        name: "decode",
        shows: "workers decode JPEG files too slowly for the device",
        look_at: "the workers' full rows and the red gaps of the trainer",
        expected: "data-bound",
        change: |job| {
            job.workers = cpus_allowed().div_ceil(2).min(4);
            job.batch_size = 64;
            job.step = StepTime::OfLoading(0.4);
        },
    },
    Preset {
        name: "disk",
        shows: "workers wait for files read with direct I/O",
        look_at: "the disk's reads and the striped rows",
        expected: "data-bound",
        change: |job| {
            job.workers = 2;
            job.batch_size = 256;
            job.image_size = 32;
            job.load = Load::Files { decodes: 0 };
            job.direct = true;
            job.step = StepTime::OfLoading(0.3);
        },
    },
    Preset {
        name: "balanced",
        shows: "loading is slightly slower than computing: few, short waits",
        look_at: "the narrow red gaps",
        expected: "balanced",
        change: |job| {
            timed(job, 4, 173, 0.0, 40);
        },
    },
    Preset {
        name: "compute",
        shows: "computing is slower than loading: the queue is full",
        look_at: "the full queue and the idle workers",
        expected: "compute-bound",
        change: |job| timed(job, 4, 60, 0.1, 50),
    },
    Preset {
        name: "transfer",
        shows: "the device waits for copies from pageable memory, not for the loader",
        look_at: "the device's copies",
        expected: "host-bound",
        change: |job| {
            timed(job, 4, 40, 0.1, 20);
            job.pin_memory = false;
            job.copy = Some(Duration::from_millis(40));
        },
    },
    Preset {
        name: "jitter",
        shows: "loading is fast enough on average, but some batches are late",
        look_at: "the gaps now and then",
        expected: "data-bound",
        change: |job| timed(job, 4, 40, 1.0, 12),
    },
    Preset {
        name: "slow-worker",
        shows: "one worker is six times slower, and batches are delivered in order",
        look_at: "the one full row",
        expected: "data-bound",
        change: |job| {
            timed(job, 4, 60, 0.05, 40);
            job.slow_worker = 6.0;
        },
    },
    Preset {
        name: "oversubscribed",
        shows: "four times as many decoding workers as CPUs",
        look_at: "the workers' delay: runnable, but not running",
        expected: "data-bound",
        change: |job| {
            job.workers = (4 * cpus_allowed()).min(64);
            job.batch_size = 96;
            job.image_size = 32;
            job.step = StepTime::OfLoading(0.4);
        },
    },
    Preset {
        name: "blog-starved",
        shows: "7 workers, 2 s per batch, 100 ms per step: the trainer stalls every 7 batches",
        look_at: "the gap after every 7 steps",
        expected: "data-bound",
        change: |job| blog(job, 2000),
    },
    Preset {
        name: "blog-matched",
        shows: "7 workers, 700 ms per batch, 100 ms per step: loading just keeps up with computing",
        look_at: "the queue, seldom empty",
        expected: "compute-bound",
        change: |job| blog(job, 700),
    },
    Preset {
        name: "blog-free",
        shows: "7 workers, 350 ms per batch, 100 ms per step: faster loading would not help",
        look_at: "the full queue",
        expected: "compute-bound",
        change: |job| blog(job, 350),
    },
    Preset {
        name: "headspace",
        shows: "30 ms of every 230 ms are waits: instant loading would save 13 %",
        look_at: "the share that is lost",
        expected: "data-bound",
        change: |job| timed(job, 4, 920, 0.0, 200),
    },
];

/// Returns the preset of this name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

fn plain() -> JobSettings {
    JobSettings {
        workers: 2,
        batch_size: 32,
        image_size: 128,
        prefetch_factor: 2,
        pin_memory: true,
        in_order: true,
        load: Load::Files { decodes: 1 },
        load_jitter: 0.0,
        slow_worker: 1.0,
        step: StepTime::Fixed(Duration::from_millis(40)),
        copy: None,
        device: DeviceKind::Auto,
        dataset: Dataset::default(),
        direct: false,
        steps: None,
        duration: None,
        cache: None,
        seed: 0,
    }
}

/// Sets fixed times in milliseconds.
fn timed(job: &mut JobSettings, workers: u32, load: u64, jitter: f64, step: u64) {
    job.workers = workers;
    job.batch_size = 16;
    job.image_size = 64;
    job.load = Load::Time(Duration::from_millis(load));
    job.load_jitter = jitter;
    job.step = StepTime::Fixed(Duration::from_millis(step));
}

/// Sets the pipeline of "Visualizing data loaders to diagnose deep learning pipelines".
fn blog(job: &mut JobSettings, load: u64) {
    timed(job, 7, load, 0.05, 100);
    job.in_order = false;
}
