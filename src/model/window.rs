//! The newest stretch of time: takes samples, returns the rates.
//!
//! One type for the last interval, for the window of the verdict and for all time since a job began. Reads no clock:
//! the only time is that of the samples.

mod sums;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::model::rates::Rates;
use crate::sample::{Sample, Wait};
use crate::units::ProcessKey;

pub(crate) use sums::{RankSums, WindowSums, WorkerSums, are_missed};

/// Maximum number of samples kept, however long the window is.
pub(super) const SAMPLES: usize = 1024;

/// The samples of a stretch of time and the sums of what happened between them.
#[derive(Debug, Clone)]
pub struct Window {
    /// [`Duration::MAX`] means no limit.
    length: Duration,
    /// Oldest first. Without a limit, only the first and the newest sample are kept.
    pub(super) samples: VecDeque<Arc<Sample>>,
    sums: WindowSums,
}

impl Window {
    /// Returns a window of the newest `length` of time, at least of the last interval; with [`Duration::MAX`] of all
    /// time since it was cleared.
    pub fn new(length: Duration) -> Self {
        Self {
            length,
            samples: VecDeque::new(),
            sums: WindowSums::default(),
        }
    }

    /// Adds the next sample. Restarts if time runs backwards.
    pub fn push(&mut self, sample: Arc<Sample>) {
        let newest = self.sample().map(|newest| newest.at.since_start);
        if newest.is_some_and(|newest| sample.at.since_start < newest) {
            self.clear();
        }
        let endless = self.length == Duration::MAX;
        if let Some(newest) = self.samples.back() {
            self.sums.add(newest, &sample);
        }
        if endless {
            self.samples.truncate(1);
        }
        self.samples.push_back(sample);
        if !endless && self.slide() {
            self.sums = WindowSums::default();
            for (older, newer) in self.samples.iter().zip(self.samples.iter().skip(1)) {
                self.sums.add(older, newer);
            }
        }
    }

    /// Drops the samples before the window, except the one that it starts from. Returns whether there were any.
    fn slide(&mut self) -> bool {
        let before = self.samples.len();
        let now = self.samples.back().map(|sample| sample.at.since_start);
        let start = now.unwrap_or_default().saturating_sub(self.length);
        while self.samples.len() > SAMPLES
            || (self.samples.len() > 2 && self.samples[1].at.since_start <= start)
        {
            self.samples.pop_front();
        }
        self.samples.len() < before
    }

    /// Drops all but the newest sample: the window starts from it.
    pub(super) fn restart(&mut self) {
        self.samples.drain(..self.samples.len().saturating_sub(1));
        self.sums = WindowSums::default();
    }

    /// Drops all samples and sums.
    pub fn clear(&mut self) {
        self.samples.clear();
        self.sums = WindowSums::default();
    }

    /// Returns the newest sample.
    pub fn sample(&self) -> Option<&Sample> {
        self.samples.back().map(Arc::as_ref)
    }

    /// Returns the rates; `None` until there are two samples, a millisecond apart.
    pub fn rates(&self) -> Option<Rates> {
        self.rates_within(self)
    }

    /// Like [`Self::rates`], but takes what shows only over a longer time (slow oscillations of GPUs, single loads)
    /// from `session`, a window that contains this one.
    pub fn rates_within(&self, session: &Self) -> Option<Rates> {
        let (first, last) = self.samples.front().zip(self.samples.back())?;
        Rates::of(first, &self.sums, last, &session.sums)
    }

    /// Returns the waits of a rank that ended in the window, oldest first.
    pub fn waits(&self, rank: ProcessKey) -> impl Iterator<Item = &Wait> {
        let rank = self.sums.rank(rank).into_iter();
        rank.flat_map(|rank| &rank.waits)
    }
}

/// Returns the rates of the time between consecutive samples.
#[cfg(test)]
pub(crate) fn rates_of<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Option<Rates> {
    let mut window = Window::new(Duration::MAX);
    for sample in samples {
        window.push(Arc::new(sample.clone()));
    }
    window.rates()
}

#[cfg(test)]
pub(crate) fn between(older: &Sample, newer: &Sample) -> Option<Rates> {
    rates_of([older, newer])
}
