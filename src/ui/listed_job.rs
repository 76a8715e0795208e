//! A row of the list of jobs, with the known figures. Data only.

use std::time::Duration;

use crate::sample::JobCandidate;
use crate::units::Share;
use crate::verdict::{Cause, Kind, Verdict};

/// A job to choose from.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedJob {
    pub found: JobCandidate,
    /// `None` = it was not watched yet.
    pub figures: Option<JobFigures>,
}

/// The figures of a job in one line. `None` = unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFigures {
    pub user: Option<String>,
    /// The scheduler's name for it; `None` = there is none.
    pub run: Option<String>,
    /// Sum over all ranks.
    pub workers: usize,
    pub kind: Kind,
    pub cause: Option<Cause>,
    /// Share of wall time lost to data.
    pub lost: Option<Share>,
    /// Sum over all ranks.
    pub batches_per_s: Option<f64>,
    pub gpus: Vec<u32>,
    pub up: Option<Duration>,
    /// The verdict, for the screen of the job once it is chosen. `None` = warming up.
    pub verdict: Option<Verdict>,
}

impl From<JobCandidate> for ListedJob {
    fn from(found: JobCandidate) -> Self {
        Self {
            found,
            figures: None,
        }
    }
}
