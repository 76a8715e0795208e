//! `pipetop replay`: on the screen, as lines, or as one report.

use std::io::Write as _;
use std::process::ExitCode;

use crate::app::{self, ReplaySession};
use crate::cli::Replay;
use crate::error::Hinted;
use crate::headless::{Observation, observe_again};
use crate::options::Places;
use crate::record::{RecordError, Recording};
use crate::setup::{config, exit_code, has_screen};
use crate::source::replay::window;
use crate::units::span;

pub(super) fn run(args: &Replay, places: &Places) -> Result<ExitCode, Hinted> {
    let watch = args.watch();
    let mut config = config(&watch, places)?;
    let mut recording = Recording::open(&args.file).map_err(|error| refused(&error))?;
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
    let numbers = window(&mut recording, args.from, args.to).map_err(|error| refused(&error))?;
    config.interval = recording.header().interval;
    let cut = recording.is_cut().then(|| {
        format!(
            "{} is truncated or still being written: showing it up to the last complete sample",
            args.file.display()
        )
    });
    if has_screen(&watch) {
        let session = ReplaySession {
            recording,
            numbers,
            speed: args.speed,
            config,
            notice: cut,
        };
        let kind = app::replay(session).map_err(|error| {
            Hinted::new(
                format!("cannot use this terminal: {error:#}"),
                "--once prints a report without a screen",
            )
        })?;
        return Ok(exit_code(kind, &args.fail_if));
    }
    if let Some(cut) = cut {
        // Nobody reads it: nothing to do about that.
        let _ = writeln!(std::io::stderr(), "note: {}", crate::units::printable(&cut));
    }
    let how = Observation {
        once: args.once,
        json: args.json,
        span: None,
        steady: false,
    };
    let kind = observe_again(recording, numbers, how, &mut std::io::stdout())?;
    Ok(exit_code(kind, &args.fail_if))
}

fn refused(error: &RecordError) -> Hinted {
    Hinted::new(error.to_string(), error.hint())
}
