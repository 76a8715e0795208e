//! The reports of the hook in Python, against each script's own measurements, and that no script is affected by it.
//!
//! The loops run on the real PyTorch, and those of Accelerate, Lightning and Transformers with each Python that has
//! them. Tests without torch run with the interpreters of `PIPETOP_PYTHONS`.

#![expect(clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "figures for who runs with --nocapture")]

mod cost;
mod device;
mod frameworks;
mod modes;
mod others;
mod stand;
mod start;
mod steps;
mod stub;
