//! `pipetop demo`: makes the data set, starts the built-in job, watches it, and ends it with all its processes.

use std::process::ExitCode;
use std::sync::Arc;

use super::failed::failed;
use crate::error::Hinted;
use crate::job::Target;
use crate::lab::cli::{DemoArgs, TrainerArgs, WorkerArgs};
use crate::lab::experiments::command::Launched;
use crate::lab::progress::ProgressLine;
use crate::lab::workload::WorkloadError;
use crate::lab::workload::dataset::{self, Dataset};
use crate::lab::workload::presets::{DEFAULT, PRESETS};
use crate::lab::workload::settings::{JobSettings, Load};
use crate::launch::LoaderOverrides;
use crate::options::Places;
use crate::setup::{config, exists, listen, print, sampling, show};
use crate::source::sampler::{Options, launched};
use crate::ui::format::wrap;
use crate::units::Bytes;

/// Does what was asked for.
pub(super) fn run(demo: &DemoArgs, places: &Places) -> Result<ExitCode, Hinted> {
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
    let mut settings = demo.settings()?;
    let config = config(&demo.watch, places)?;
    exists(places)?;
    settings.dataset = prepare(&settings, demo.workload.dataset_size)?;
    let probe = (!demo.no_probe).then(|| listen("use --no-probe to go without it"));
    let probe = probe.transpose()?.map(Arc::new);
    let address = probe.as_ref().map(|probe| probe.address().to_owned());
    let spec = settings.spec(LoaderOverrides::default(), address);
    let mut running = match Launched::start(spec, None) {
        Ok(running) => running,
        Err(failure) => return Ok(failed(&failure)),
    };
    let job = launched(&places.proc_root, running.pid());
    let options = Options {
        probe: probe.clone(),
        ..sampling(places, &config, Target::Launched(running.pid()))
    };
    let shown = show(
        options,
        job,
        config,
        "the built-in job".to_owned(),
        &demo.watch,
    );
    match running.failure() {
        Some(error) => Err(error),
        None => shown,
    }
}

/// The trainer's process.
pub(super) fn trainer(inner: &TrainerArgs) -> Result<ExitCode, Hinted> {
    let trained = crate::lab::workload::train(&inner.settings);
    trained.map_err(|error| refused(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// A worker's process.
pub(super) fn worker(inner: &WorkerArgs) -> Result<ExitCode, Hinted> {
    let worked = crate::lab::workload::work(&inner.settings, inner.place);
    worked.map_err(|error| refused(&error))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn refused(error: &WorkloadError) -> Hinted {
    Hinted::new(error.to_string(), error.hint())
}

/// Makes the image files that the job reads, where it reads any.
pub(super) fn prepare(settings: &JobSettings, size: Option<u64>) -> Result<Dataset, Hinted> {
    if matches!(settings.load, Load::Time(_)) {
        return Ok(Dataset::default());
    }
    let size = size.map_or(dataset::SIZE, Bytes);
    let mut bar = None;
    let made = dataset::prepare(&dataset::root(), size, |done, total| {
        let (done, total) = (u64::from(done), u64::from(total));
        bar.get_or_insert_with(|| ProgressLine::on_stderr("images", done, total))
            .at(done);
    });
    let made = made.map_err(|error| refused(&WorkloadError::from(error)))?;
    if let Some(bar) = bar {
        bar.end();
    }
    Ok(made)
}

/// What the presets show, in lines of 80 columns.
fn list() -> String {
    const SHOWS: usize = 48;
    fn line(name: &str, verdict: &str, shows: &str) -> String {
        format!("{name:<16}{verdict:<15}{shows}\n")
    }
    let mut page = line("PRESET", "VERDICT", "WHAT IT SHOWS");
    for preset in PRESETS {
        let (mut name, mut verdict) = (preset.name, preset.expected);
        for shows in wrap(preset.shows, SHOWS) {
            page.push_str(&line(name, verdict, &shows));
            (name, verdict) = ("", "");
        }
    }
    format!(
        "{page}\n`pipetop demo` shows {DEFAULT}; use `pipetop demo --preset NAME` for another.\n"
    )
}
