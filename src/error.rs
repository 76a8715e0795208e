//! Errors for the user: one line for what failed, one for what to do.
//!
//! Does not depend on what failed; `main` prints the error and chooses the exit code.

use std::fmt::Display;
use std::io::Write as _;

use crate::units::{printable, shortened};

/// Maximum length of a word in an error, in characters: longer than most paths, shorter than a screen.
const WORD: usize = 500;

/// An error with a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Hinted {
    /// One line, no full stop: `cannot read /proc/4242/io: permission denied`.
    pub message: String,
    /// One line: `run as the owner of the process, or with CAP_SYS_PTRACE`.
    pub hint: String,
    /// Choices to list, one per line; usually empty.
    pub choices: Vec<String>,
}

impl Hinted {
    /// Creates an error. Message and hint may quote user input: terminal control characters are replaced, long words
    /// cut.
    pub fn new(message: impl AsRef<str>, hint: impl AsRef<str>) -> Self {
        Self {
            message: quoted(message.as_ref()),
            hint: quoted(hint.as_ref()),
            choices: Vec::new(),
        }
    }

    /// Adds a list between message and hint.
    #[must_use]
    pub fn choices(self, choices: impl IntoIterator<Item = String>) -> Self {
        let choices = choices.into_iter().map(|choice| quoted(&choice));
        Self {
            choices: choices.collect(),
            ..self
        }
    }

    /// Returns the error for a report that could not be written. `None` if its reader has closed the pipe, as `| head`
    /// does.
    pub fn unwritten(error: &std::io::Error) -> Option<Self> {
        (error.kind() != std::io::ErrorKind::BrokenPipe).then(|| {
            Self::new(
                format!("cannot write to standard output: {error}"),
                "check where the output is redirected",
            )
        })
    }

    /// Returns the error for a thread that could not be started.
    pub fn no_thread(error: &std::io::Error) -> Self {
        Self::new(
            format!("cannot start a thread: {error}"),
            "raise the process limit (ulimit -u)",
        )
    }

    /// Returns the printed form, without a final newline.
    pub fn lines(&self) -> String {
        self.printed("error")
    }

    /// Returns the printed form of a note, for when nothing has failed.
    pub(crate) fn note(&self) -> String {
        self.printed("note")
    }

    fn printed(&self, what: &str) -> String {
        let choices = self.choices.iter().map(|choice| format!("  {choice}\n"));
        let choices: String = choices.collect();
        format!("{what}: {}\n{choices}hint: {}", self.message, self.hint)
    }
}

/// Writes lines to standard error, in one write because several processes of a job may share it. If it is closed, the
/// lines are lost.
pub(crate) fn write_error(lines: impl Display) {
    let _ = std::io::stderr().write_all(format!("{lines}\n").as_bytes());
}

/// Makes a text with user input printable and cuts its long words.
fn quoted(text: &str) -> String {
    let words = printable(text);
    let words = words.split(' ').map(|word| shortened(word, WORD, "..."));
    words.collect::<Vec<_>>().join(" ")
}

/// Turns a failure into an error for the user.
pub(crate) trait Explain<T> {
    /// Puts `what`, which could not be done, before the reason, and adds the hint.
    fn explain(self, what: impl Display, hint: impl AsRef<str>) -> Result<T, Hinted>;
}

impl<T, E: Display> Explain<T> for Result<T, E> {
    fn explain(self, what: impl Display, hint: impl AsRef<str>) -> Result<T, Hinted> {
        self.map_err(|error| Hinted::new(format!("{what}: {error:#}"), hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_two_lines() {
        let error = Hinted::new("no process 42", "pipetop without a target looks for one");
        assert_eq!(
            error.lines(),
            "error: no process 42\nhint: pipetop without a target looks for one"
        );
        assert_eq!(error.to_string(), "no process 42");
        let error =
            Hinted::new("two\nlines", "\u{1b}[2J").choices(["4\r".to_owned(), "2".to_owned()]);
        assert_eq!(
            error.lines(),
            "error: two\u{fffd}lines\n  4\u{fffd}\n  2\nhint: \u{fffd}[2J"
        );
    }

    #[test]
    fn a_long_word_of_the_user_is_cut_and_the_rest_of_the_line_stays() {
        let path = format!("/{}", "a".repeat(4999));
        let error = Hinted::new(format!("cannot read {path}: File name too long"), &path)
            .choices([format!("{path}:1:1: not a number")]);
        for line in error.lines().lines() {
            assert!(line.len() < 600 && line.contains("aaa..."), "{line}");
        }
        assert!(error.message.ends_with("aaa... File name too long"));
    }
}
