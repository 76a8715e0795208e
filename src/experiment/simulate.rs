//! A discrete-event model of loaders, a bounded queue and a trainer: what would happen with these load and
//! step times?
//!
//! Pure: knows no clock, no file, no screen and no process. The rules, the same for all settings:
//!
//! - A loader makes one batch at a time, and starts the next one in the same instant if it was asked for one.
//! - As in PyTorch's `DataLoader`, each loader has at most `prefetch_factor` batches under way or ready. Indices
//!   are handed out in turn; each batch that the trainer takes frees one. In order, batches are taken by their
//!   index, and the next index goes to the next loader in turn; in any order, the batch that was ready first is
//!   taken, and its loader gets the next index.
//! - The trainer takes a batch as soon as there is one and its last step is over; moving a batch takes no time.
//! - With a clock, whatever would happen between two of its ticks happens at the later one: a load that ends
//!   within a tick is seen at its end, and the batch is queued and taken, and the next load begun, at that tick.
//! - The time that is looked at is half open, as 300 ticks of 100 ms cover 0.0 s to 29.9 s: what happens at its
//!   end is not in it.

mod json;
mod pipeline;
mod study;
mod tally;
mod text;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::error::Hinted;
use crate::units::Share;

pub use json::json;
pub use pipeline::{Loader, Simulation, Trainer};
pub use study::{Band, Study, WhatIf};
pub use text::text;

/// Most loaders, and most batches that one of them may have under way or ready.
pub const MOST_WORKERS: u32 = 1024;
pub const MOST_PREFETCHED: u32 = 100;
/// A run ends after so many batches, whatever the settings.
pub const MOST_BATCHES: u64 = 100_000_000;
/// Load times that vary more say nothing about loaders.
const MOST_JITTER: f64 = 10.0;
/// Longest load, step and tick.
const LONGEST: Duration = Duration::from_hours(1);

/// What is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Loaders, 1 to [`MOST_WORKERS`].
    pub workers: u32,
    /// Batches that each loader has under way or ready at most, 1 to [`MOST_PREFETCHED`].
    pub prefetch_factor: u32,
    /// Mean time in which a loader makes a batch.
    pub load: Duration,
    /// Standard deviation of the load time over its mean; load times are log-normal. 0 = always the mean.
    pub load_jitter: f64,
    /// Time of a step, always the same.
    pub step: Duration,
    pub order: Order,
    /// Everything happens at ticks of this length. `None` = when it is due.
    pub clock: Option<Duration>,
    /// Loaders start with some part of their first batch done, each with another, and not all together.
    pub desync: bool,
    /// How much time is looked at, from the start of the loaders.
    pub span: Duration,
}

/// The order in which the trainer takes batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By index.
    InOrder,
    /// As they are ready.
    AnyOrder,
}

/// Loaders that are far too slow for their trainer.
impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: 7,
            prefetch_factor: 2,
            load: Duration::from_secs(2),
            load_jitter: 0.0,
            step: Duration::from_millis(100),
            order: Order::InOrder,
            clock: None,
            desync: false,
            span: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// Batches that fit into the queue.
    pub fn capacity(&self) -> u64 {
        u64::from(self.workers) * u64::from(self.prefetch_factor)
    }

    /// Another seed would give another run.
    pub fn has_chance(&self) -> bool {
        self.load_jitter > 0.0 || self.desync
    }

    /// Batches per second that neither loaders nor trainer can exceed on average; infinite where neither takes
    /// any time.
    pub fn bound(&self) -> f64 {
        let loaders = f64::from(self.workers) / self.load.as_secs_f64();
        loaders.min(1.0 / self.step.as_secs_f64())
    }

    /// Batches that a run can come to, about.
    pub fn batches_at_most(&self) -> f64 {
        self.bound() * self.span.as_secs_f64()
    }

    /// Whether a run of this tells anything.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn check(&self) -> Result<(), Hinted> {
        let refuse = |message: &str, hint: &str| Err(Hinted::new(message, hint));
        if !(1..=MOST_WORKERS).contains(&self.workers) {
            return refuse("no such number of workers", "choose between 1 and 1024");
        }
        if !(1..=MOST_PREFETCHED).contains(&self.prefetch_factor) {
            let hint = "choose between 1 and 100; PyTorch's own is 2";
            return refuse("no such prefetch factor", hint);
        }
        if self.load.max(self.step) > LONGEST || self.clock.is_some_and(|clock| clock > LONGEST) {
            return refuse("a time is too long", "choose at most 3600000 ms");
        }
        if !(0.0..=MOST_JITTER).contains(&self.load_jitter) {
            let hint = "standard deviation over mean, between 0 and 10, as in --load-jitter 0.05";
            return refuse("load times cannot vary so", hint);
        }
        if self.span.is_zero() {
            return refuse("nothing happens in no time", "as in --for 30s");
        }
        if self.clock.is_some_and(|clock| clock.is_zero()) {
            return refuse(
                "a clock needs ticks",
                "leave --clock-ms out for exact times",
            );
        }
        if self.clock.is_some_and(|clock| clock >= self.span) {
            return refuse(
                "--clock-ms is not shorter than --for",
                "many ticks are needed, as in --clock-ms 100 --for 30s",
            );
        }
        if self.batches_at_most() > MOST_BATCHES as f64 {
            return refuse(
                "too many batches to simulate",
                "a longer step or load, or a shorter --for, gives at most a hundred million",
            );
        }
        Ok(())
    }
}

/// What came of one run. Shares and rates are of the time since the trainer got its first batch: before that
/// there is nothing to wait between. Unknown (`None`) where it got none.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
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

/// Simulates once, from the start to the end. The same settings and seed give the same outcome everywhere.
///
/// Settings that [`Settings::check`] refuses end too, though what they give has no meaning.
pub fn run(settings: &Settings, seed: u64) -> Outcome {
    let mut simulation = Simulation::new(settings, seed);
    simulation.advance(settings.span);
    simulation.outcome()
}
