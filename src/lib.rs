//! pipetop: is my training waiting for data, or is it computing, and what should I change?
//!
//! A [`Source`] yields one [`Sample`] after the other, from a running job or from a recording. An [`Engine`]
//! consumes them, and its [`State`] makes a [`Report`] of all that is known: the value that `pipetop --json` prints.
//! `examples/verdict.rs` shows how to use them.
//!
//! ```text
//! source -> sample -> engine (model -> verdict) -> report -> output, ui
//! ```

#![cfg_attr(
    not(feature = "testing"),
    allow(
        unreachable_pub,
        reason = "what the test programs reach is `pub`, all else `pub(crate)`"
    )
)]

mod action;
mod app;
mod background;
mod cli;
mod config;
mod diff;
mod doctor;
mod engine;
mod error;
mod fleet;
mod folders;
mod foreign;
mod headless;
mod job;
#[cfg(feature = "lab")]
mod lab;
mod last_lines;
mod launch;
mod loaders;
mod logging;
mod model;
mod options;
mod output;
mod plain_toml;
mod probe;
mod record;
mod regular_file;
pub mod report;
pub mod sample;
mod serve;
mod setup;
mod source;
mod start;
mod terminal;
mod ui;
pub mod units;
mod untrusted;
mod verdict;

use std::process::ExitCode;

pub use engine::{Engine, State};
pub use error::Hinted;
pub use report::Report;
pub use sample::Sample;
pub use source::Source;

/// Runs the program `pipetop` with the arguments of its command line.
#[doc(hidden)]
pub fn main(stdout_is_closed: bool) -> ExitCode {
    start::main(stdout_is_closed)
}

/// The internals, for the test programs of this repository. Not part of the stable interface.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing {
    macro_rules! open {
        ($($module:ident)*) => {
            $(pub mod $module {
                pub use crate::$module::*;
            })*
        };
    }
    open! { action app config engine headless job last_lines launch }
    open! { model probe record source terminal ui verdict }
    #[cfg(feature = "lab")]
    open! { lab }
}

#[cfg(test)]
mod tests;
