//! `pipetop demo`: makes the data set, starts the built-in job, watches it, and ends it with all its processes.

use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::Arc;

use super::{config, exists, options, print, show};
use crate::cli::{Demo, Inner, InnerWorker, Places};
use crate::error::Hinted;
use crate::job::Target;
use crate::progress::Progress;
use crate::source::probe::Listener;
use crate::source::sampler::{Options, launched};
use crate::units::Bytes;
use crate::workload::dataset::{self, Plan};
use crate::workload::presets::{DEFAULT, PRESETS};
use crate::workload::settings::{Load, Settings};
use crate::workload::{Running, WorkloadError};

/// Does what was asked for.
pub(super) fn run(demo: &Demo, places: &Places) -> Result<ExitCode, Hinted> {
    let mut out = std::io::stdout();
    if demo.list {
        return print(&mut out, list().as_bytes());
    }
    if demo.remove_dataset {
        let freed = dataset::remove(&dataset::root())
            .map_err(|error| refused(&WorkloadError::from(error)))?;
        return print(
            &mut out,
            format!("removed {freed} of image files\n").as_bytes(),
        );
    }
    if demo.calibrate {
        return super::experiments::calibrate(demo, places);
    }
    let mut settings = demo.settings()?;
    let config = config(&demo.watch, places)?;
    exists(places)?;
    settings.dataset = prepare(&settings, demo.workload.dataset_size)?;
    let probe = if demo.no_probe {
        None
    } else {
        Some(Arc::new(listen()?))
    };
    let address = probe.as_ref().map(|probe| OsStr::new(probe.address()));
    let mut running = Running::start(&settings, address).map_err(|error| refused(&error))?;
    let job = launched(&places.proc_root, running.pid());
    let options = Options {
        probe: probe.clone(),
        ..options(places, &config, Target::Launched(running.pid()))
    };
    let shown = show(
        options,
        job,
        config,
        "the built-in job".to_owned(),
        &demo.watch,
    );
    match running.failure() {
        Some(error) => Err(refused(&error)),
        None => shown,
    }
}

/// The trainer's process.
pub(super) fn trainer(inner: &Inner) -> Result<ExitCode, Hinted> {
    let trained = crate::workload::train(&inner.settings()?, inner.parent);
    trained.map_err(|error| refused(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// A worker's process.
pub(super) fn worker(inner: &InnerWorker) -> Result<ExitCode, Hinted> {
    let worked = crate::workload::work(&inner.settings()?, inner.place());
    worked.map_err(|error| refused(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn listen() -> Result<Listener, Hinted> {
    Listener::bind().map_err(|error| {
        Hinted::new(
            format!("cannot listen to what the job reports: {error}"),
            "--no-probe does without",
        )
    })
}

pub(super) fn refused(error: &WorkloadError) -> Hinted {
    Hinted::new(error.to_string(), error.hint())
}

/// Makes the image files that the job reads, where it reads any; gives their folder.
pub(super) fn prepare(
    settings: &Settings,
    size: Option<u64>,
) -> Result<std::path::PathBuf, Hinted> {
    if matches!(settings.load, Load::Time(_)) {
        return Ok(std::path::PathBuf::new());
    }
    let plan = size.map_or_else(Plan::default, |bytes| Plan::of_size(Bytes(bytes)));
    let mut bar = None;
    let made = dataset::prepare(&dataset::root(), plan, |done, total| {
        let (done, total) = (u64::from(done), u64::from(total));
        bar.get_or_insert_with(|| Progress::on_stderr("images", done, total))
            .at(done);
    });
    let made = made.map_err(|error| refused(&WorkloadError::from(error)))?;
    if let Some(bar) = bar {
        bar.end();
    }
    Ok(made.folder().to_owned())
}

/// What the presets show, in lines of 80 columns.
fn list() -> String {
    const SHOWS: usize = 31;
    let mut page = format!("{:<16}{:<15}{}\n", "PRESET", "VERDICT", "WHAT IT SHOWS");
    for preset in PRESETS {
        let mut line = format!("{:<16}{:<15}", preset.name, preset.expected);
        for word in preset.shows.split(' ') {
            if line.len() + word.len() > 79 {
                page.push_str(line.trim_end());
                page.push('\n');
                line = " ".repeat(SHOWS);
            }
            line.push_str(word);
            line.push(' ');
        }
        page.push_str(line.trim_end());
        page.push('\n');
    }
    page.push_str("\n`pipetop demo` shows ");
    page.push_str(DEFAULT);
    page.push_str(", `pipetop demo --preset NAME` another.\n");
    page
}
