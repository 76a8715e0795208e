//! Starts [`pipetop::main`].

use std::process::ExitCode;

fn main() -> ExitCode {
    pipetop::main()
}
