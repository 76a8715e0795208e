//! `--record`: starts and ends the recording of a live mode.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Hinted, write_error};
use crate::launch::before_the_end;
use crate::options::WatchArgs;
use crate::record::{self, Recorder, Recording};
use crate::source::sampler::Options;
use crate::units::printable;

/// Ends a recording, after the last sample was read.
///
/// # Errors
/// Returns an error if the recording is incomplete.
pub(crate) fn finish(recorder: Option<Arc<Recorder>>) -> Result<(), Hinted> {
    match recorder
        .and_then(Arc::into_inner)
        .and_then(Recorder::finish)
    {
        Some(gap) => Err(Hinted::new(gap.reason, gap.hint)),
        None => Ok(()),
    }
}

/// Closes the recording before a signal ends the program.
///
/// # Errors
/// Returns an error if no thread can be started.
pub(crate) fn finish_on_signals(recorder: &Arc<Recorder>) -> Result<(), Hinted> {
    // A weak reference, so that waiting for a signal does not keep the recorder alive.
    let recorder = Arc::downgrade(recorder);
    let close = move || recorder.upgrade().iter().for_each(|it| it.close());
    before_the_end(close).map_err(|error| Hinted::no_thread(&error))
}

/// Checks in advance that a requested recording can be made: it begins only when there is something to record.
///
/// # Errors
/// Returns an error if it cannot.
pub(crate) fn can(watch: &WatchArgs) -> Result<(), Hinted> {
    watch.record.as_deref().map_or(Ok(()), |path| {
        record::can_create(path).map_err(|error| Hinted::new(error.to_string(), error.hint()))
    })
}

/// Prints a note to standard error if a recording is incomplete.
pub(crate) fn note_if_cut(recording: &Recording, file: &Path) {
    if recording.cut {
        write_error(format_args!(
            "note: {} is truncated, damaged or still being written: showing it up to the last complete sample",
            printable(&file.display().to_string())
        ));
    }
}

/// Adds a recorder to the options if one was requested.
pub(crate) fn with(options: Options, watch: &WatchArgs) -> Result<Options, Hinted> {
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
