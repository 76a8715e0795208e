//! What the trainer computes on: a GPU, or a simulated device that keeps the times of one.
//!
//! Knows nothing of loaders; a batch is bytes.

mod cuda;
mod open;
mod sim;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

pub use open::open;

/// How the device is to behave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceOptions {
    /// How long it computes for a step.
    pub step: Duration,
    /// Time of a batch's copy. `None` = what the device takes for the batch's bytes.
    pub copy: Option<Duration>,
    /// Batches pass through pinned memory, so that their copies overlap with steps.
    pub pin_memory: bool,
    /// The most bytes that a batch has.
    pub batch_bytes: usize,
}

/// Times of one step, on the device's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepTimes {
    /// The batch's copy to the device.
    pub copy: Duration,
    /// The step's kernels.
    pub busy: Duration,
}

/// An accelerator with a copy engine and a compute engine that work side by side. The order of calls for each
/// batch is `copy`, `step`, `finish`; the `copy` of the next batch may come before the `finish` of this one, so
/// at most [`BATCHES_IN_FLIGHT`] are under way.
pub trait Device: fmt::Debug {
    /// What it is, in words: `NVIDIA H200`, `simulated`.
    fn name(&self) -> &str;

    /// Brings `batch` to the device; its memory may be used again when this returns. Through pinned memory the
    /// copy goes on by itself, beside the step before. Else it is done in the order of the steps: this waits for
    /// the end of the step before, and then for its own.
    ///
    /// # Errors
    /// Where the device fails, too many batches are under way, or the batch is larger than was announced.
    fn copy(&mut self, batch: &[u8]) -> Result<(), DeviceError>;

    /// Starts the step on the oldest batch that was copied and not yet computed. Does not wait.
    ///
    /// # Errors
    /// Where the device fails or no batch was copied.
    fn step(&mut self) -> Result<(), DeviceError>;

    /// Waits for the end of the oldest step that was started and not yet waited for, without burning CPU.
    ///
    /// # Errors
    /// Where the device fails or no step was started.
    fn finish(&mut self) -> Result<StepTimes, DeviceError>;
}

/// A device that failed: one line without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

impl DeviceError {
    fn no_batch() -> Self {
        Self("a step was started without a batch".to_owned())
    }

    fn no_step() -> Self {
        Self("waited for a step that was not started".to_owned())
    }
}

/// Batches between their `copy` and their `finish`: one in its step and one that is brought meanwhile.
pub const BATCHES_IN_FLIGHT: usize = 2;

/// Refuses a further batch where so many are under way.
fn in_flight(batches: usize) -> Result<(), DeviceError> {
    if batches < BATCHES_IN_FLIGHT {
        Ok(())
    } else {
        Err(DeviceError(format!(
            "more than {BATCHES_IN_FLIGHT} batches were copied ahead"
        )))
    }
}
