//! Parses, runs, and turns the outcome into an exit code.

use std::io::Write;
use std::process::ExitCode;

use pipetop::cli::{self, Stop};
use pipetop::start;

fn main() -> ExitCode {
    let args = match cli::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(Stop::Show(text)) => {
            // Nobody reads it: nothing to do about that.
            let _ = std::io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(Stop::Usage(error)) => return complain(&error, 2),
    };
    match start::run(args) {
        Ok(code) => code,
        Err(error) => complain(&error, 1),
    }
}

fn complain(error: &pipetop::error::Hinted, code: u8) -> ExitCode {
    // In one piece: several processes of a job may fail at once, and share what they write to.
    let lines = format!("{}\n", error.lines());
    let _ = std::io::stderr().write_all(lines.as_bytes());
    ExitCode::from(code)
}
