//! The job that the command line names, and what to say where there is none.

use crate::error::Hinted;
use crate::job::{Candidate, NoTarget, Target};
use crate::options;
use crate::output;

/// The target that was named; none is any.
pub(super) fn meant(named: Option<options::Target>) -> Target {
    match named {
        None => Target::Any,
        Some(options::Target::Pid(pid)) => Target::Pid(pid),
        Some(options::Target::Word(word)) => Target::Word(word),
    }
}

/// Why there is no such job, with the jobs to choose from.
pub(super) fn refused(error: &NoTarget) -> Hinted {
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

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
