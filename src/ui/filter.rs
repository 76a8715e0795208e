//! The text that the user typed to find workers or jobs, and what it matches.
//!
//! Does not depend on keys or the screen.

use super::listed_job::ListedJob;
use crate::model::rates::WorkerRates;

/// Longest filter text, in characters: more than anybody types on purpose.
const MAX_CHARACTERS: usize = 64;

/// Words that must all occur in a line. An empty filter matches every line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    pub text: String,
    /// Letter keys are added to the text.
    pub typing: bool,
}

impl Filter {
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn add(&mut self, letter: char) {
        if self.text.chars().count() < MAX_CHARACTERS {
            self.text.push(letter);
        }
    }

    /// Whether there is text to match.
    pub fn is_set(&self) -> bool {
        !self.text.trim().is_empty()
    }

    /// Whether the filter matches a worker. A number matches the worker's number or the beginning of its PID. Any other
    /// word matches part of its state, named as on screen in `doing`, or part of the name of a function.
    pub(super) fn matches_worker(&self, worker: &WorkerRates, doing: &str) -> bool {
        self.text.split_whitespace().all(|word| {
            if word.chars().all(|c| c.is_ascii_digit()) {
                return worker.id.to_string() == word || worker.pid().to_string().starts_with(word);
            }
            let word = word.to_lowercase();
            let mut names = worker.activity.iter().map(|activity| &activity.name);
            doing.contains(&word) || names.any(|name| name.to_lowercase().contains(&word))
        })
    }

    /// Whether the filter matches a line: each word must be the beginning of this PID, or part of the text.
    pub(super) fn matches_line(&self, text: &str, pid: &str) -> bool {
        let text = text.to_lowercase();
        self.text
            .split_whitespace()
            .all(|word| pid.starts_with(word) || text.contains(&word.to_lowercase()))
    }

    /// Whether the filter matches a job: each word must be the beginning of its PID, or part of its command line.
    fn matches_job(&self, job: &ListedJob) -> bool {
        self.matches_line(&job.found.command, &job.found.pid.to_string())
    }
}

/// Returns the jobs that match the filter, in their order.
pub fn matching_jobs<'a>(jobs: &'a [ListedJob], filter: &Filter) -> Vec<&'a ListedJob> {
    jobs.iter().filter(|job| filter.matches_job(job)).collect()
}
