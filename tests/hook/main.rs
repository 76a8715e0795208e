//! What the hook in Python reports, against what each script measured of itself, and that no script notices it.
//!
//! The loops run on the real PyTorch with every interpreter of `PIPETOP_TORCH_PYTHONS` (colon-separated;
//! `python3` by default) that has it; where none has, the test says so and passes, unless
//! `PIPETOP_REQUIRE_TORCH=1`; so with those of Accelerate, Lightning and Transformers. What needs no torch runs with those of `PIPETOP_PYTHONS`.

#![expect(clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "figures for who runs with --nocapture")]

mod cost;
mod device;
mod frameworks;
#[path = "../support/measured.rs"]
mod measured;
mod modes;
#[path = "../support/patience.rs"]
mod patience;
mod stand;
mod start;
mod steps;
mod stub;
