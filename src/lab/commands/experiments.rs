//! `pipetop sweep`, `pipetop headspace` and `pipetop demo --calibrate`: the experiments, on the built-in job or on the
//! user's command.

mod meanwhile;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use self::meanwhile::watch_others;
use super::demo::prepare;
use crate::config::Config;
use crate::error::{Explain as _, Hinted};
use crate::job::Target;
use crate::lab::cli::{self, CommandArgs, DemoArgs};
use crate::lab::experiments::command::{TrainingCommand, TrialError};
use crate::lab::experiments::interrupt::Interrupt;
use crate::lab::experiments::sweep::command::run;
use crate::lab::experiments::sweep::{self, Sweep};
use crate::lab::experiments::{calibrate, headspace};
use crate::lab::workload::presets::PRESETS;
use crate::lab::workload::settings::{JobSettings, StepTime};
use crate::lab::workload::{cpus_allowed, step_time};
use crate::options::{PathArgs, WatchArgs};
use crate::setup::{config, exists, print, sampling};
use crate::source::sampler::Options;

/// Longest time between two samples of an experiment.
const INTERVAL: Duration = Duration::from_millis(500);

pub(super) fn sweep(args: &cli::SweepArgs, places: &PathArgs) -> Result<ExitCode, TrialError> {
    exists(places)?;
    let mut watch = WatchArgs::default();
    watch.look.ascii = args.ascii;
    let config = config(&watch, places)?;
    let command = command(&args.own, args.workload.dataset_size, || {
        let mut settings = args.workload.settings()?;
        // The step time is a share of the load time with as many workers as can run at once. It is the same in each
        // row.
        settings.workers = cpus_allowed();
        Ok(settings)
    })?;
    let options = quick(places, &config);
    let memory = command.builtin.is_some() || args.compares_memory();
    let found = Sweep::of(&args.counts, &args.prefetch_factors, memory, |tried| {
        let progress = |doing: &str| note(&format!("{tried}: {doing}"));
        run(&command, tried, args.bound, &options, progress)
    });
    note("");
    let page = page_of(args, &found?, &config);
    Ok(print(page)?)
}

pub(super) fn headspace(
    args: &cli::HeadspaceArgs,
    places: &PathArgs,
) -> Result<ExitCode, TrialError> {
    exists(places)?;
    let config = config(&WatchArgs::default(), places)?;
    let command = command(&args.own, args.workload.dataset_size, || args.settings())?;
    let options = quick(places, &config);
    let warn_of_others = watch_others(places);
    let found = headspace::command::launched(&command, args.plan, &options, note);
    note("");
    let found = found?;
    warn_of_others();
    let page = if args.json {
        format!("{:#}\n", headspace::json(&found))
    } else {
        headspace::text(&found)
    };
    Ok(print(page)?)
}

pub(super) fn calibrate(demo: &DemoArgs, places: &PathArgs) -> Result<ExitCode, TrialError> {
    exists(places)?;
    let config = config(&demo.watch, places)?;
    let options = quick(places, &config);
    let span = demo.watch.span.unwrap_or(calibrate::SPAN);
    let mut rows = vec![];
    let one = demo.workload.preset.as_deref();
    if !demo.watch.json {
        print(calibrate::head())?;
    }
    for preset in PRESETS
        .iter()
        .filter(|preset| one.is_none_or(|one| one == preset.name))
    {
        let mut settings = preset.settings();
        settings.device = demo.workload.settings()?.device;
        settings.dataset = prepare(&settings, demo.workload.dataset_size)?;
        let row = calibrate::run(preset, &settings, &options, span)?;
        if !demo.watch.json {
            print(calibrate::text(&row))?;
        }
        rows.push(row);
    }
    let page = if demo.watch.json {
        format!("{:#}\n", calibrate::json(&rows))
    } else {
        calibrate::summary(&rows)
    };
    Ok(print(page)?)
}

/// Returns the user's command, if there is one. Otherwise returns the built-in job with its images created and its step
/// time measured, so that it is the same in every run.
fn command(
    own: &CommandArgs,
    dataset_size: Option<u64>,
    builtin: impl FnOnce() -> Result<JobSettings, Hinted>,
) -> Result<TrainingCommand, Hinted> {
    let words = own.words();
    let builtin = if words.is_none() {
        let mut settings = builtin()?;
        settings.dataset = prepare(&settings, dataset_size)?;
        settings.step = StepTime::Fixed(step_time(&settings)?);
        Some(settings)
    } else {
        None
    };
    let (environment, words) = words.map(|words| words.parts()).unwrap_or_default();
    let interrupt =
        Interrupt::listen().explain("cannot set up signal handling", "this is a bug in pipetop")?;
    Ok(TrainingCommand {
        builtin,
        words,
        environment,
        log: own.log.clone(),
        patience: own.patience,
        interrupt,
    })
}

/// Formats the result as requested.
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
        sweep::text::conclusion(found),
        sweep::text::prefetch(found),
        sweep::text::memory(found),
    ];
    parts.concat()
}

/// Returns options to sample more often than for a screen.
fn quick(places: &PathArgs, config: &Config) -> Options {
    Options {
        interval: config.interval.min(INTERVAL),
        ..sampling(places, config, Target::Any)
    }
}

/// Shows the current activity on one line of standard error, replacing the previous one.
fn note(text: &str) {
    let mut errors = std::io::stderr();
    if std::io::IsTerminal::is_terminal(&errors) {
        // If the output is closed, there is nothing to do.
        let _ = write!(errors, "\r\x1b[K{text}");
        let _ = errors.flush();
    }
}
