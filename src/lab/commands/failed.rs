//! Prints why a job of the lab has no result.

use std::process::ExitCode;

use crate::error::{Hinted, write_error};
use crate::lab::experiments::command::TrialError;
use crate::setup::print_error;

/// Prints the last lines of the command's output. Returns the exit code, or the error that is still to be printed.
pub(super) fn failed(failure: TrialError) -> Result<ExitCode, Hinted> {
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
