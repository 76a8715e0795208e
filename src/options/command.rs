//! A user's command, with the environment variables before it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::Args;

use crate::error::Hinted;

/// The command line to run.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Words {
    /// The command and its arguments, e.g. `python train.py --lr 0.1`
    #[arg(
        value_name = "COMMAND",
        help_heading = None,
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

impl From<Vec<OsString>> for Words {
    fn from(words: Vec<OsString>) -> Self {
        Self { words }
    }
}

impl Words {
    /// Returns the environment variables before the command, and the command.
    pub fn parts(&self) -> (Vec<(OsString, OsString)>, Vec<OsString>) {
        let mut environment = vec![];
        let mut words = self.words.iter();
        for word in words.by_ref() {
            let bytes = word.as_bytes();
            // The parser drops a `--` before all words; this one is between the variables and the command.
            if bytes == b"--" && !environment.is_empty() {
                return (environment, words.cloned().collect());
            }
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
    /// Returns an error if there is no command.
    pub(crate) fn check(&self, verb: &str) -> Result<(), Hinted> {
        let (_, command) = self.parts();
        match command.first() {
            Some(program) if !program.is_empty() => Ok(()),
            _ => Err(Hinted::new(
                "no command given",
                format!("put your command after `--`, as in `pipetop {verb} -- python train.py`"),
            )),
        }
    }
}
