//! What can be asked of `pipetop sweep` and `pipetop headspace`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use super::{Words, Workers, Workload, value};
use crate::error::Hinted;
use crate::experiment::headspace::Plan;
use crate::workload::settings::{Cache, Settings};

/// Exit codes of an experiment on a command.
const CODES: &str = "Exit codes: 0 done, 1 no figure, with the reason and the last lines that the command has \
printed, 2 wrong usage; 127 no such command, 126 it cannot be run; 128 and the signal's number where a signal ended \
pipetop, which ends the command first.";

/// Your own training as the job of an experiment.
#[derive(Debug, Default, Clone, PartialEq, Args)]
#[command(next_help_heading = "Your own training")]
pub struct Own {
    /// The command that trains, in place of the built-in job; it is started anew for each run and ended after it
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,

    /// Write what the command prints to the end of this file
    #[arg(long, value_name = "FILE", requires = "command")]
    pub log: Option<PathBuf>,

    /// Give up where no step comes for so long
    #[arg(long, value_name = "DURATION", default_value = "10min", value_parser = value::span)]
    pub patience: Duration,
}

impl Own {
    /// The command. `None` where the built-in job is meant.
    pub fn words(&self) -> Option<Words> {
        (!self.command.is_empty()).then(|| Words::new(self.command.clone()))
    }

    /// # Errors
    /// Where what was typed is for the built-in job alone, or there is nothing to run.
    fn check(&self, experiment: &str, builtin: bool) -> Result<(), Hinted> {
        let Some(words) = self.words() else {
            return Ok(());
        };
        words.check(experiment)?;
        if builtin {
            return Err(Hinted::new(
                "these options are for the built-in job, and a command is given",
                format!(
                    "`pipetop {experiment} --help` lists those for a command; its own stand behind `--`"
                ),
            ));
        }
        Ok(())
    }
}

/// How many workers are enough? Run a training with 1, 2, 4 and more of them.
///
/// The training is the built-in job, or your own command, unedited: `pipetop sweep -- python train.py`. A `{workers}`
/// anywhere in the command is replaced by each number; without it every `DataLoader` gets the number from outside. The
/// command is started anew for each number and ended after the measurement: let it write its checkpoints where that does
/// no harm. With a command --pin-memory compares pageable with pinned memory.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "The experiment", after_help = CODES)]
pub struct Sweep {
    /// Numbers of workers to try; the first is what the others are compared with. 0 for a command alone
    #[arg(
        long = "workers",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "1,2,4,8,16",
        value_parser = RangedU64ValueParser::<u32>::new().range(0..=256)
    )]
    pub counts: Vec<u32>,

    /// Prefetch factors to try with as many workers as are enough, for a command
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        requires = "command",
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=256)
    )]
    pub prefetch_factors: Vec<u32>,

    /// End each run of a command after so many steps behind its start, if that is sooner than --for
    #[arg(long, value_name = "N", requires = "command", value_parser = RangedU64ValueParser::<u64>::new().range(2..=10_000_000))]
    pub steps: Option<u64>,

    /// How long each of them runs after its first batch (up to four times as long where steps are few); a command, after its
    /// queue has filled
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
    pub own: Own,

    #[command(flatten)]
    pub workload: Workload,
}

impl Sweep {
    /// With a command: compare pageable with pinned memory.
    pub fn compares_memory(&self) -> bool {
        self.workload.pins()
    }

    /// # Errors
    /// Where what was typed cannot go together.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        self.workload.settings()?;
        let pinned = Workload::default().pinned(self.workload.pins());
        self.own.check("sweep", self.workload != pinned)?;
        if self.own.words().is_none() && self.counts.contains(&0) {
            return Err(Hinted::new(
                "--workers 0: the built-in job has one worker at least",
                "0 is for a command of your own: pipetop sweep --workers 0,1,2 -- python train.py",
            ));
        }
        Ok(())
    }
}

/// What would free loading bring? Run a training as it is and with cached batches, and compare.
///
/// The training is the built-in job, or your own command, unedited: `pipetop headspace -- python train.py`. The command
/// is started anew for each run and ended after the measurement; on cached batches the model learns nothing. Let it
/// write its checkpoints where that does no harm.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "The experiment", after_help = CODES)]
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
    pub own: Own,

    #[command(flatten)]
    pub workload: Workload,

    #[command(flatten)]
    workers: Workers,
}

impl Headspace {
    /// # Errors
    /// Where what was typed cannot go together.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        self.settings()?;
        let plain = self.workload == Workload::default() && self.workers == Workers::default();
        self.own.check("headspace", !plain)
    }

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
