//! Who reports below the command, what each has reported so far, and which of them the figures are of.
//!
//! Pure but for the listener that is asked.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::probe::{Cached, Step};
use crate::source::probe::{Listener, ProbeReport};
use crate::units::Pid;

/// What one process has reported.
#[derive(Debug, Clone, Default)]
pub(in crate::lab::experiments) struct TrainerReports {
    pub(in crate::lab::experiments) rank: Option<u32>,
    /// Oldest first.
    pub(in crate::lab::experiments) steps: Vec<Step>,
    /// Numbers of workers that its loaders had; several where it has several loaders.
    pub(in crate::lab::experiments) workers: BTreeSet<u32>,
    /// Their most batches that can be ready, where they reported it.
    pub(in crate::lab::experiments) capacities: BTreeSet<u32>,
    /// Whether they put batches into pinned memory.
    pub(in crate::lab::experiments) pins: BTreeSet<bool>,
    pub(in crate::lab::experiments) cached: Option<Cached>,
    pub(in crate::lab::experiments) notice: Option<String>,
}

impl TrainerReports {
    /// Steps that it has made, also those whose report was lost.
    pub(in crate::lab::experiments) fn made(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.number + 1)
    }

    /// The most batches that can be ready; 0 where none is known to be loaded ahead.
    pub(in crate::lab::experiments) fn capacity(&self) -> u32 {
        self.capacities.last().copied().unwrap_or_default()
    }

    fn add(&mut self, report: ProbeReport) {
        let again = report.steps.front().map(|step| step.number);
        if again.is_some_and(|number| number < self.made()) {
            // Its count began anew.
            *self = Self::default();
        }
        self.rank = report.rank.or(self.rank);
        self.workers.extend(report.workers);
        self.pins.extend(report.pin);
        let queue = report.totals.queue;
        self.capacities
            .extend(queue.and_then(|queue| queue.capacity));
        self.cached = report.cached.or(self.cached);
        self.notice = report.notice.or(self.notice.take());
        self.steps.extend(report.steps);
    }
}

/// All that report.
#[derive(Debug, Default)]
pub(in crate::lab::experiments) struct Writers(BTreeMap<Pid, TrainerReports>);

impl Writers {
    /// Takes in what came since.
    pub(super) fn hear(&mut self, listener: &Listener) {
        for pid in listener.writers() {
            if let Some(report) = listener.take(pid) {
                self.add(pid, report);
            }
        }
    }

    fn add(&mut self, pid: Pid, report: ProbeReport) {
        self.0.entry(pid).or_default().add(report);
    }

    /// The one that the figures are of: of several ranks the lowest, as all of them train in step. Without ranks
    /// the one that has made most steps: a script may first read its data in another process.
    pub(in crate::lab::experiments) fn trainer(&self) -> Option<(Pid, &TrainerReports)> {
        let trainers = self.0.iter().filter(|(_, heard)| !heard.steps.is_empty());
        let order = |heard: &TrainerReports| (heard.rank.map(Reverse), heard.steps.len());
        trainers
            .max_by_key(|(_, heard)| order(heard))
            .map(|(pid, heard)| (*pid, heard))
    }

    /// Ranks that train; 0 or 1 where it is not distributed.
    pub(in crate::lab::experiments) fn ranks(&self) -> usize {
        let ranks = self.0.values().filter(|heard| !heard.steps.is_empty());
        ranks
            .filter_map(|heard| heard.rank)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// What the user should know, of whomever.
    pub(super) fn notice(&self) -> Option<&str> {
        self.0.values().find_map(|heard| heard.notice.as_deref())
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
    fn the_lowest_rank_counts_or_who_made_most_steps() {
        let mut writers = Writers::default();
        assert_eq!(trainer(&writers), None);
        writers.add(Pid(5), report(None, 0..20));
        assert_eq!((trainer(&writers), writers.ranks()), (Some(Pid(5)), 0));
        writers.add(Pid(6), report(None, 0..21));
        assert_eq!(trainer(&writers), Some(Pid(6)));
        writers.add(Pid(8), report(Some(1), 0..9));
        writers.add(Pid(9), report(Some(0), 0..3));
        assert_eq!((trainer(&writers), writers.ranks()), (Some(Pid(9)), 2));
        // A notice alone is no trainer.
        let mut writers = Writers::default();
        writers.add(Pid(7), report(Some(0), 0..0));
        assert_eq!(trainer(&writers), None);
    }

    #[test]
    fn what_is_told_piece_by_piece_is_put_together() {
        let mut writers = Writers::default();
        for (numbers, workers) in [(0..4, 2), (6..9, 0)] {
            let report = ProbeReport {
                workers: Some(workers),
                ..report(None, numbers)
            };
            writers.add(Pid(5), report);
        }
        let (_, heard) = writers.trainer().unwrap();
        assert_eq!((heard.steps.len(), heard.made()), (7, 9));
        assert_eq!(heard.workers, BTreeSet::from([0, 2]));
        // Another process with the number of one that is gone.
        writers.add(Pid(5), report(None, 0..2));
        assert_eq!(writers.trainer().unwrap().1.made(), 2);
    }
}
