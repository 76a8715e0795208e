//! The arguments of `pipetop simulate`, and their checks.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::value;
use crate::config::ThemeName;
use crate::error::Hinted;
use crate::lab::experiments::simulate::{MAX_BATCHES, SimulationSettings};
use crate::options::value::within;

/// Runs to average if anything is random.
const RUNS: u32 = 10;
const MAX_RUNS: u32 = 1000;

/// Simulate loaders, queue and trainer with given load and step times.
///
/// Nothing is measured or loaded. Each loader makes one batch at a time and has at most
/// `--prefetch-factor` batches in progress or ready, as in PyTorch's `DataLoader`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
pub struct SimulateArgs {
    /// Number of loaders
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub workers: u32,

    /// Mean time to load a batch, in milliseconds
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = value::milliseconds)]
    #[arg(allow_negative_numbers = true)]
    pub load_ms: Duration,

    /// Time of a training step, in milliseconds
    #[arg(long, value_name = "MS", default_value = "100", value_parser = value::milliseconds)]
    #[arg(allow_negative_numbers = true)]
    pub step_ms: Duration,

    /// Variation of load times: standard deviation / mean, e.g. 0.05
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub load_jitter: f64,

    /// Most batches that each loader has in progress or ready
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub prefetch_factor: u32,

    /// Deliver batches in request order, as PyTorch does by default
    #[arg(long, conflicts_with = "any_order")]
    pub in_order: bool,

    /// Deliver whichever batch is ready first
    #[arg(long)]
    pub any_order: bool,

    /// Round all events to ticks of this many milliseconds [default: exact times]
    #[arg(long, value_name = "MS", value_parser = value::milliseconds, allow_negative_numbers = true)]
    pub clock_ms: Option<Duration>,

    /// Start the loaders at different times
    #[arg(long)]
    pub desync: bool,

    /// Time to simulate, e.g. `30s` or `2min`
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = span)]
    pub span: Duration,

    /// Random seed of the first run; each further run adds 1
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Number of runs to average [default: 10 if anything is random, otherwise 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    pub runs: Option<u32>,

    /// Print one JSON document
    #[arg(long, conflicts_with = "animate")]
    pub json: bool,

    /// Show one run on the screen, as `replay` shows a recording
    #[arg(long)]
    pub animate: bool,

    /// Colour theme
    #[arg(long, value_name = "NAME")]
    pub theme: Option<ThemeName>,

    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
}

impl SimulateArgs {
    /// # Errors
    /// Returns an error if the settings make no sense.
    pub fn settings(&self) -> Result<SimulationSettings, Hinted> {
        let settings = SimulationSettings {
            workers: self.workers,
            prefetch_factor: self.prefetch_factor,
            load: self.load_ms,
            load_jitter: self.load_jitter,
            step: self.step_ms,
            in_order: !self.any_order,
            clock: self.clock_ms,
            desync: self.desync,
            span: self.span,
        };
        settings.check()?;
        let all = settings.batches_at_most() * f64::from(self.runs(&settings));
        if all > MAX_BATCHES as f64 && !self.animate {
            return Err(Hinted::new(
                "too many batches to simulate",
                "use fewer --runs or a shorter --for: the limit is 100 million in all",
            ));
        }
        Ok(settings)
    }

    /// Returns the number of runs to average.
    pub fn runs(&self, settings: &SimulationSettings) -> u32 {
        let by_chance = if settings.has_chance() { RUNS } else { 1 };
        self.runs.unwrap_or(by_chance)
    }
}

fn span(text: &str) -> Result<Duration, Hinted> {
    const SPANS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(7 * 24);
    within(text, &SPANS)
}
