//! Derives marks from the differences between two samples of a job.

use super::checkpoints::Checkpoints;
use super::epochs::Epochs;
use super::workers::Workers;
use super::{Mark, MarkKind, Marks};
use crate::model::interval::SampleInterval;
use crate::sample::{JobSample, Sample};
use crate::units::ProcessKey;

/// Follows one job after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch {
    job: Option<ProcessKey>,
    ended: bool,
    epochs: Epochs,
    workers: Workers,
    checkpoints: Checkpoints,
}

impl Watch {
    /// Adds the marks of the newest two samples.
    pub(crate) fn apply(&mut self, older: &Sample, newer: &Sample, marks: &mut Marks) {
        let Some(job) = &newer.job else { return };
        let at = newer.at.since_start;
        if self.job != Some(job.key) {
            *self = Self {
                job: Some(job.key),
                ..Self::default()
            };
            mark_start(job, &SampleInterval::new(older, newer), marks);
        }
        if job.ended {
            if !std::mem::replace(&mut self.ended, true) {
                let gone = self.workers.ended_before_the_job();
                let words = format!("the job has ended{gone}");
                marks.add(Mark::new(at, MarkKind::JobEnd, words));
            }
            return;
        }
        let before = older.job.as_ref().filter(|older| older.key == job.key);
        // All ranks have the same epochs, so those of the first are enough. Each rank has its own workers.
        if let Some(rank) = job.ranks.first() {
            let before = before.and_then(|job| job.rank(rank.key));
            self.epochs.apply(at, before, rank, marks);
        }
        for rank in &job.ranks {
            let before = before.and_then(|job| job.rank(rank.key));
            self.workers.apply(at, rank, marks);
            if let Some(before) = before {
                let seconds = newer.at.seconds_since(&older.at);
                self.checkpoints.apply(at, seconds, before, rank, marks);
            }
        }
    }
}

/// Marks the start of a job, unless it started before pipetop: then its start is outside of the axis.
fn mark_start(job: &JobSample, interval: &SampleInterval, marks: &mut Marks) {
    let began = interval.start_of(job.key).filter(|start| *start >= 0.0);
    let began = began.and_then(|start| std::time::Duration::try_from_secs_f64(start).ok());
    if let Some(at) = began {
        let words = format!("process {} started", job.key.pid);
        marks.add(Mark::new(at, MarkKind::JobBegin, words));
    }
}
