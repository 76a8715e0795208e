//! A job in the list of those to choose from, with what is known of it. Only data.

use std::time::Duration;

use crate::sample::JobCandidate;
use crate::units::Share;
use crate::verdict::{Cause, Kind};

/// A job to choose.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedJob {
    pub found: JobCandidate,
    /// `None` = it was not watched yet.
    pub figures: Option<JobFigures>,
}

/// What is known of a job in one line. Unknown is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFigures {
    pub user: Option<String>,
    /// As the scheduler names it; `None` = nobody does.
    pub run: Option<String>,
    /// Of all ranks.
    pub workers: usize,
    pub kind: Kind,
    pub cause: Option<Cause>,
    /// Share of wall time lost to data.
    pub lost: Option<Share>,
    /// Of all ranks.
    pub batches_per_s: Option<f64>,
    pub gpus: Vec<u32>,
    pub up: Option<Duration>,
}

impl From<JobCandidate> for ListedJob {
    fn from(found: JobCandidate) -> Self {
        Self {
            found,
            figures: None,
        }
    }
}
