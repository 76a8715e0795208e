//! Runs the lab's commands.

mod demo;
mod experiments;
mod failed;
mod simulate;

use std::process::ExitCode;

use super::cli::Lab;
use super::workload::{train, work};
use crate::error::Hinted;
use crate::options::PathArgs;

/// Runs the command.
///
/// # Errors
/// Returns an error with one line and a hint, for exit code 1.
pub(crate) fn run(args: &Lab, places: &PathArgs) -> Result<ExitCode, Hinted> {
    let outcome = match args {
        Lab::Demo(args) if args.calibrate => experiments::calibrate(args, places),
        Lab::Demo(args) => demo::run(args, places),
        Lab::Sweep(args) => experiments::sweep(args, places),
        Lab::Headspace(args) => experiments::headspace(args, places),
        Lab::Simulate(args) => return simulate::run(args, places),
        Lab::BuiltinTrainer { settings } => return train(settings).map(|()| ExitCode::SUCCESS),
        Lab::BuiltinWorker { launch } => return work(launch).map(|()| ExitCode::SUCCESS),
    };
    outcome.or_else(failed::failed)
}
