//! What the trainer computes on: a GPU, or a simulated device that keeps the times of one.
//!
//! Knows nothing of loaders; a batch is bytes.

mod sim;

use std::fmt;
use std::time::Duration;

use super::settings::DeviceKind;
use sim::Sim;

/// What a device is to do for each batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOptions {
    /// How long it computes.
    pub step: Duration,
    /// How long the copy takes. `None` = what it takes.
    pub copy: Option<Duration>,
    pub pin_memory: bool,
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
/// batch is `copy`, `step`, `finish`; the `copy` of the next batch may come before the `finish` of this one.
pub trait Device: fmt::Debug {
    /// What it is, in words: `NVIDIA H200`, `simulated`.
    fn name(&self) -> &str;

    /// Brings `batch` to the device; its memory may be used again when this returns. From pinned memory the
    /// copy goes on by itself, else this waits for its end.
    ///
    /// # Errors
    /// Where the device fails.
    fn copy(&mut self, batch: &[u8]) -> Result<(), DeviceError>;

    /// Starts the step on the oldest batch that was copied and not yet computed. Does not wait.
    ///
    /// # Errors
    /// Where the device fails.
    fn step(&mut self) -> Result<(), DeviceError>;

    /// Waits for the end of the step that was started.
    ///
    /// # Errors
    /// Where the device fails.
    fn finish(&mut self) -> Result<StepTimes, DeviceError>;
}

/// A device that failed: one line without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

/// Opens a device. Where no GPU can be used that is the simulated one, with one line that says why.
pub fn open(kind: DeviceKind, options: &DeviceOptions) -> (Box<dyn Device>, Option<String>) {
    let notice =
        (kind != DeviceKind::Sim).then(|| "no CUDA here: the device is simulated".to_owned());
    (Box::new(Sim::new(*options)), notice)
}
