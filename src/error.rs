//! What a user reads when something cannot be done: one line that says what, one that says what helps.
//!
//! Knows nothing of what failed; `main` prints it and picks the exit code.

use crate::units::printable;

/// An error with the one thing to try.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Hinted {
    /// One line, no full stop: `cannot read /proc/4242/io: permission denied`.
    pub message: String,
    /// One line: `run as the owner of the process, or with CAP_SYS_PTRACE`.
    pub hint: String,
    /// What there is to choose from, a line each; mostly nothing.
    pub choices: Vec<String>,
}

impl Hinted {
    /// Both may quote what somebody typed or named: what a terminal would obey is taken out.
    pub fn new(message: impl AsRef<str>, hint: impl AsRef<str>) -> Self {
        Self {
            message: printable(message.as_ref()),
            hint: printable(hint.as_ref()),
            choices: Vec::new(),
        }
    }

    /// The same with a list between message and hint.
    #[must_use]
    pub fn choices(self, choices: impl IntoIterator<Item = String>) -> Self {
        let choices = choices.into_iter().map(|choice| printable(&choice));
        Self {
            choices: choices.collect(),
            ..self
        }
    }

    /// As it is printed, without a line end after it.
    pub fn lines(&self) -> String {
        let choices = self.choices.iter().map(|choice| format!("  {choice}\n"));
        let choices: String = choices.collect();
        format!("error: {}\n{choices}hint: {}", self.message, self.hint)
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
}
