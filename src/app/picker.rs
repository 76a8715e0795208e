//! The marked row in the list of jobs: it stays with its job when others start or end.

use super::App;
use crate::sample::JobCandidate;
use crate::ui::{Attach, ListedJob, matching_jobs};
use crate::units::Pid;

impl App {
    pub(super) fn is_picking(&self) -> bool {
        matches!(self.attach, Attach::Picker(_))
    }

    /// Whether there is a job to show, even if it has ended.
    pub(super) fn has_job(&self) -> bool {
        matches!(self.attach, Attach::Attached | Attach::Ended)
    }

    /// Returns the list of these jobs with the known figures of each.
    pub(super) fn listed(&mut self, jobs: &[JobCandidate]) -> Attach {
        let listed = |pid: &Pid| jobs.iter().any(|job| job.pid == *pid);
        self.figures.retain(|pid, _| listed(pid));
        let job = |found: &JobCandidate| ListedJob {
            figures: self.figures.get(&found.pid).cloned(),
            found: found.clone(),
        };
        Attach::Picker(jobs.iter().map(job).collect())
    }

    /// Returns the listed jobs; empty while there is no list.
    pub(super) fn jobs(&self) -> Vec<&ListedJob> {
        match &self.attach {
            Attach::Picker(jobs) => matching_jobs(jobs, &self.state.filter),
            _ => Vec::new(),
        }
    }

    /// Returns the process of the marked job.
    pub(super) fn marked(&self) -> Option<Pid> {
        let jobs = self.jobs();
        Some(jobs.get(self.state.picked)?.found.pid)
    }

    /// Marks the same job in a list that may have changed. If that job is gone, marks the one in its place.
    pub(super) fn mark(&mut self, marked: Option<Pid>) {
        let jobs = self.jobs();
        let place = jobs.iter().position(|job| Some(job.found.pid) == marked);
        let last = jobs.len().saturating_sub(1);
        self.state.picked = place.unwrap_or_else(|| self.state.picked.min(last));
    }
}
