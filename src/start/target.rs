//! The job named on the command line, and the error if there is none.

use crate::error::Hinted;
use crate::job::{Candidate, NoTarget};
use crate::output;
use crate::units::counted;

/// Returns the error for the user, with the jobs to choose from if there are several.
pub(super) fn no_target_error(error: &NoTarget) -> Hinted {
    let jobs = match error {
        NoTarget::Several(jobs) | NoTarget::SeveralBelow(.., jobs) => &jobs[..],
        _ => &[],
    };
    Hinted::new(error.to_string(), error.hint()).choices(jobs.iter().map(listed))
}

fn listed(job: &Candidate) -> String {
    let pid = job
        .ranks
        .first()
        .map_or_else(String::new, |rank| rank.pid.to_string());
    let ranks = counted(job.ranks.len(), "rank");
    let workers = counted(job.workers, "worker");
    let command = output::command(&job.command);
    format!("{pid:>8}  {ranks:>8}  {workers:>11}  {command}")
}
