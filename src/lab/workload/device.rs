//! The device that the trainer computes on: a GPU, or a simulated device with the timing of one.
//!
//! Does not depend on loaders; a batch is bytes.

mod cuda;
mod open;
mod sim;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

pub use open::open;

/// The timing and memory of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Compute time of a step.
    pub step: Duration,
    /// Time of a batch's copy. `None` = the time that the device needs for the batch's bytes.
    pub copy: Option<Duration>,
    /// Whether batches pass through pinned memory, so that their copies overlap with steps.
    pub pin_memory: bool,
    /// Maximum size of a batch in bytes.
    pub batch_bytes: usize,
}

/// Times of one step, by the device's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepTimes {
    /// The batch's copy to the device.
    pub copy: Duration,
    /// The step's kernels.
    pub busy: Duration,
}

/// An accelerator with a copy engine and a compute engine that run in parallel. The order of calls for each batch is
/// `copy`, `step`, `finish`; the `copy` of the next batch may come before the `finish` of this one, so at most
/// [`BATCHES_IN_FLIGHT`] are under way.
pub trait Device: fmt::Debug {
    /// Returns its name: `NVIDIA H200`, `simulated`.
    fn name(&self) -> &str;

    /// Copies `batch` to the device; its memory may be reused when this returns. Through pinned memory the copy runs in
    /// the background, in parallel with the previous step. Otherwise it runs in the order of the steps: this waits for
    /// the end of the previous step, and then for the end of the copy.
    ///
    /// # Errors
    /// Returns an error if the device fails, too many batches are under way, or the batch is larger than announced.
    fn copy(&mut self, batch: &[u8]) -> Result<(), DeviceError>;

    /// Starts the step on the oldest batch that was copied but not computed yet. Does not wait.
    ///
    /// # Errors
    /// Returns an error if the device fails or no batch was copied.
    fn step(&mut self) -> Result<(), DeviceError>;

    /// Waits, without using CPU time, for the end of the oldest started step that was not waited for yet.
    ///
    /// # Errors
    /// Returns an error if the device fails or no step was started.
    fn finish(&mut self) -> Result<StepTimes, DeviceError>;
}

/// Why a device failed: one line without a full stop.
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

/// Maximum number of batches between their `copy` and their `finish`: one in its step, and one being copied.
pub const BATCHES_IN_FLIGHT: usize = 2;

/// Returns an error if this many batches leave no room for another.
fn in_flight(batches: usize) -> Result<(), DeviceError> {
    if batches < BATCHES_IN_FLIGHT {
        Ok(())
    } else {
        Err(DeviceError(format!(
            "more than {BATCHES_IN_FLIGHT} batches were copied ahead"
        )))
    }
}
