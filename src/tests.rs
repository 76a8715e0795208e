//! Tests of the whole crate.

mod advice;
mod architecture;
mod chance;
mod circles;
#[cfg(feature = "lab")]
mod commands;
mod diff;
mod documents;
mod engine;
mod first_verdict;
mod headless;
mod joint_stall;
