//! The interface to one GPU.

use crate::sample::GpuSample;
use crate::units::Moment;

/// A GPU that can be read.
pub trait Gpu: Send {
    /// Reads it. May block as long as the driver does.
    fn read(&mut self, at: Moment) -> GpuSample;
}
