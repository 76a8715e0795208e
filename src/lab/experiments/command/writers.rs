//! The reporting processes below the command, their reports so far, and which of them is measured.
//!
//! Pure except for reading from the listener.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::probe::{Cached, Step};
use crate::source::probe::{Listener, ProbeReport};
use crate::units::Pid;

/// The reports of one process.
#[derive(Debug, Clone, Default)]
pub(in crate::lab::experiments) struct TrainerReports {
    pub(in crate::lab::experiments) rank: Option<u32>,
    /// Its steps, oldest first.
    pub(in crate::lab::experiments) steps: Vec<Step>,
    /// Numbers of workers of its loaders; several values if it has several loaders.
    pub(in crate::lab::experiments) workers: BTreeSet<u32>,
    /// Capacities of their queues in batches, if reported.
    pub(in crate::lab::experiments) capacities: BTreeSet<u32>,
    /// Whether they put batches into pinned memory.
    pub(in crate::lab::experiments) pins: BTreeSet<bool>,
    pub(in crate::lab::experiments) cached: Option<Cached>,
    pub(in crate::lab::experiments) notice: Option<String>,
}

impl TrainerReports {
    /// Returns the number of steps it has made, including those with lost reports.
    pub(in crate::lab::experiments) fn made(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.number + 1)
    }

    /// Returns the most batches that can be ready; 0 if none is known to be loaded ahead.
    pub(in crate::lab::experiments) fn capacity(&self) -> u32 {
        self.capacities.last().copied().unwrap_or_default()
    }

    fn add(&mut self, report: ProbeReport) {
        let again = report.steps.front().map(|step| step.number);
        if again.is_some_and(|number| number < self.made()) {
            // The PID belongs to a new process: its count of steps has started again.
            *self = Self::default();
        }
        self.rank = report.rank.or(self.rank);
        self.workers.extend(report.workers);
        self.pins.extend(report.pin);
        let queue = report.queue;
        self.capacities
            .extend(queue.and_then(|queue| queue.capacity));
        self.cached = report.cached.or(self.cached);
        self.notice = report.notice.or(self.notice.take());
        self.steps.extend(report.steps);
    }
}

/// All reporting processes.
#[derive(Debug, Default)]
pub(in crate::lab::experiments) struct Writers(BTreeMap<Pid, TrainerReports>);

impl Writers {
    /// Reads new reports.
    pub(super) fn read_reports(&mut self, listener: &Listener) {
        for pid in listener.writers() {
            if let Some(report) = listener.take(pid) {
                self.add(pid, report);
            }
        }
    }

    fn add(&mut self, pid: Pid, report: ProbeReport) {
        self.0.entry(pid).or_default().add(report);
    }

    /// Returns the process to measure. Of several ranks, this is the lowest, as all of them train in step. Without
    /// ranks, it is the process with most steps, as a script may first read its data in another process.
    pub(in crate::lab::experiments) fn trainer(&self) -> Option<(Pid, &TrainerReports)> {
        let trainers = self
            .0
            .iter()
            .filter(|(_, reports)| !reports.steps.is_empty());
        let order = |reports: &TrainerReports| (reports.rank.map(Reverse), reports.steps.len());
        trainers
            .max_by_key(|(_, reports)| order(reports))
            .map(|(pid, reports)| (*pid, reports))
    }

    /// Returns the number of ranks that train; 0 or 1 if the job is not distributed.
    pub(in crate::lab::experiments) fn ranks(&self) -> usize {
        let ranks = self.0.values().filter(|reports| !reports.steps.is_empty());
        ranks
            .filter_map(|reports| reports.rank)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// Returns a notice for the user from any process.
    pub(super) fn notice(&self) -> Option<&str> {
        self.0
            .values()
            .find_map(|reports| reports.notice.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rank: Option<u32>, numbers: std::ops::Range<u64>) -> ProbeReport {
        let steps = numbers.map(|number| Step {
            number,
            ..Step::default()
        });
        ProbeReport {
            rank,
            steps: steps.collect(),
            ..ProbeReport::default()
        }
    }

    fn trainer(writers: &Writers) -> Option<Pid> {
        writers.trainer().map(|(pid, _)| pid)
    }

    #[test]
    fn the_lowest_rank_counts_or_the_one_with_most_steps() {
        let mut writers = Writers::default();
        assert_eq!(trainer(&writers), None);
        writers.add(Pid(5), report(None, 0..20));
        assert_eq!((trainer(&writers), writers.ranks()), (Some(Pid(5)), 0));
        writers.add(Pid(6), report(None, 0..21));
        assert_eq!(trainer(&writers), Some(Pid(6)));
        writers.add(Pid(8), report(Some(1), 0..9));
        writers.add(Pid(9), report(Some(0), 0..3));
        assert_eq!((trainer(&writers), writers.ranks()), (Some(Pid(9)), 2));
        // A process with a notice but no steps is not a trainer.
        let mut writers = Writers::default();
        writers.add(Pid(7), report(Some(0), 0..0));
        assert_eq!(trainer(&writers), None);
    }

    #[test]
    fn partial_reports_are_merged() {
        let mut writers = Writers::default();
        for (numbers, workers) in [(0..4, 2), (6..9, 0)] {
            let report = ProbeReport {
                workers: Some(workers),
                ..report(None, numbers)
            };
            writers.add(Pid(5), report);
        }
        let (_, reports) = writers.trainer().unwrap();
        assert_eq!((reports.steps.len(), reports.made()), (7, 9));
        assert_eq!(reports.workers, BTreeSet::from([0, 2]));
        // Another process that got the PID of one that has ended.
        writers.add(Pid(5), report(None, 0..2));
        assert_eq!(writers.trainer().unwrap().1.made(), 2);
    }
}
