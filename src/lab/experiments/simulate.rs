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
mod settings;
mod study;
mod tally;
mod text;

#[cfg(test)]
mod tests;

pub use json::json;
pub use pipeline::{LoaderState, Simulation, TrainerState};
pub use settings::{DeliveryOrder, MOST_BATCHES, MOST_WORKERS, SimulationSettings};
pub use study::{Study, WhatIf};
pub use tally::SimulatedRun;
pub use text::text;

/// Simulates once, from the start to the end. The same settings and seed give the same outcome everywhere.
///
/// Settings that [`SimulationSettings::check`] refuses end too, though what they give has no meaning.
pub fn run(settings: &SimulationSettings, seed: u64) -> SimulatedRun {
    let mut simulation = Simulation::new(settings, seed);
    simulation.advance(settings.span);
    simulation.outcome()
}
