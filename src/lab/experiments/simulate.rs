//! A discrete-event model of loaders, a bounded queue and a trainer: predicts what happens with given load and step
//! times.
//!
//! Pure: does not depend on clocks, files, screens or processes. The rules are the same for all settings:
//!
//! - A loader makes one batch at a time, and starts the next one immediately if it has a request for one.
//! - As in PyTorch's `DataLoader`, each loader has at most `prefetch_factor` batches under way or ready. Indices
//!   are handed out in turn; each batch that the trainer takes allows another one. In order, batches are taken by their
//!   index, and the next index goes to the next loader in turn; in any order, the batch that was ready first is
//!   taken, and its loader gets the next index.
//! - The trainer takes a batch as soon as there is one and its last step is over; moving a batch takes no time.
//! - With a clock, everything due between two of its ticks happens at the later one: a load that ends within a tick is
//!   noticed at its end, and the batch is queued and taken, and the next load started, at that tick.
//! - The simulated time is half open, as 300 ticks of 100 ms cover 0.0 s to 29.9 s: events at its end do not count.

mod json;
mod pipeline;
mod recording;
mod settings;
mod study;
mod tally;
mod text;

#[cfg(test)]
mod tests;

pub use json::json;
use pipeline::Simulation;
pub use recording::samples;
pub use settings::{MAX_BATCHES, MAX_WORKERS, SimulationSettings};
pub use study::{Study, WhatIf};
pub use tally::SimulatedRun;
pub use text::text;

/// Simulates one run from start to end. The same settings and seed give the same result everywhere.
///
/// A run with settings that [`SimulationSettings::check`] rejects terminates, too, but its result has no meaning.
pub fn run(settings: &SimulationSettings, seed: u64) -> SimulatedRun {
    let mut simulation = Simulation::new(settings, seed);
    simulation.advance(settings.span);
    simulation.outcome()
}
