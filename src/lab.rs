//! A built-in training job with a bottleneck of choice, and experiments with it or with a command of the user's own.
//!
//! A build without the feature `lab` is the monitor alone: no other module but those that read the command line and
//! pick a command knows of this one.

pub mod animation;
pub mod cli;
pub mod commands;
pub mod experiments;
mod progress;
pub mod workload;
