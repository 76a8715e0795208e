//! `pipetop sweep`, `pipetop headspace` and `pipetop demo --calibrate`: the experiments on the built-in job; those on a
//! command are in a file of their own.

mod command;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use super::demo::{prepare, refused};
use super::{config, exists, options, print};
use crate::cli::{self, Demo, Places, Watch};
use crate::config::Config;
use crate::error::Hinted;
use crate::experiment::sweep::{self, Sweep};
use crate::experiment::{calibrate, headspace};
use crate::job::Target;
use crate::source::sampler::Options;
use crate::workload::presets::PRESETS;
use crate::workload::settings::{Settings, StepTime};
use crate::workload::{cpus_allowed, step_time};

/// Between two readings of an experiment.
const INTERVAL: Duration = Duration::from_millis(500);

pub(super) fn sweep(asked: &cli::Sweep, places: &Places) -> Result<ExitCode, Hinted> {
    exists(places)?;
    let look = Watch {
        ascii: asked.ascii,
        ..Watch::default()
    };
    let config = config(&look, places)?;
    if let Some(words) = asked.own.words() {
        return command::sweep(asked, &words, places, &config);
    }
    let mut settings = asked.workload.settings()?;
    // A step that as many workers as can run at once would just not keep up with, the same in each row.
    settings.workers = cpus_allowed();
    let mut settings = ready(settings, asked.workload.dataset_size)?;
    let options = quick(places, &config);
    let mut found = Sweep {
        rows: vec![],
        prefetch: vec![],
        memory: vec![],
        cpus_allowed: cpus_allowed(),
    };
    for workers in &asked.counts {
        note(&format!("{workers} workers"));
        settings.workers = *workers;
        found
            .rows
            .push(sweep::run(&settings, &options, asked.span)?);
    }
    if let Some(knee) = found.knee() {
        settings.workers = knee;
        for pin_memory in [false, true] {
            note(if pin_memory {
                "pinned memory"
            } else {
                "pageable memory"
            });
            settings.pin_memory = pin_memory;
            found
                .memory
                .push(sweep::run(&settings, &options, asked.span)?);
        }
    }
    note("");
    let page = page_of(asked, &found, &config);
    print(&mut std::io::stdout(), page.as_bytes())
}

/// In the form that was asked for.
fn page_of(asked: &cli::Sweep, found: &Sweep, config: &Config) -> String {
    if asked.json {
        return format!("{:#}\n", sweep::json(found));
    }
    if asked.csv {
        return sweep::csv(found);
    }
    let parts = [
        sweep::head(),
        sweep::text(found, config.ascii),
        sweep::foot(found),
        sweep::prefetch(found),
        sweep::memory(found),
    ];
    parts.concat()
}

pub(super) fn headspace(asked: &cli::Headspace, places: &Places) -> Result<ExitCode, Hinted> {
    exists(places)?;
    if let Some(words) = asked.own.words() {
        let config = config(&Watch::default(), places)?;
        return command::headspace(asked, &words, places, &config);
    }
    let settings = ready(asked.settings()?, asked.workload.dataset_size)?;
    let told = |run: u32, runs: u32| note(&format!("run {run} of {runs}"));
    let found = headspace::run(&settings, asked.plan(), told)?;
    note("");
    let page = if asked.json {
        format!("{:#}\n", headspace::json(&found))
    } else {
        headspace::text(&found)
    };
    print(&mut std::io::stdout(), page.as_bytes())
}

pub(super) fn calibrate(demo: &Demo, places: &Places) -> Result<ExitCode, Hinted> {
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
        let row = calibrate::run(preset, &settings, &options, span)?;
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

/// The job's settings with its images made and its step time known, so that every run has the same.
fn ready(mut settings: Settings, dataset_size: Option<u64>) -> Result<Settings, Hinted> {
    settings.dataset = prepare(&settings, dataset_size)?;
    let step = step_time(&settings).map_err(|error| refused(&error))?;
    settings.step = StepTime::Fixed(step);
    Ok(settings)
}

/// Reads more often than a screen would.
fn quick(places: &Places, config: &Config) -> Options {
    Options {
        interval: config.interval.min(INTERVAL),
        ..options(places, config, Target::Any)
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
