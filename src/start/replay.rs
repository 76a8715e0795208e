//! `pipetop replay`: shows a recording on the screen, as lines, or as one report.

use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use crate::app::{self, ReplaySession};
use crate::cli::ReplayArgs;
use crate::error::{Explain as _, Hinted, write_error};
use crate::headless::observe_again;
use crate::options::PathArgs;
use crate::record::Recording;
use crate::setup::{config, exit_code, has_screen, note_if_cut, observation};
use crate::source::replay::{readable, window};
use crate::units::{printable, span};

/// The part of an interval by which a sample may be late.
const LATE: u32 = 10;

pub(super) fn run(args: &ReplayArgs, places: &PathArgs) -> Result<ExitCode, Hinted> {
    let watch = args.watch();
    let mut config = config(&watch, places)?;
    let recording = Recording::open(&args.file);
    let mut recording = recording.map_err(|error| Hinted::new(error.to_string(), error.hint()))?;
    let length = length(&recording);
    if args.from.is_some_and(|from| from > length) {
        return Err(Hinted::new(
            "--from is past the end of the recording",
            format!("the recording is {} long", words(length)),
        ));
    }
    let numbers = numbers(&mut recording, args)?;
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
        let (length, every) = (words(length), words(config.interval));
        return Err(Hinted::new(
            "there is only one sample to report on",
            format!("a report needs two; the recording is {length} long, with one every {every}"),
        ));
    }
    let how = observation(&watch, false);
    let kind = observe_again(recording, numbers, how, &mut std::io::stdout())?;
    Ok(exit_code(kind, &args.fail_if))
}

/// Returns the numbers of the samples to show, from the first that can be read.
fn numbers(recording: &mut Recording, args: &ReplayArgs) -> Result<RangeInclusive<u64>, Hinted> {
    let file = printable(&args.file.display().to_string());
    let (begin, length) = (recording.span().0, length(recording));
    let other = format!(
        "choose another time; the recording is {} long",
        words(length)
    );
    let whole = 0..=recording.len() - 1;
    if readable(recording, whole).is_none() {
        return Err(Hinted::new(
            format!("{file} is damaged at its first sample, and no later one can be read"),
            "record again, with `pipetop --record FILE`",
        ));
    }
    let damaged = |place| Hinted::new(format!("{file} is damaged {place}"), &other);
    let late = recording.header.interval / LATE;
    let numbers = window(recording, args.from, args.to, late)
        .map_err(|_| damaged("at the time of --from or --to"))?;
    let first = *numbers.start();
    let numbers = readable(recording, numbers)
        .ok_or_else(|| damaged("between --from and --to: no sample there can be read"))?;
    if *numbers.start() > first
        && let Ok((sample, _)) = recording.read(*numbers.start())
    {
        let from = words(sample.at.since_start.saturating_sub(begin));
        write_error(format_args!(
            "note: {file} is damaged: showing it from {from} on"
        ));
    }
    Ok(numbers)
}

/// Returns the time from the first sample to the last.
fn length(recording: &Recording) -> Duration {
    let (begin, end) = recording.span();
    end.saturating_sub(begin)
}

fn words(time: Duration) -> String {
    span(time.as_secs_f64())
}
