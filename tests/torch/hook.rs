//! What the hook in Python reports, against what each script measured of itself, and that no script notices it.
//!
//! The loops run on the real PyTorch, and those of Accelerate, Lightning and Transformers with each Python that has
//! them. What needs no torch runs with those of `PIPETOP_PYTHONS`.

#![expect(clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "figures for who runs with --nocapture")]

mod cost;
mod device;
mod frameworks;
mod modes;
mod stand;
mod start;
mod steps;
mod stub;
