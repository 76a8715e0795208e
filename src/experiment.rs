//! The experiments: each answers one question about a loader by trying it out.
//!
//! Knows no screen and nothing of how a figure is shown on one.

pub mod calibrate;
pub mod headspace;
mod job;
pub mod simulate;
pub mod sweep;
