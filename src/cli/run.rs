//! What can be asked of `pipetop run`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::Args;

use super::Watch;
use crate::error::Hinted;

/// Exit codes of `run` alone.
const CODES: &str = "Exit codes: the command's own, 128 and the signal's number where a signal ended it, 0 where \
pipetop ended it or left it running; 127 no such command, 126 it cannot be run, 3 it ended well and the verdict is \
one of --fail-if.";

/// Launch your own training command and watch it: steps and waits are exact then.
///
/// The command runs in place of pipetop: it gets the words as they are, with `NAME=VALUE` before them as `env` takes
/// them, and signals that pipetop gets. What it prints is shown in a pane of the screen; where standard output is no
/// terminal it passes through, to standard error with --json.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Running", after_help = CODES)]
pub struct Run {
    /// Write what the command prints to the end of this file, too
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Let the command read standard input
    #[arg(long)]
    pub stdin: bool,

    /// End the command after the report of --once, or after the time of --for
    #[arg(long)]
    pub stop: bool,

    /// Put nothing into the Pythons below the command: steps and waits are estimated from outside
    #[arg(long)]
    pub no_hook: bool,

    #[command(flatten, next_help_heading = "Watching")]
    pub watch: Watch,

    #[command(flatten)]
    pub words: Words,
}

/// The words of a command line that is to be run.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Words {
    /// The command with its arguments, as in `python train.py --lr 0.1`
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

impl Words {
    pub(super) fn new(words: Vec<OsString>) -> Self {
        Self { words }
    }

    /// The variables that stand before the command, and the command.
    pub fn parts(&self) -> (Vec<(OsString, OsString)>, Vec<OsString>) {
        let mut environment = vec![];
        let mut words = self.words.iter();
        for word in words.by_ref() {
            let bytes = word.as_bytes();
            let Some(at) = bytes
                .iter()
                .position(|byte| *byte == b'=')
                .filter(|at| *at > 0)
            else {
                let command = std::iter::once(word).chain(words).cloned().collect();
                return (environment, command);
            };
            let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            environment.push((part(&bytes[..at]), part(&bytes[at + 1..])));
        }
        (environment, vec![])
    }

    /// # Errors
    /// Where there is nothing to run.
    pub(super) fn check(&self, verb: &str) -> Result<(), Hinted> {
        let (_, command) = self.parts();
        match command.first() {
            Some(program) if !program.is_empty() => Ok(()),
            _ => Err(Hinted::new(
                "there is no command to run",
                format!("put it behind the options, as in `pipetop {verb} -- python train.py`"),
            )),
        }
    }
}

impl Run {
    /// # Errors
    /// Where what was typed cannot go together.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        self.words.check("run")?;
        if self.stop && !self.watch.once && self.watch.span.is_none() {
            return Err(Hinted::new(
                "--stop needs to know when",
                "add --once, or --for with the time to watch",
            ));
        }
        Ok(())
    }
}
