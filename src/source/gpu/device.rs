//! One GPU, however it is asked.

use crate::sample::GpuSample;
use crate::units::Moment;

/// One GPU that can be asked.
pub trait Gpu: Send {
    /// Asks it. May take as long as the driver likes.
    fn read(&mut self, at: Moment) -> GpuSample;
}
