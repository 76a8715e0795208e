//! The experiments: each answers one question about a loader by trying it out.
//!
//! Knows no screen and nothing of how a figure is shown on one.

pub mod calibrate;
pub mod command;
pub mod headspace;
mod job;
pub mod simulate;
pub mod sweep;

use std::time::Duration;

use crate::probe::Step;

/// A figure of a document: digits beyond these are noise.
fn rounded(value: f64) -> f64 {
    // Adding 0 makes -0.0 positive.
    (value * 1e4).round() / 1e4 + 0.0
}

fn milliseconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1000.0)
}

/// Time that these steps took, each from the trainer's coming for a batch to its coming for the next. What it does
/// beside its loops, as between two epochs, is no part of it.
fn taken(steps: &[Step]) -> Duration {
    let each = steps
        .iter()
        .map(|step| step.step_to.saturating_sub(step.wait_from));
    Duration::from_nanos(each.sum())
}
