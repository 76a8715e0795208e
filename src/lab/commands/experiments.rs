//! `pipetop sweep`, `pipetop headspace` and `pipetop demo --calibrate`: the experiments on the built-in job; those on a
//! command are in a file of their own.

mod command;
mod common;
mod meanwhile;

use std::process::ExitCode;

use self::common::{note, page_of, quick};
use self::meanwhile::Meanwhile;
use super::demo::{prepare, refused};
use crate::error::Hinted;
use crate::lab::cli::{self, DemoArgs};
use crate::lab::experiments::sweep::{self, Sweep};
use crate::lab::experiments::{calibrate, headspace};
use crate::lab::workload::presets::PRESETS;
use crate::lab::workload::settings::{JobSettings, StepTime};
use crate::lab::workload::{cpus_allowed, step_time};
use crate::options::{Places, Watch};
use crate::setup::{config, exists, print};

pub(super) fn sweep(asked: &cli::SweepArgs, places: &Places) -> Result<ExitCode, Hinted> {
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
    let settings = ready(settings, asked.workload.dataset_size)?;
    let options = quick(places, &config);
    let found = Sweep::of(&asked.counts, &[], true, |tried| {
        note(&tried.to_string());
        let settings = JobSettings {
            workers: tried.workers,
            pin_memory: tried.pin_memory.unwrap_or(settings.pin_memory),
            ..settings.clone()
        };
        sweep::run(&settings, &options, asked.span)
    })?;
    note("");
    let page = page_of(asked, &found, &config);
    print(&mut std::io::stdout(), page.as_bytes())
}

pub(super) fn headspace(asked: &cli::HeadspaceArgs, places: &Places) -> Result<ExitCode, Hinted> {
    exists(places)?;
    if let Some(words) = asked.own.words() {
        let config = config(&Watch::default(), places)?;
        return command::headspace(asked, &words, places, &config);
    }
    let settings = ready(asked.settings()?, asked.workload.dataset_size)?;
    let told = |run: u32, runs: u32| note(&format!("run {run} of {runs}"));
    let meanwhile = Meanwhile::begin(places);
    let found = headspace::run(&settings, asked.plan(), told)?;
    note("");
    meanwhile.warn();
    let page = if asked.json {
        format!("{:#}\n", headspace::json(&found))
    } else {
        headspace::text(&found)
    };
    print(&mut std::io::stdout(), page.as_bytes())
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
fn ready(mut settings: JobSettings, dataset_size: Option<u64>) -> Result<JobSettings, Hinted> {
    settings.dataset = prepare(&settings, dataset_size)?;
    let step = step_time(&settings).map_err(|error| refused(&error))?;
    settings.step = StepTime::Fixed(step);
    Ok(settings)
}
