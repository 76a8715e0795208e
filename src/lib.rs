//! pipetop: is my training waiting for data, or is it computing, and what should I change?
//!
//! The modules in the order in which data flows through them:
//!
//! ```text
//! source -> sample -> model -> verdict -> ui, report
//! ```

pub mod action;
pub mod app;
pub mod cli;
pub mod config;
pub mod doctor;
pub mod error;
pub mod experiment;
pub mod job;
pub mod last_lines;
pub mod launch;
pub mod model;
pub mod observe;
pub mod probe;
pub mod progress;
pub mod record;
pub mod report;
pub mod sample;
pub mod source;
pub mod start;
pub mod terminal;
pub mod ui;
pub mod units;
pub mod verdict;
pub mod workload;
