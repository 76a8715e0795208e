//! The mark in the list of jobs to choose from: it stays with its job when others come and go.

use super::App;
use crate::sample::JobCandidate;
use crate::ui::{Attach, ListedJob, jobs_found};
use crate::units::Pid;

impl App {
    pub(super) fn is_picking(&self) -> bool {
        matches!(self.attach, Attach::Picker(_))
    }

    /// There is a job to look at, if only its end.
    pub(super) fn has_job(&self) -> bool {
        matches!(self.attach, Attach::Attached | Attach::Ended)
    }

    /// The list of these, with what is known of each.
    pub(super) fn listed(&mut self, jobs: &[JobCandidate]) -> Attach {
        let listed = |pid: &Pid| jobs.iter().any(|job| job.pid == *pid);
        self.figures.retain(|pid, _| listed(pid));
        let job = |found: &JobCandidate| ListedJob {
            figures: self.figures.get(&found.pid).cloned(),
            found: found.clone(),
        };
        Attach::Picker(jobs.iter().map(job).collect())
    }

    /// The jobs that are listed; none while there is no list.
    pub(super) fn jobs(&self) -> Vec<&ListedJob> {
        match &self.attach {
            Attach::Picker(jobs) => jobs_found(jobs, &self.state.filter),
            _ => Vec::new(),
        }
    }

    /// The process of the marked job.
    pub(super) fn marked(&self) -> Option<Pid> {
        let jobs = self.jobs();
        Some(jobs.get(self.state.picked)?.found.pid)
    }

    /// Marks the same job in a list that may have changed; where it is gone, what is at its place.
    pub(super) fn mark(&mut self, marked: Option<Pid>) {
        let jobs = self.jobs();
        let place = jobs.iter().position(|job| Some(job.found.pid) == marked);
        let last = jobs.len().saturating_sub(1);
        self.state.picked = place.unwrap_or_else(|| self.state.picked.min(last));
    }
}
