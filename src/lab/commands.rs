//! Runs the lab's commands.

mod demo;
mod experiments;
mod simulate;

use std::process::ExitCode;

use super::cli::Lab;
use super::experiments::command::TrialError;
use super::workload::{train, work};
use crate::error::{Hinted, write_error};
use crate::options::PathArgs;
use crate::setup::print_error;

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
    outcome.or_else(failed)
}

/// Prints the last lines of the command's output. Returns the exit code, or the error that is still to be printed.
fn failed(failure: TrialError) -> Result<ExitCode, Hinted> {
    match failure {
        TrialError::Launch(error) => {
            print_error(&Hinted::new(error.to_string(), error.hint()));
            Ok(ExitCode::from(error.code()))
        }
        TrialError::Refused { error, said } => {
            for line in said {
                write_error(format_args!("  {line}"));
            }
            Err(error)
        }
        TrialError::Interrupted(signal) => {
            let code = u8::try_from(128 + signal).unwrap_or(u8::MAX);
            Ok(ExitCode::from(code))
        }
    }
}
