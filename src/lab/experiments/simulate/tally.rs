//! Accumulates the figures of a run.
//!
//! Depends on when batches arrive and are taken, not on why.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::period_batches;
use crate::sample::Wait;
use crate::units::{Share, keep_newest};

/// Number of equal parts of the span for which the queue is shown.
pub(super) const PARTS: usize = 60;
/// Number of newest waits that are searched for a period.
const WAITS: usize = 1024;

#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    seed: u64,
    span: Nanos,
    /// Number of steps done.
    pub(super) batches: u64,
    taken: u64,
    /// When the first batch was taken.
    first: Option<Nanos>,
    /// When the last step ended. `None` unless the trainer is waiting.
    waits_since: Option<Nanos>,
    waited: Nanos,
    waits: VecDeque<Wait>,
    /// Number of batches that are ready, and since when.
    ready: u64,
    since: Nanos,
    /// Ready batches times nanoseconds, and nanoseconds without any, both since the first batch.
    ready_time: f64,
    empty: Nanos,
    /// Ready batches times nanoseconds in each part of the span, from its start.
    parts: Vec<f64>,
    /// The part that `since` is in, and its end.
    part: usize,
    part_ends: Nanos,
}

impl Tally {
    pub(super) fn new(seed: u64, span: Nanos) -> Self {
        Self {
            seed,
            span,
            parts: vec![0.0; PARTS],
            part_ends: part_end(span, 0),
            ..Self::default()
        }
    }

    /// Records that a batch is ready.
    pub(super) fn arrived(&mut self, at: Nanos) {
        self.accumulate(at);
        self.ready += 1;
    }

    /// Records that the trainer takes a batch.
    pub(super) fn taken(&mut self, at: Nanos) {
        self.accumulate(at);
        self.ready = self.ready.saturating_sub(1);
        self.first.get_or_insert(at);
        if let Some(from) = self.waits_since.take().filter(|from| *from < at) {
            self.waited += at - from;
            let wait = Wait {
                from: Duration::from_nanos(from),
                to: Duration::from_nanos(at),
                batch: Some(self.taken),
                first: None,
                begins: false,
            };
            keep_newest(&mut self.waits, wait, WAITS);
        }
        self.taken += 1;
    }

    /// Records that the trainer is ready for another batch.
    pub(super) fn step_ended(&mut self, at: Nanos) {
        self.batches += 1;
        self.waits_since = Some(at);
    }

    /// Adds the time since the last change, during which `ready` stayed the same.
    fn accumulate(&mut self, now: Nanos) {
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

    /// Returns the result up to `now`.
    pub(super) fn outcome(&self, now: Nanos) -> SimulatedRun {
        let mut held = self.clone();
        held.accumulate(now);
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

/// Returns where a part of the span ends; parts are counted from 0.
fn part_end(span: Nanos, part: usize) -> Nanos {
    let end = u128::from(span) * (part as u128 + 1) / PARTS as u128;
    Nanos::try_from(end).unwrap_or(Nanos::MAX)
}

/// A duration, or a time since the start, in nanoseconds.
pub(super) type Nanos = u64;

/// The result of one run. Shares and rates cover the time since the trainer got its first batch, as before that it
/// could not wait between steps. `None` = unknown, as it got no batch.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedRun {
    pub seed: u64,
    /// Steps done, and so batches used.
    pub batches: u64,
    /// Time from the start of the loaders until the trainer got its first batch.
    pub first_batch: Option<Duration>,
    /// Steps done per second.
    pub batches_per_s: Option<f64>,
    /// Share of the time that the trainer waited for a batch.
    pub stall: Option<Share>,
    /// The trainer waits once every this many batches; `None` also if there is no clear period.
    pub period_batches: Option<u32>,
    /// Mean number of ready batches; in order, including those whose turn has not come.
    pub mean_ready: Option<f64>,
    /// Share of the time that no batch was ready.
    pub empty: Option<Share>,
    /// Mean number of ready batches in equal parts of the whole time, including that before the first batch.
    pub ready_over_time: Vec<f64>,
}
