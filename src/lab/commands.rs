//! The lab's commands: from what was typed to what runs.

mod demo;
mod experiments;
mod failed;
mod simulate;

use std::process::ExitCode;

use super::cli::Lab;
use crate::error::Hinted;
use crate::options::Places;

/// Does what was asked for.
///
/// # Errors
/// One line and a hint, for exit code 1.
pub(crate) fn run(asked: &Lab, places: &Places) -> Result<ExitCode, Hinted> {
    match asked {
        Lab::Demo(asked) if asked.calibrate => experiments::calibrate(asked, places),
        Lab::Demo(asked) => demo::run(asked, places),
        Lab::Sweep(asked) => experiments::sweep(asked, places),
        Lab::Headspace(asked) => experiments::headspace(asked, places),
        Lab::Simulate(asked) => simulate::run(asked, places),
        Lab::BuiltinTrainer(asked) => demo::trainer(asked),
        Lab::BuiltinWorker(asked) => demo::worker(asked),
    }
}
