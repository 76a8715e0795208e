//! Why a job of the lab gave nothing.

use std::io::Write;
use std::process::ExitCode;

use crate::error::Hinted;
use crate::lab::experiments::command::TrialError;
use crate::setup::complain;

/// Says why there is no figure, after the last words of the command; gives the exit code.
pub(super) fn failed(failure: &TrialError) -> ExitCode {
    match failure {
        TrialError::Launch(error) => {
            complain(&Hinted::new(error.to_string(), error.hint()));
            ExitCode::from(error.code())
        }
        TrialError::Refused { error, said } => {
            for line in said {
                // Nobody reads it: nothing to do about that.
                let _ = writeln!(std::io::stderr(), "  {line}");
            }
            complain(error);
            ExitCode::FAILURE
        }
        TrialError::Interrupted(signal) => {
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
        }
    }
}
