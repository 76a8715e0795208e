//! The experiments: each answers one question about a loader by trying it out.
//!
//! Knows no screen and nothing of how a figure is shown on one.

pub mod calibrate;
pub mod command;
pub mod headspace;
pub mod simulate;
pub mod sweep;

use std::time::Duration;

use crate::lab::workload::clock::nanoseconds;
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

/// The steps after the start: without those that the queue filled up behind, and half a second of whatever else
/// a start brings.
fn steady(steps: &[Step], capacity: u32) -> &[Step] {
    let Some(first) = steps.first() else {
        return steps;
    };
    let after = first.wait_to + nanoseconds(Duration::from_millis(500));
    let filled = 1 + capacity as usize;
    let from = steps
        .iter()
        .position(|step| step.wait_from >= after)
        .map_or(steps.len(), |at| at.max(filled));
    steps.get(from..).unwrap_or_default()
}
