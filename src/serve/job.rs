//! A watched job and the machine as sources of metrics, and helpers that build metrics with labels from them.
//!
//! Does no I/O.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::exposition::{Labels, MetricFamily, Type};
use super::totals::{GpuTotals, JobTotals, RankTotals, Seconds};
use crate::report::{RankReport, Report, Tier};
use crate::sample::OwnSample;
use crate::units::Pid;

/// A job that is watched.
#[derive(Debug)]
pub(super) struct Job {
    /// Identifies it among all runs of a server.
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

/// A rank with the labels that identify it.
pub(super) struct Rank<'a> {
    pub(super) labels: Labels,
    pub(super) access: Option<Tier>,
    pub(super) report: &'a RankReport,
    pub(super) totals: Option<&'a RankTotals>,
}

pub(super) fn label(name: &'static str, value: &impl ToString) -> (&'static str, String) {
    (name, value.to_string())
}

/// Returns the labels with further ones; those with `None` are left out.
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
    vec![label("run", &job.run)]
}

pub(super) fn ranks(job: &Job) -> impl Iterator<Item = Rank<'_>> {
    let trainers = job
        .report
        .job
        .iter()
        .flat_map(|of| of.ranks.iter().enumerate());
    trainers.map(|(place, report)| {
        let number = report
            .rank
            .map_or_else(|| place.to_string(), |rank| rank.to_string());
        let mut totals = job.totals.ranks.iter();
        Rank {
            labels: with(&of(job), [("rank", Some(number))]),
            access: job.report.window.access,
            report,
            totals: totals
                .find(|(key, _)| key.pid == report.pid)
                .map(|(_, totals)| totals),
        }
    })
}

/// Returns a family with a value for each of `items`.
pub(super) fn each<'a, T: 'a>(
    (metric, name, help): (Type, &'static str, &'static str),
    items: impl IntoIterator<Item = &'a T>,
    value: impl Fn(&'a T) -> (Labels, Option<f64>),
) -> MetricFamily {
    let mut family = MetricFamily::new(metric, name, help);
    for item in items {
        let (labels, value) = value(item);
        family.add(labels, value);
    }
    family
}

/// Returns a family with a value for each entry of a rank's totals.
pub(super) fn each_of<'a>(
    (name, help): (&'static str, &'static str),
    state: &'static str,
    ranks: &'a [Rank<'a>],
    seconds: impl Fn(&'a RankTotals) -> &'a Seconds,
) -> MetricFamily {
    let mut family = MetricFamily::new(Type::Counter, name, help);
    for rank in ranks {
        for (what, value) in rank.totals.into_iter().flat_map(&seconds) {
            family.add(with(&rank.labels, [(state, Some(what.clone()))]), *value);
        }
    }
    family
}

/// Returns the labels of the rank that the verdict is about.
pub(super) fn rank_labels(job: &Job, pid: Option<Pid>) -> Labels {
    let rank = ranks(job).find(|rank| Some(rank.report.pid) == pid);
    rank.map_or_else(|| of(job), |rank| rank.labels)
}
