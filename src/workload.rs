//! The built-in training job: a trainer process and loader worker processes, connected by a bounded queue in
//! shared memory, on a real or a simulated device. Its bottleneck can be set at will.
//!
//! A job like any other: knows nothing of who watches it. What it tells of itself goes through the probe
//! protocol.

pub mod dataset;
pub mod device;
pub mod image;
pub mod order;
pub mod settings;
