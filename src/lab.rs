//! A built-in training job with a bottleneck of choice, and experiments with it or with a command of the user's own.
//!
//! A build without the feature `lab` is only the monitor: no module depends on this one, except those that parse the
//! command line and choose a command.

pub mod cli;
pub mod commands;
pub mod experiments;
mod progress;
mod value;
pub mod workload;
