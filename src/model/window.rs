//! The newest stretch of time: samples go in, its rates come out.
//!
//! One type for the last interval, the time that a verdict speaks of and all since a job began. Pure: time is what
//! the samples say.

mod sums;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::model::rates::Rates;
use crate::sample::{Sample, Wait};
use crate::units::ProcessKey;

pub(crate) use sums::{RankSums, WindowSums, WorkerSums};

/// Samples that are kept at most, however long the window.
pub(super) const SAMPLES: usize = 1024;

/// What lies between the first and the newest of its samples.
#[derive(Debug, Clone)]
pub struct Window {
    /// [`Duration::MAX`] = all.
    length: Duration,
    /// Oldest first. Of a window without end: the first and the newest.
    pub(super) samples: VecDeque<Arc<Sample>>,
    sums: WindowSums,
}

impl Window {
    /// The newest `length` of time, at least the last interval; with [`Duration::MAX`] all since it was cleared.
    pub fn new(length: Duration) -> Self {
        Self {
            length,
            samples: VecDeque::new(),
            sums: WindowSums::default(),
        }
    }

    /// Takes the next sample in. Begins anew where time runs backwards.
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

    /// Drops what lies before the window, but for the one sample that it starts from. Says whether there was any.
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

    /// Begins anew.
    pub fn clear(&mut self) {
        self.samples.clear();
        self.sums = WindowSums::default();
    }

    /// The newest sample.
    pub fn sample(&self) -> Option<&Sample> {
        self.samples.back().map(Arc::as_ref)
    }

    /// `None` until there are two samples, a millisecond apart.
    pub fn rates(&self) -> Option<Rates> {
        self.rates_within(self)
    }

    /// The same, with what takes longer than this window to be seen (slow oscillations of GPUs, single loads) from a
    /// window around it.
    pub fn rates_within(&self, session: &Self) -> Option<Rates> {
        let (first, last) = self.samples.front().zip(self.samples.back())?;
        Rates::of(first, &self.sums, last, &session.sums)
    }

    /// The waits of a rank that ended in it, oldest first.
    pub fn waits(&self, rank: ProcessKey) -> impl Iterator<Item = &Wait> {
        let rank = self.sums.rank(rank).into_iter();
        rank.flat_map(|rank| &rank.waits)
    }
}

/// The rates of the time between samples that follow each other.
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
