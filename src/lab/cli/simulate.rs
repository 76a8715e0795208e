//! The arguments of `pipetop simulate`, and their checks.

use crate::error::Hinted;
use crate::lab::experiments::simulate::{MAX_BATCHES, SimulationSettings};
use crate::options::LookArgs;
use crate::options::value::whole;

/// Runs to average if anything is random.
const RUNS: u32 = 10;
const MAX_RUNS: u32 = 1000;

/// Simulate loaders, queue and trainer with given load and step times.
///
/// Nothing is measured or loaded. Each loader makes one batch at a time and has at most
/// `--prefetch-factor` batches in progress or ready, as in PyTorch's `DataLoader`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub struct SimulateArgs {
    #[command(flatten)]
    pub simulation: SimulationSettings,

    /// Random seed of the first run; each further run adds 1
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole(0..=u64::MAX))]
    pub seed: u64,

    /// Number of runs to average [default: 10 if anything is random, otherwise 1]
    #[arg(long, value_name = "N", conflicts_with = "animate", value_parser = whole(1..=MAX_RUNS))]
    pub runs: Option<u32>,

    /// Print one JSON document
    #[arg(long, conflicts_with = "animate")]
    pub json: bool,

    /// Show one run on the screen, as `replay` shows a recording
    #[arg(long)]
    pub animate: bool,

    #[command(flatten)]
    pub look: LookArgs,
}

impl SimulateArgs {
    /// # Errors
    /// Returns an error if the settings make no sense.
    pub fn settings(&self) -> Result<&SimulationSettings, Hinted> {
        let settings = &self.simulation;
        settings.check()?;
        if self.look.theme.is_some() && !self.animate {
            return Err(Hinted::new(
                "--theme needs --animate",
                "the numbers have no colours: omit --theme, or add --animate",
            ));
        }
        let more = u64::from(self.runs()) - 1;
        if self.seed.checked_add(more).is_none() && !self.animate {
            return Err(Hinted::new(
                "--seed is too large for the number of runs",
                "each further run adds 1 to the seed: use a smaller --seed, or --runs 1",
            ));
        }
        let all = settings.batches_at_most() * f64::from(self.runs());
        if all > MAX_BATCHES as f64 && !self.animate {
            return Err(Hinted::new(
                "too many batches to simulate",
                "use fewer --runs or a shorter --for: the limit is 100 million in all",
            ));
        }
        Ok(settings)
    }

    /// Returns the number of runs to average.
    pub fn runs(&self) -> u32 {
        let by_chance = if self.simulation.has_chance() {
            RUNS
        } else {
            1
        };
        self.runs.unwrap_or(by_chance)
    }
}
