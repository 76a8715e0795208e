//! The built-in training job: a trainer process and loader worker processes, connected by a bounded queue in
//! shared memory, on a real or a simulated device. Its bottleneck can be chosen.
//!
//! A job like any other: does not depend on the monitor. It reports through the probe protocol.

mod batch_memory;
mod batches;
mod child;
pub mod clock;
pub mod dataset;
pub mod device;
mod image;
mod load_time;
pub(in crate::lab) mod message;
pub mod presets;
mod read;
pub(in crate::lab) mod scheduler;
pub mod settings;
mod shuffle;
mod step_time;
mod trainer;
mod worker;
mod worker_pool;

pub use settings::JobSettings;
pub use step_time::{cpus_allowed, step_time};
pub use trainer::train;
pub use worker::work;
