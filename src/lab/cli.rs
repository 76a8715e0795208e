//! The lab's part of the command line.
//!
//! Depends on the arguments only.

mod demo;
mod experiments;
mod simulate;
mod workload;

use clap::Subcommand;

use super::value;
use super::workload::settings::{JobSettings, WorkerLaunch};
use crate::error::Hinted;

pub use demo::DemoArgs;
pub use experiments::{CommandArgs, HeadspaceArgs, SweepArgs};
pub use simulate::SimulateArgs;
pub use workload::{ExtentArgs, WorkersArg, WorkloadArgs};

/// The lab's commands.
#[derive(Debug, Subcommand)]
pub enum Lab {
    Demo(Box<DemoArgs>),
    Sweep(Box<SweepArgs>),
    Headspace(Box<HeadspaceArgs>),
    Simulate(Box<SimulateArgs>),
    /// The trainer of the built-in job
    #[command(hide = true)]
    BuiltinTrainer {
        #[arg(value_parser = value::json::<JobSettings>)]
        settings: JobSettings,
    },
    /// A loader worker of the built-in job
    #[command(hide = true)]
    BuiltinWorker {
        #[arg(value_parser = value::json::<WorkerLaunch>)]
        launch: WorkerLaunch,
    },
}

impl Lab {
    /// Whether it is a process of the built-in job.
    pub fn is_hidden(&self) -> bool {
        matches!(
            self,
            Self::BuiltinTrainer { .. } | Self::BuiltinWorker { .. }
        )
    }

    /// # Errors
    /// Returns an error if the arguments conflict.
    pub(crate) fn check(&self) -> Result<(), Hinted> {
        match self {
            Self::Demo(args) => args.settings().map(drop),
            Self::Sweep(args) => args.check(),
            Self::Headspace(args) => args.check(),
            Self::Simulate(args) => args.settings().map(drop),
            Self::BuiltinTrainer { .. } | Self::BuiltinWorker { .. } => Ok(()),
        }
    }
}
