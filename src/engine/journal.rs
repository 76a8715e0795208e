//! Log messages while a job is watched: which job, what could not be read, and the verdict.
//!
//! Logs one line per change; a steady job logs nothing above `debug`. Does not depend on where the log goes.

use std::collections::BTreeSet;

use crate::sample::{Gap, Sample};
use crate::units::ProcessKey;
use crate::verdict::{Cause, Kind, Verdict};

#[derive(Debug, Clone, Default)]
pub(super) struct Journal {
    /// The job that was watched last, and whether it had ended.
    job: Option<(ProcessKey, bool)>,
    gaps: BTreeSet<Gap>,
    verdict: Option<(Kind, Option<Cause>)>,
}

impl Journal {
    /// Logs what has changed with this sample.
    pub(super) fn write(&mut self, sample: &Sample, verdict: &Verdict) {
        let at = sample.at.since_start.as_secs_f64();
        tracing::debug!(at, late = sample.own.late, cpu = ?sample.own.cpu, "sample");
        let job = sample.job.as_ref().map(|job| (job.key, job.ended));
        if job != self.job {
            match &sample.job {
                Some(job) if job.ended => {
                    tracing::info!(at, pid = %job.key.pid, "the job has ended");
                }
                Some(job) => tracing::info!(
                    at,
                    pid = %job.key.pid,
                    command = %job.command,
                    access = ?job.access,
                    ranks = job.ranks.len(),
                    "watching a job"
                ),
                None => tracing::info!(at, "no job"),
            }
            self.job = job;
        }
        let gaps: BTreeSet<Gap> = sample.gaps.iter().cloned().collect();
        for Gap { source, reason, .. } in gaps.difference(&self.gaps) {
            tracing::warn!(at, source, reason, "cannot be read");
        }
        for Gap { source, reason, .. } in self.gaps.difference(&gaps) {
            tracing::info!(at, source, reason, "no longer a problem");
        }
        self.gaps = gaps;
        let said = Some((verdict.kind, verdict.cause));
        if said != self.verdict {
            let (wait, confidence) = (verdict.wait.map(|wait| wait.share.0), verdict.confidence.0);
            let cause = verdict.cause.map(Cause::words);
            tracing::info!(
                at,
                kind = verdict.kind.words(),
                cause,
                wait,
                confidence,
                "verdict"
            );
            self.verdict = said;
        }
    }
}
