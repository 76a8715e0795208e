//! Prints why a job of the lab has no result.

use std::io::Write;
use std::process::ExitCode;

use crate::error::Hinted;
use crate::lab::experiments::command::TrialError;
use crate::setup::print_error;

/// Prints why there is no result, after the last lines of the command's output; returns the exit code.
pub(super) fn failed(failure: &TrialError) -> ExitCode {
    match failure {
        TrialError::Launch(error) => {
            print_error(&Hinted::new(error.to_string(), error.hint()));
            ExitCode::from(error.code())
        }
        TrialError::Refused { error, said } => {
            for line in said {
                // If the output is closed, there is nothing to do.
                let _ = writeln!(std::io::stderr(), "  {line}");
            }
            print_error(error);
            ExitCode::FAILURE
        }
        TrialError::Interrupted(signal) => {
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
        }
    }
}
