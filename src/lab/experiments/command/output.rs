//! The command's output: appended to the user's file or to an unnamed one. Its last lines are kept in case the command
//! fails.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::Hinted;
use crate::last_lines::Lines;
use crate::launch::Log;
use crate::setup::named_log;

/// Enough lines to explain why a Python program failed.
const LINES: usize = 15;

/// The output of one run.
#[derive(Debug)]
pub(super) struct CommandOutput {
    log: Log,
    lines: Lines,
}

impl CommandOutput {
    pub(super) fn new(named: Option<&Path>) -> Result<Self, Hinted> {
        let log = match named {
            Some(path) => named_log(path),
            None => Log::unnamed(&[std::env::temp_dir()]).map_err(|error| no_file(&error)),
        };
        Ok(Self {
            log: log?,
            lines: Lines::default(),
        })
    }

    /// Returns the file that the command writes to.
    pub(super) fn writer(&self) -> Result<File, Hinted> {
        self.log.writer().map_err(|error| no_file(&error))
    }

    /// Reads new output.
    pub(super) fn read(&mut self) {
        let lines = &mut self.lines;
        let read = self.log.read_new(|bytes| {
            lines.feed(bytes);
            Ok(())
        });
        // If reading fails, the lines are missing only from an error message.
        let _ = read;
    }

    /// Returns the last non-empty lines, safe to print on a terminal.
    pub(super) fn last_lines(&mut self) -> Vec<String> {
        self.read();
        let lines = self.lines.last(usize::MAX, 0);
        let mut lines: Vec<_> = lines
            .filter(|line| !line.trim().is_empty())
            .map(str::to_owned)
            .collect();
        lines.drain(..lines.len().saturating_sub(LINES));
        lines
    }
}

fn no_file(error: &io::Error) -> Hinted {
    Hinted::new(
        format!("cannot store the command's output: {error}"),
        "raise the open file limit (ulimit -n), or choose a file with --log FILE",
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_last_lines_are_kept_as_they_were_seen() {
        let mut output = CommandOutput::new(None).unwrap();
        let mut writer = output.writer().unwrap();
        for number in 0..5000 {
            writeln!(writer, "line {number}").unwrap();
        }
        output.read();
        write!(writer, " 10%\r 50%\r100%\r\n\n\x1b[31mError: it broke").unwrap();
        let lines = output.last_lines();
        assert_eq!(lines.len(), LINES);
        let end = &lines[LINES - 3..];
        assert_eq!(end, ["line 4999", "100%", "Error: it broke"]);
    }

    #[test]
    fn a_file_of_the_users_is_written_to_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for run in ["first", "second"] {
            let mut output = CommandOutput::new(Some(&path)).unwrap();
            writeln!(output.writer().unwrap(), "{run}").unwrap();
            assert_eq!(output.last_lines(), [run]);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first\nsecond\n");
        let error = CommandOutput::new(Some(folder.path())).unwrap_err();
        assert!(error.message.contains("cannot write to"), "{error}");
    }
}
