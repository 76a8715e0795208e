//! What the user has typed to find workers or jobs, and which of them it finds.
//!
//! Knows no key and no screen.

use super::listed_job::ListedJob;
use crate::model::rates::WorkerRates;

/// More than anybody types on purpose.
const LONGEST: usize = 64;

/// Words that all must be found in a line. Nothing typed finds every line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    text: String,
    /// Keys are letters now.
    typing: bool,
}

impl Filter {
    pub fn open(&mut self) {
        self.typing = true;
    }

    /// Keys are keys again, and the words stay.
    pub fn keep(&mut self) {
        self.typing = false;
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn add(&mut self, letter: char) {
        if self.text.chars().count() < LONGEST {
            self.text.push(letter);
        }
    }

    pub fn erase(&mut self) {
        self.text.pop();
    }

    pub fn is_typing(&self) -> bool {
        self.typing
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// There is something to look for.
    pub fn is_set(&self) -> bool {
        !self.text.trim().is_empty()
    }

    /// A number is a worker's or the begin of a PID; anything else is part of what it does, named as on screen in
    /// `doing`, or of a function's name.
    pub(super) fn finds(&self, worker: &WorkerRates, doing: &str) -> bool {
        self.text.split_whitespace().all(|word| {
            if word.chars().all(|c| c.is_ascii_digit()) {
                return worker.id.to_string() == word || worker.pid().to_string().starts_with(word);
            }
            let word = word.to_lowercase();
            let mut names = worker.activity.iter().map(|activity| &activity.name);
            doing.contains(&word) || names.any(|name| name.to_lowercase().contains(&word))
        })
    }

    /// A word is the begin of this PID, or part of the text.
    pub(super) fn finds_line(&self, text: &str, pid: &str) -> bool {
        let text = text.to_lowercase();
        self.text
            .split_whitespace()
            .all(|word| pid.starts_with(word) || text.contains(&word.to_lowercase()))
    }

    /// A number is the begin of a PID or part of the command line; anything else is part of that.
    fn finds_job(&self, job: &ListedJob) -> bool {
        self.finds_line(&job.found.command, &job.found.pid.to_string())
    }
}

/// The jobs that a filter leaves to choose from, in their order.
pub fn jobs_found<'a>(jobs: &'a [ListedJob], filter: &Filter) -> Vec<&'a ListedJob> {
    jobs.iter().filter(|job| filter.finds_job(job)).collect()
}
