//! The experiments: each answers one question about a loader by running it.
//!
//! Must not depend on the screen.

pub mod calibrate;
pub mod command;
pub mod headspace;
pub mod interrupt;
pub mod simulate;
pub mod sweep;

use std::path::Path;
use std::time::Duration;

use crate::job::Candidate;
use crate::lab::workload::clock::nanoseconds;
use crate::probe::Step;
use crate::source::process::ProcessReader;
use crate::units::Pid;

/// Rounds a figure of a JSON document: further digits are noise.
fn rounded(value: f64) -> f64 {
    // Adding 0 makes -0.0 positive.
    (value * 1e4).round() / 1e4 + 0.0
}

fn milliseconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1000.0)
}

/// Returns the total time of these steps, each from the trainer's request for a batch until its step is done. Time
/// between two loops of the trainer, such as two epochs, does not count.
fn taken(steps: &[Step]) -> Duration {
    let each = steps
        .iter()
        .map(|step| step.step_to.saturating_sub(step.wait_from));
    Duration::from_nanos(each.sum())
}

/// Returns the steps after the start. The start lasts until the queue has filled, and at least half a second because of
/// its other effects.
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

/// Returns the job of a trainer that was just started and may not look like a trainer yet. `None` if it is gone.
pub fn launched(proc_root: &Path, trainer: Pid) -> Option<Candidate> {
    let mut reader = ProcessReader::new(proc_root);
    let stat = reader.stat(trainer).ok()?;
    Some(Candidate {
        ranks: vec![stat.key],
        command: reader.command(trainer).unwrap_or_default(),
        workers: 0,
        starter: None,
    })
}
