//! The reports of the hook in Python, against each script's own measurements, and checks that the hook changes nothing
//! in a script.
//!
//! The loops run on the real PyTorch; those of Accelerate, Lightning and Transformers run with each Python that has
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
