//! The arguments of `pipetop run`.

use std::path::PathBuf;

use clap::Args;

use crate::error::Hinted;
use crate::options::{WatchArgs, Words};

/// Exit codes of `run`.
const CODES: &str = "Exit codes: the command's own, or 128 plus the signal number if a signal ended it; 0 if pipetop \
stopped it or left it running; 3 if it succeeded and the verdict matches --fail-if; 126 if it is not executable; \
127 if it is not found.";

/// Start a training command and watch it, with exact steps and waits.
///
/// The command gets its arguments unchanged, environment variables given before it (`NAME=VALUE`, as with `env`), and
/// the signals that pipetop receives. Its output appears in a pane of the screen. If standard output is not a terminal,
/// the output passes through, to standard error with --json.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Running", after_help = CODES)]
pub(crate) struct RunArgs {
    /// Also append the command's output to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Pass standard input to the command
    #[arg(long)]
    pub stdin: bool,

    /// Stop the command after the --once report, or after the --for time. Without a screen, one that never trains
    /// is stopped after 1 to 5 minutes
    #[arg(long)]
    pub stop: bool,

    /// Load no hook into Python; estimate steps and waits from outside
    #[arg(long)]
    pub no_hook: bool,

    #[command(flatten, next_help_heading = "Watching")]
    pub watch: WatchArgs,

    #[command(flatten)]
    pub words: Words,
}

impl RunArgs {
    /// # Errors
    /// Returns an error if the arguments conflict.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        self.words.check("run")?;
        if self.stop && !self.watch.once && self.watch.span.is_none() {
            return Err(Hinted::new(
                "--stop needs --once or --for",
                "add --once, or --for with a duration, as in --for 2min",
            ));
        }
        Ok(())
    }
}
