//! The built-in training job: a trainer process and loader worker processes, connected by a bounded queue in
//! shared memory, on a real or a simulated device. Its bottleneck can be set at will.
//!
//! A job like any other: knows nothing of who watches it. What it tells of itself goes through the probe
//! protocol.

mod batches;
mod child;
pub mod clock;
pub mod dataset;
pub mod device;
mod error;
pub mod image;
mod load_time;
mod loader;
mod message;
pub mod order;
pub mod presets;
mod running;
pub mod settings;
mod slots;
mod step_time;
mod trainer;
mod turns;
mod worker;

pub use error::WorkloadError;
pub use load_time::LoadTime;
pub use running::Running;
pub use settings::Settings;
pub use step_time::{cpus_allowed, step_time};
pub use trainer::train;
pub use worker::work;
