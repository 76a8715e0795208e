//! `--record`: begins the recording that a live mode was asked for.

use std::sync::Arc;

use crate::error::Hinted;
use crate::options::Watch;
use crate::record::{self, Recorder};
use crate::source::sampler::Options;

/// Ends a recording, once nothing reads samples any more.
///
/// # Errors
/// Where it is not whole.
pub(crate) fn finish(recorder: Option<Arc<Recorder>>) -> Result<(), Hinted> {
    match recorder
        .and_then(Arc::into_inner)
        .and_then(Recorder::finish)
    {
        Some(gap) => Err(Hinted::new(gap.reason, gap.hint)),
        None => Ok(()),
    }
}

/// The options with a recorder, where one was asked for.
pub(crate) fn with(options: Options, watch: &Watch) -> Result<Options, Hinted> {
    let Some(path) = &watch.record else {
        return Ok(options);
    };
    let asked = record::RecordOptions {
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
