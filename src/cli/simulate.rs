//! What can be asked of the simulation, and what is refused before it runs.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::Hinted;
use crate::experiment::simulate::{MOST_BATCHES, Order, Settings};

/// Runs whose mean is shown where chance has a part.
const RUNS: u32 = 10;
const MOST_RUNS: u32 = 1000;

/// Model loaders, queue and trainer: what would happen with these load and step times?
///
/// Nothing is measured and nothing is loaded. Each loader makes one batch at a time and has at most
/// `--prefetch-factor` of them under way or ready, as PyTorch's `DataLoader` does it.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
pub struct Simulate {
    /// Loaders
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub workers: u32,

    /// Mean time in which a loader makes a batch, in milliseconds
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = millis)]
    #[arg(allow_negative_numbers = true)]
    pub load_ms: Duration,

    /// Time of a training step, in milliseconds
    #[arg(long, value_name = "MS", default_value = "100", value_parser = millis)]
    #[arg(allow_negative_numbers = true)]
    pub step_ms: Duration,

    /// How much load times vary: standard deviation over mean, as in 0.05
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub load_jitter: f64,

    /// Batches that each loader has under way or ready at most
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub prefetch_factor: u32,

    /// Take batches in the order in which they were asked for, as PyTorch does by default
    #[arg(long, conflicts_with = "any_order")]
    pub in_order: bool,

    /// Take whatever batch is ready first
    #[arg(long)]
    pub any_order: bool,

    /// Let everything happen at ticks of so many milliseconds; exact without
    #[arg(long, value_name = "MS", value_parser = millis, allow_negative_numbers = true)]
    pub clock_ms: Option<Duration>,

    /// Start the loaders out of step
    #[arg(long)]
    pub desync: bool,

    /// How much time to simulate, as in `30s` or `2min`
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = span)]
    pub span: Duration,

    /// The seed of the first run; the others count on from it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Runs to take the mean of [default: 10 where chance has a part, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    pub runs: Option<u32>,

    /// Print one JSON document
    #[arg(long, conflicts_with = "animate")]
    pub json: bool,

    /// Draw one run as it moves, on a terminal
    #[arg(long)]
    pub animate: bool,

    /// Colours, by the name of a theme
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,

    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
}

impl Simulate {
    /// # Errors
    /// Where a run would tell nothing.
    pub fn settings(&self) -> Result<Settings, Hinted> {
        let settings = Settings {
            workers: self.workers,
            prefetch_factor: self.prefetch_factor,
            load: self.load_ms,
            load_jitter: self.load_jitter,
            step: self.step_ms,
            order: if self.any_order {
                Order::AnyOrder
            } else {
                Order::InOrder
            },
            clock: self.clock_ms,
            desync: self.desync,
            span: self.span,
        };
        settings.check()?;
        let all = settings.batches_at_most() * f64::from(self.runs(&settings));
        if all > MOST_BATCHES as f64 && !self.animate {
            return Err(Hinted::new(
                "too many batches to simulate",
                "fewer --runs or a shorter --for gives at most a hundred million in all",
            ));
        }
        Ok(settings)
    }

    /// How many runs to take the mean of.
    pub fn runs(&self, settings: &Settings) -> u32 {
        let by_chance = if settings.has_chance() { RUNS } else { 1 };
        self.runs.unwrap_or(by_chance)
    }
}

fn millis(text: &str) -> Result<Duration, Hinted> {
    let hint = "a time in milliseconds, as in 100 or 0.5";
    let ms: f64 = text
        .parse()
        .map_err(|_| Hinted::new("not a number", hint))?;
    Duration::try_from_secs_f64(ms / 1000.0).map_err(|_| Hinted::new("no such time", hint))
}

fn span(text: &str) -> Result<Duration, Hinted> {
    const SPANS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(7 * 24);
    super::value::within(text, &SPANS)
}
