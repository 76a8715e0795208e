//! `pipetop sweep`, `pipetop headspace` and `pipetop demo --calibrate`: the experiments, on the built-in job or on the
//! user's command.

mod meanwhile;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use self::meanwhile::Meanwhile;
use super::demo::{prepare, refused};
use super::failed::failed;
use crate::config::Config;
use crate::error::Hinted;
use crate::job::Target;
use crate::lab::cli::{self, CommandArgs, DemoArgs};
use crate::lab::experiments::command::{TrainingCommand, TrialError};
use crate::lab::experiments::sweep::command::{Bound, run};
use crate::lab::experiments::sweep::{self, Sweep};
use crate::lab::experiments::{calibrate, headspace};
use crate::lab::workload::presets::PRESETS;
use crate::lab::workload::settings::{JobSettings, StepTime};
use crate::lab::workload::{cpus_allowed, step_time};
use crate::launch::Interrupt;
use crate::options::{Places, Watch};
use crate::setup::{config, exists, print, sampling};
use crate::source::sampler::Options;

/// Between two readings of an experiment.
const INTERVAL: Duration = Duration::from_millis(500);

pub(super) fn sweep(args: &cli::SweepArgs, places: &Places) -> Result<ExitCode, Hinted> {
    exists(places)?;
    let look = Watch {
        ascii: args.ascii,
        ..Watch::default()
    };
    let config = config(&look, places)?;
    let command = command(&args.own, args.workload.dataset_size, || {
        let mut settings = args.workload.settings()?;
        // A step that as many workers as can run at once would just not keep up with, the same in each row.
        settings.workers = cpus_allowed();
        Ok(settings)
    })?;
    let options = quick(places, &config);
    let bound = Bound {
        span: args.span,
        steps: args.steps,
    };
    let memory = command.builtin.is_some() || args.compares_memory();
    let found = Sweep::of(&args.counts, &args.prefetch_factors, memory, |tried| {
        let progress = |doing: &str| note(&format!("{tried}: {doing}"));
        run(&command, tried, bound, &options, progress)
    });
    note("");
    shown(found, |found| page_of(args, found, &config))
}

pub(super) fn headspace(args: &cli::HeadspaceArgs, places: &Places) -> Result<ExitCode, Hinted> {
    exists(places)?;
    let config = config(&Watch::default(), places)?;
    let command = command(&args.own, args.workload.dataset_size, || args.settings())?;
    let options = quick(places, &config);
    let meanwhile = Meanwhile::begin(places);
    let found = headspace::command::launched(&command, args.plan(), &options, note);
    note("");
    if found.is_ok() {
        meanwhile.warn();
    }
    shown(found, |found| {
        if args.json {
            format!("{:#}\n", headspace::json(found))
        } else {
            headspace::text(found)
        }
    })
}

pub(super) fn calibrate(demo: &DemoArgs, places: &Places) -> Result<ExitCode, Hinted> {
    exists(places)?;
    let config = config(&demo.watch, places)?;
    let options = quick(places, &config);
    let span = demo.watch.span.unwrap_or(calibrate::SPAN);
    let mut out = std::io::stdout();
    let mut rows = vec![];
    let one = demo.workload.preset.as_deref();
    if !demo.watch.json {
        print(&mut out, calibrate::head().as_bytes())?;
    }
    for preset in PRESETS
        .iter()
        .filter(|preset| one.is_none_or(|one| one == preset.name))
    {
        let mut settings = preset.settings();
        settings.device = demo.workload.settings()?.device;
        settings.dataset = prepare(&settings, demo.workload.dataset_size)?;
        let row = match calibrate::run(preset, &settings, &options, span) {
            Ok(row) => row,
            Err(failure) => return Ok(failed(&failure)),
        };
        if !demo.watch.json {
            print(&mut out, calibrate::text(&row).as_bytes())?;
        }
        rows.push(row);
    }
    if demo.watch.json {
        return print(
            &mut out,
            format!("{:#}\n", calibrate::json(&rows)).as_bytes(),
        );
    }
    print(&mut out, calibrate::foot(&rows).as_bytes())
}

/// The user's command where there is one; else the built-in job with its images made and its step time known, so that
/// every run has the same.
fn command(
    own: &CommandArgs,
    dataset_size: Option<u64>,
    builtin: impl FnOnce() -> Result<JobSettings, Hinted>,
) -> Result<TrainingCommand, Hinted> {
    let words = own.words();
    let builtin = if words.is_none() {
        let mut settings = builtin()?;
        settings.dataset = prepare(&settings, dataset_size)?;
        let step = step_time(&settings).map_err(|error| refused(&error))?;
        settings.step = StepTime::Fixed(step);
        Some(settings)
    } else {
        None
    };
    let (environment, words) = words.map(|words| words.parts()).unwrap_or_default();
    let interrupt = Interrupt::listen().map_err(|error| {
        Hinted::new(
            format!("cannot set up signal handling: {error}"),
            "this is a bug in pipetop",
        )
    })?;
    Ok(TrainingCommand {
        builtin,
        words,
        environment,
        log: own.log.clone(),
        patience: own.patience,
        interrupt,
    })
}

/// Prints the page of what was found, or says why there is none.
fn shown<T>(
    found: Result<T, TrialError>,
    page: impl FnOnce(&T) -> String,
) -> Result<ExitCode, Hinted> {
    match found {
        Ok(found) => print(&mut std::io::stdout(), page(&found).as_bytes()),
        Err(failure) => Ok(failed(&failure)),
    }
}

/// In the form that was asked for.
fn page_of(args: &cli::SweepArgs, found: &Sweep, config: &Config) -> String {
    if args.json {
        return format!("{:#}\n", sweep::json(found));
    }
    if args.csv {
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
fn quick(places: &Places, config: &Config) -> Options {
    Options {
        interval: config.interval.min(INTERVAL),
        ..sampling(places, config, Target::Any)
    }
}

/// What is being done, on one line of standard error that the next one takes the place of.
fn note(text: &str) {
    let mut errors = std::io::stderr();
    if std::io::IsTerminal::is_terminal(&errors) {
        // Nobody reads it: nothing to do about that.
        let _ = write!(errors, "\r\x1b[K{text}");
        let _ = errors.flush();
    }
}
