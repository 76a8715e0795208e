//! What can be asked of `pipetop sweep` and `pipetop headspace`.

use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use super::{Workers, Workload, value};
use crate::error::Hinted;
use crate::experiment::headspace::Plan;
use crate::workload::settings::{Cache, Settings};

/// How many workers are enough? Run the built-in job with 1, 2, 4 and more of them.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "The experiment")]
pub struct Sweep {
    /// Numbers of workers to try; the first is what the others are compared with
    #[arg(
        long = "workers",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1,2,4,8,16",
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=256)
    )]
    pub counts: Vec<u32>,

    /// How long each of them runs after its first batch
    #[arg(long = "for", value_name = "DURATION", default_value = "4s", value_parser = value::span)]
    pub span: Duration,

    /// Print one JSON document
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print a table for a spreadsheet
    #[arg(long)]
    pub csv: bool,

    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,

    #[command(flatten)]
    pub workload: Workload,
}

/// What would free loading bring? Run the built-in job as it is and with cached batches, and compare.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "The experiment")]
pub struct Headspace {
    /// Batches that are handed over in turn in the cached run
    #[arg(long, value_name = "N", default_value = "10", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    cache_batches: u32,

    /// Steps before anything is measured, in both runs
    #[arg(long, value_name = "N", default_value = "100", value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000))]
    after: u64,

    /// Steps that are measured in each run
    #[arg(long, value_name = "N", default_value = "100", value_parser = RangedU64ValueParser::<u64>::new().range(10..=10_000_000))]
    steps: u64,

    /// Pairs of runs, one as it is and one with cached batches
    #[arg(long, value_name = "N", default_value = "3", value_parser = RangedU64ValueParser::<u32>::new().range(1..=100))]
    rounds: u32,

    /// Steps of your whole training, to say what it would save
    #[arg(long, value_name = "N", default_value = "100000", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    run_steps: u64,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub workload: Workload,

    #[command(flatten)]
    workers: Workers,
}

impl Headspace {
    /// The job to run, as it is.
    ///
    /// # Errors
    /// Where what was typed cannot go together.
    pub fn settings(&self) -> Result<Settings, Hinted> {
        Ok(self.workers.of(self.workload.settings()?))
    }

    pub fn plan(&self) -> Plan {
        Plan {
            cache: Cache {
                batches: self.cache_batches,
                after: self.after,
            },
            steps: self.steps,
            rounds: self.rounds,
            run_steps: self.run_steps,
        }
    }
}
