//! The marked row in the list of jobs: it stays with its job when others start or end.

use super::{App, JobListFigures};
use crate::engine::State;
use crate::sample::JobCandidate;
use crate::ui::{Attach, JobFigures, ListedJob, matching_jobs};
use crate::units::Pid;
use crate::verdict::{Kind, Verdict};

impl App {
    /// Takes newer figures of the jobs in the list. A job keeps its old ones until the new ones contain a verdict.
    pub(super) fn take_figures(&mut self, mut new: JobListFigures) {
        let judged = |figures: &JobFigures| figures.kind != Kind::WarmingUp;
        new.retain(|pid, new| judged(new) || !self.figures.get(pid).is_some_and(judged));
        self.figures.extend(new);
    }

    /// Returns the verdict that the list had on the job chosen from it, until there are enough samples for another.
    pub(super) fn listed_verdict(&self, state: &State) -> Option<&Verdict> {
        if state.has_job() && state.kind() != Some(Kind::WarmingUp) {
            return None;
        }
        let job = state.model.sample()?.job.as_ref()?;
        let chosen = self.state.chosen.filter(|pid| *pid == job.key.pid)?;
        self.figures.get(&chosen)?.verdict.as_ref()
    }

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
