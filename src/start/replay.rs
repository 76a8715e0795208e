//! `pipetop replay`: shows a recording on the screen, as lines, or as one report.

use std::process::ExitCode;

use crate::app::{self, ReplaySession};
use crate::cli::ReplayArgs;
use crate::error::{Explain as _, Hinted};
use crate::headless::observe_again;
use crate::options::PathArgs;
use crate::record::{RecordError, Recording};
use crate::setup::{config, exit_code, has_screen, note_if_cut, observation};
use crate::source::replay::window;
use crate::units::span;

pub(super) fn run(args: &ReplayArgs, places: &PathArgs) -> Result<ExitCode, Hinted> {
    let watch = args.watch();
    let mut config = config(&watch, places)?;
    let mut recording = Recording::open(&args.file).map_err(|error| no_target_error(&error))?;
    let (begin, end) = recording.span();
    if args
        .from
        .is_some_and(|from| from > end.saturating_sub(begin))
    {
        let length = span(end.saturating_sub(begin).as_secs_f64());
        return Err(Hinted::new(
            "--from is past the end of the recording",
            format!("the recording is {length} long"),
        ));
    }
    let numbers =
        window(&mut recording, args.from, args.to).map_err(|error| no_target_error(&error))?;
    config.interval = recording.header.interval;
    // If a screen opens, the user sees this note when it closes.
    note_if_cut(&recording, &args.file);
    if has_screen(&watch) {
        let session = ReplaySession {
            samples: recording.samples,
            numbers,
            speed: args.speed,
            config,
        };
        let kind = app::replay(session).explain(
            "cannot use this terminal",
            "--once prints a report without a screen",
        )?;
        return Ok(exit_code(kind, &args.fail_if));
    }
    if numbers.end() == numbers.start() {
        let length = span(end.saturating_sub(begin).as_secs_f64());
        let every = span(config.interval.as_secs_f64());
        return Err(Hinted::new(
            "there is only one sample to report on",
            format!("a report needs two; the recording is {length} long, with one every {every}"),
        ));
    }
    let how = observation(&watch, false);
    let kind = observe_again(recording, numbers, how, &mut std::io::stdout())?;
    Ok(exit_code(kind, &args.fail_if))
}

fn no_target_error(error: &RecordError) -> Hinted {
    Hinted::new(error.to_string(), error.hint())
}
