//! The arguments of `pipetop sweep` and `pipetop headspace`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{WorkersArg, WorkloadArgs};
use crate::error::Hinted;
use crate::lab::experiments::headspace::Plan;
use crate::lab::experiments::sweep::command::Bound;
use crate::lab::workload::settings::JobSettings;
use crate::options::{Words, value};

/// Exit codes of an experiment on a command.
const CODES: &str = "Exit codes: 0 success; 1 no result (prints the reason and the last lines of the command's \
output); 2 usage error; 126 the command is not executable; 127 it is not found; 128 plus the signal number if a \
signal ended pipetop, which stops the command first.";

/// The user's own training command as the job of an experiment.
#[derive(Debug, Default, Clone, PartialEq, Args)]
#[command(next_help_heading = "Your command")]
pub struct CommandArgs {
    /// Training command to run instead of the built-in job; restarted for each run
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,

    /// Append the command's output to this file
    #[arg(long, value_name = "FILE", requires = "command")]
    pub log: Option<PathBuf>,

    /// Give up after this time without a step
    #[arg(long, value_name = "DURATION", default_value = "10min", value_parser = value::span)]
    pub patience: Duration,
}

impl CommandArgs {
    /// Returns the command; `None` for the built-in job.
    pub fn words(&self) -> Option<Words> {
        (!self.command.is_empty()).then(|| Words::from(self.command.clone()))
    }

    /// # Errors
    /// Returns an error if there is no command, or if an option works only with the built-in job.
    fn check(&self, experiment: &str, builtin: bool) -> Result<(), Hinted> {
        let Some(words) = self.words() else {
            return Ok(());
        };
        words.check(experiment)?;
        if builtin {
            return Err(Hinted::new(
                "options of the built-in job cannot be used with a command",
                format!("see `pipetop {experiment} --help`; options of your command go after `--`"),
            ));
        }
        Ok(())
    }
}

/// Measure how many workers are enough: run a job with 1, 2, 4 and more of them.
///
/// Runs the built-in job, or your own unmodified command: `pipetop sweep -- python train.py`. `{workers}` in the command
/// is replaced by each number; without it, pipetop overrides `num_workers` of every `DataLoader`. The command is
/// restarted for each number and stopped after the measurement, so make sure that its checkpoints overwrite nothing.
/// With a command, --pin-memory also compares pageable with pinned memory.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Experiment", after_help = CODES)]
pub struct SweepArgs {
    /// Numbers of workers to try; the first is the baseline. 0 works only with a command
    #[arg(
        long = "workers",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1,2,4,8,16",
        value_parser = value::whole(0..=256_u32)
    )]
    pub counts: Vec<u32>,

    /// Prefetch factors to try with the best number of workers (with a command only)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        requires = "command",
        value_parser = value::whole(1..=256_u32)
    )]
    pub prefetch_factors: Vec<u32>,

    #[command(flatten)]
    pub bound: Bound,

    /// Print one JSON document
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print CSV
    #[arg(long)]
    pub csv: bool,

    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,

    #[command(flatten)]
    pub own: CommandArgs,

    #[command(flatten)]
    pub workload: WorkloadArgs,
}

impl SweepArgs {
    /// Whether to compare pageable with pinned memory (with a command only).
    pub fn compares_memory(&self) -> bool {
        self.workload.pins()
    }

    /// # Errors
    /// Returns an error if the arguments conflict.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        self.workload.settings()?;
        let pinned = WorkloadArgs::default().pinned(self.workload.pins());
        self.own.check("sweep", self.workload != pinned)?;
        if self.own.words().is_none() && self.counts.contains(&0) {
            return Err(Hinted::new(
                "--workers 0: the built-in job needs at least one worker",
                "use 0 with a command: pipetop sweep --workers 0,1,2 -- python train.py",
            ));
        }
        Ok(())
    }
}

/// Measure how much faster training would be if loading took no time.
///
/// Compares normal runs with runs on cached batches, using the built-in job or your own unmodified command:
/// `pipetop headspace -- python train.py`. The command is restarted for each run and stopped after the measurement. The
/// model learns nothing from cached batches, so make sure that its checkpoints overwrite nothing.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Experiment", after_help = CODES)]
pub struct HeadspaceArgs {
    #[command(flatten)]
    pub plan: Plan,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub own: CommandArgs,

    #[command(flatten)]
    pub workload: WorkloadArgs,

    #[command(flatten)]
    workers: WorkersArg,
}

impl HeadspaceArgs {
    /// # Errors
    /// Returns an error if the arguments conflict.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        self.settings()?;
        let plain =
            self.workload == WorkloadArgs::default() && self.workers == WorkersArg::default();
        self.own.check("headspace", !plain)
    }

    /// Returns the settings of the job without cached batches.
    ///
    /// # Errors
    /// Returns an error if the arguments conflict.
    pub fn settings(&self) -> Result<JobSettings, Hinted> {
        Ok(self.workers.of(self.workload.settings()?))
    }
}
