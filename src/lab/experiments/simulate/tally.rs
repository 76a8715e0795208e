//! What a run amounts to, counted as it goes.
//!
//! Knows arrivals and takings and their times; nothing of why they happen.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::period_batches;
use crate::sample::Wait;
use crate::units::Share;

/// Equal parts of the span that the queue is shown in.
pub(super) const PARTS: usize = 60;
/// Newest waits that a rhythm is looked for in.
const WAITS: usize = 1024;

#[derive(Debug, Clone)]
pub(super) struct Tally {
    seed: u64,
    span: Nanos,
    /// Steps done.
    pub(super) batches: u64,
    taken: u64,
    /// When the first batch was taken.
    first: Option<Nanos>,
    /// When the last step ended, while the trainer waits.
    waits_since: Option<Nanos>,
    waited: Nanos,
    waits: VecDeque<Wait>,
    /// Batches that are ready, since when so many.
    ready: u64,
    since: Nanos,
    /// Batches times nanoseconds, and nanoseconds without any, both since the first batch.
    ready_time: f64,
    empty: Nanos,
    /// The same in each part of the span, from its start.
    parts: Vec<f64>,
    /// Which part `since` is in, and where that ends.
    part: usize,
    part_ends: Nanos,
}

impl Tally {
    pub(super) fn new(seed: u64, span: Nanos) -> Self {
        Self {
            seed,
            span,
            batches: 0,
            taken: 0,
            first: None,
            waits_since: None,
            waited: 0,
            waits: VecDeque::new(),
            ready: 0,
            since: 0,
            ready_time: 0.0,
            empty: 0,
            parts: vec![0.0; PARTS],
            part: 0,
            part_ends: part_end(span, 0),
        }
    }

    /// A batch is ready.
    pub(super) fn arrived(&mut self, at: Nanos) {
        self.hold(at);
        self.ready += 1;
    }

    /// The trainer takes a batch.
    pub(super) fn taken(&mut self, at: Nanos) {
        self.hold(at);
        self.ready = self.ready.saturating_sub(1);
        self.first.get_or_insert(at);
        if let Some(from) = self.waits_since.take().filter(|from| *from < at) {
            self.waited += at - from;
            if self.waits.len() == WAITS {
                self.waits.pop_front();
            }
            self.waits.push_back(Wait {
                from: Duration::from_nanos(from),
                to: Duration::from_nanos(at),
                batch: Some(self.taken),
            });
        }
        self.taken += 1;
    }

    /// The trainer would take another one.
    pub(super) fn step_ended(&mut self, at: Nanos) {
        self.batches += 1;
        self.waits_since = Some(at);
    }

    /// As many batches were ready as now, since the last change.
    fn hold(&mut self, now: Nanos) {
        let ready = self.ready as f64;
        if self.first.is_some() {
            let length = now - self.since;
            self.ready_time += ready * length as f64;
            self.empty += if self.ready == 0 { length } else { 0 };
        }
        while self.part < PARTS {
            let until = now.min(self.part_ends);
            self.parts[self.part] += ready * (until - self.since) as f64;
            self.since = until;
            if now < self.part_ends {
                break;
            }
            self.part += 1;
            self.part_ends = part_end(self.span, self.part);
        }
        self.since = now;
    }

    /// What has come of it up to `now`.
    pub(super) fn outcome(&self, now: Nanos) -> SimulatedRun {
        let mut held = self.clone();
        held.hold(now);
        let waiting = held.waits_since.map_or(0, |from| now - from);
        let observed = held.first.map(|first| (now - first) as f64);
        let observed = observed.filter(|observed| *observed > 0.0);
        let over_time = held.parts.iter().enumerate().map_while(|(part, sum)| {
            let begin = part
                .checked_sub(1)
                .map_or(0, |part| part_end(self.span, part));
            let length = part_end(self.span, part).min(now).saturating_sub(begin);
            (length > 0).then(|| sum / length as f64)
        });
        SimulatedRun {
            seed: held.seed,
            batches: held.batches,
            first_batch: held.first.map(Duration::from_nanos),
            batches_per_s: observed.map(|observed| held.batches as f64 * 1e9 / observed),
            stall: observed
                .and_then(|observed| Share::of((held.waited + waiting) as f64, observed)),
            period_batches: period_batches(&held.waits),
            mean_ready: observed.map(|observed| held.ready_time / observed),
            empty: observed.and_then(|observed| Share::of(held.empty as f64, observed)),
            ready_over_time: over_time.collect(),
        }
    }
}

/// Where a part of the span ends, counted from 0.
fn part_end(span: Nanos, part: usize) -> Nanos {
    let end = u128::from(span) * (part as u128 + 1) / PARTS as u128;
    Nanos::try_from(end).unwrap_or(Nanos::MAX)
}

/// Nanoseconds since the start, or of a length.
pub(super) type Nanos = u64;

/// What came of one run. Shares and rates are of the time since the trainer got its first batch: before that
/// there is nothing to wait between. Unknown (`None`) where it got none.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedRun {
    pub seed: u64,
    /// Steps done, hence batches used up.
    pub batches: u64,
    /// From the start of the loaders until the trainer got its first batch.
    pub first_batch: Option<Duration>,
    /// Steps done per second.
    pub batches_per_s: Option<f64>,
    /// Share of the time that the trainer waited for a batch.
    pub stall: Option<Share>,
    /// The trainer waits every so many batches; `None` also where there is no clear rhythm.
    pub period_batches: Option<u32>,
    /// Batches ready on average; in order, also those that wait for their turn.
    pub mean_ready: Option<f64>,
    /// Share of the time that no batch was ready.
    pub empty: Option<Share>,
    /// Batches ready on average in equal parts of the whole time, the first batch's included.
    pub ready_over_time: Vec<f64>,
}
