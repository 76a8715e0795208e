//! `--record`: begins the recording that a live mode was asked for.

use std::sync::Arc;

use crate::cli::Watch;
use crate::error::Hinted;
use crate::record::{self, Recorder};
use crate::source::sampler::Options;

/// The options with a recorder, where one was asked for.
pub(super) fn with(options: Options, watch: &Watch) -> Result<Options, Hinted> {
    let Some(path) = &watch.record else {
        return Ok(options);
    };
    let asked = record::Options {
        path: path.clone(),
        size: watch.record_size.unwrap_or(record::SIZE),
        command_lines: !watch.no_command_lines,
        interval: options.interval,
    };
    let recorder = Recorder::start(&asked);
    let recorder = recorder.map_err(|error| Hinted::new(error.to_string(), error.hint()))?;
    Ok(Options {
        recorder: Some(Arc::new(recorder)),
        ..options
    })
}
