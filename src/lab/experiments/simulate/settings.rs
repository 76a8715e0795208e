//! The settings of a simulation.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{ArgAction, Args, Command, FromArgMatches as _};

use crate::error::Hinted;
use crate::lab::value;
use crate::options::value::{number, whole, within};

/// Maximum number of loaders, and of batches that one of them may have under way or ready.
pub const MAX_WORKERS: u32 = 1024;

pub(super) const MAX_PREFETCHED: u32 = 100;

/// Maximum number of batches of a run, whatever the settings.
pub const MAX_BATCHES: u64 = 100_000_000;

/// Maximum variation of load times: with more, a simulation says nothing about loaders.
const MAX_JITTER: f64 = 10.0;

/// The settings of a simulation.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct SimulationSettings {
    /// Number of loaders
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = whole(1..=MAX_WORKERS))]
    pub workers: u32,

    /// Mean time to load a batch, in milliseconds
    #[arg(long = "load-ms", value_name = "MS", default_value = "2000", value_parser = value::milliseconds)]
    pub load: Duration,

    /// Time of a training step, in milliseconds
    #[arg(long = "step-ms", value_name = "MS", default_value = "100", value_parser = value::milliseconds)]
    pub step: Duration,

    /// Variation of load times: standard deviation / mean, e.g. 0.05
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = jitter)]
    pub load_jitter: f64,

    /// Most batches that each loader has in progress or ready
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole(1..=MAX_PREFETCHED))]
    pub prefetch_factor: u32,

    /// Deliver batches in request order, as PyTorch does by default
    #[arg(long = "in-order", conflicts_with = "in_order")]
    pub default_order: bool,

    /// Deliver whichever batch is ready first
    #[arg(long = "any-order", action = ArgAction::SetFalse)]
    pub in_order: bool,

    /// Round all events to ticks of this many milliseconds [default: exact times]
    #[arg(long = "clock-ms", value_name = "MS", value_parser = value::milliseconds)]
    pub clock: Option<Duration>,

    /// Start the loaders at different times
    #[arg(long)]
    pub desync: bool,

    /// Time to simulate, e.g. `30s` or `2min`
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = span)]
    pub span: Duration,
}

fn span(text: &str) -> Result<Duration, Hinted> {
    const SPANS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(7 * 24);
    within(text, &SPANS)
}

fn jitter(text: &str) -> Result<f64, Hinted> {
    let hint = "use standard deviation / mean, from 0 to 10, as in --load-jitter 0.05";
    number(text, 0.0..=MAX_JITTER, hint)
}

/// The defaults of the command line: loaders that are far too slow for their trainer.
impl Default for SimulationSettings {
    fn default() -> Self {
        let command = Self::augment_args(Command::new("simulate"));
        Self::from_arg_matches(&command.get_matches_from(["simulate"]))
            .expect("each argument has a default")
    }
}

impl SimulationSettings {
    /// Returns how many batches fit into the queue.
    pub fn capacity(&self) -> u64 {
        u64::from(self.workers) * u64::from(self.prefetch_factor)
    }

    /// Whether another seed would give another run.
    pub fn has_chance(&self) -> bool {
        self.load_jitter > 0.0 || self.desync
    }

    /// Returns the rate in batches per second that loaders and trainer cannot exceed on average; infinite if neither
    /// takes any time.
    pub fn bound(&self) -> f64 {
        let loaders = f64::from(self.workers) / self.load.as_secs_f64();
        loaders.min(1.0 / self.step.as_secs_f64())
    }

    /// Returns about how many batches a run can make at most.
    pub fn batches_at_most(&self) -> f64 {
        self.bound() * self.span.as_secs_f64()
    }

    /// Checks whether a run with these settings has a meaning.
    ///
    /// # Errors
    /// Returns an error with what is wrong, and what would be right.
    pub fn check(&self) -> Result<(), Hinted> {
        let refuse = |message: &str, hint: &str| Err(Hinted::new(message, hint));
        if self.clock.is_some_and(|clock| clock.is_zero()) {
            return refuse(
                "--clock-ms must not be 0",
                "omit --clock-ms for exact times",
            );
        }
        if self.clock.is_some_and(|clock| clock >= self.span) {
            return refuse(
                "--clock-ms must be shorter than --for",
                "use many ticks, as in --clock-ms 100 --for 30s",
            );
        }
        if self.batches_at_most() > MAX_BATCHES as f64 {
            return refuse(
                "too many batches to simulate",
                "use longer step or load times, or a shorter --for: the limit is 100 million",
            );
        }
        Ok(())
    }
}
