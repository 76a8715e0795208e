//! What the experiments on the built-in job and those on a command have in common.

use std::io::Write;
use std::time::Duration;

use crate::config::Config;
use crate::job::Target;
use crate::lab::cli;
use crate::lab::experiments::sweep::{self, Sweep};
use crate::options::Places;
use crate::setup::sampling;
use crate::source::sampler::Options;

/// Between two readings of an experiment.
const INTERVAL: Duration = Duration::from_millis(500);

/// In the form that was asked for.
pub(super) fn page_of(asked: &cli::SweepArgs, found: &Sweep, config: &Config) -> String {
    if asked.json {
        return format!("{:#}\n", sweep::json(found));
    }
    if asked.csv {
        return sweep::csv(found);
    }
    let parts = [
        sweep::text::head(),
        sweep::text::text(found, config.ascii),
        sweep::text::foot(found),
        sweep::text::prefetch(found),
        sweep::text::memory(found),
    ];
    parts.concat()
}

/// Reads more often than a screen would.
pub(super) fn quick(places: &Places, config: &Config) -> Options {
    Options {
        interval: config.interval.min(INTERVAL),
        ..sampling(places, config, Target::Any)
    }
}

/// What is being done, on one line of standard error that the next one takes the place of.
pub(super) fn note(text: &str) {
    let mut errors = std::io::stderr();
    if std::io::IsTerminal::is_terminal(&errors) {
        // Nobody reads it: nothing to do about that.
        let _ = write!(errors, "\r\x1b[K{text}");
        let _ = errors.flush();
    }
}
