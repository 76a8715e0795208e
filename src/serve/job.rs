//! A watched job and the machine as sources of metrics, and the labels of a job and its ranks.
//!
//! Does no I/O.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::exposition::Labels;
use super::totals::{GpuTotals, JobTotals};
use crate::report::{JobReport, RankReport, Report};
use crate::sample::OwnSample;
use crate::units::Pid;

/// A job that is watched.
#[derive(Debug)]
pub(super) struct Job {
    /// Name that identifies the job among all runs on a Prometheus server.
    pub(super) run: String,
    pub(super) report: Report,
    pub(super) totals: JobTotals,
}

/// Figures that do not belong to one job.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) report: Report,
    pub(super) gpus: BTreeMap<u32, GpuTotals>,
    pub(super) own: OwnSample,
    pub(super) at: SystemTime,
}

/// Returns `labels` followed by `more`, without those that are `None`.
pub(super) fn with(
    labels: &Labels,
    more: impl IntoIterator<Item = (&'static str, Option<String>)>,
) -> Labels {
    let more = more
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    labels.iter().cloned().chain(more).collect()
}

pub(super) fn of(job: &Job) -> Labels {
    vec![("run", job.run.clone())]
}

/// Returns the ranks, each with the labels that identify it.
pub(super) fn ranks(job: &Job) -> impl Iterator<Item = (Labels, &RankReport)> {
    let reported = job.report.job.iter();
    let reported = reported.flat_map(JobReport::numbered_ranks);
    reported.map(|(number, report)| {
        let number = number.unwrap_or(0).to_string();
        (with(&of(job), [("rank", Some(number))]), report)
    })
}

/// Returns the labels of the rank that the verdict is about.
pub(super) fn rank_labels(job: &Job, pid: Option<Pid>) -> Labels {
    let rank = ranks(job).find(|(_, report)| Some(report.pid) == pid);
    rank.map_or_else(|| of(job), |(labels, _)| labels)
}
