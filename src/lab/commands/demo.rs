//! `pipetop demo`: creates the data set, starts the built-in job, watches it, and ends all of its processes.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::app::{self, Setup};
use crate::config::Config;
use crate::error::Hinted;
use crate::job::Target;
use crate::lab::cli::DemoArgs;
use crate::lab::experiments::command::{LaunchedJob, TrialError};
use crate::lab::experiments::launched;
use crate::lab::progress::ProgressLine;
use crate::lab::workload::dataset::{self, Dataset};
use crate::lab::workload::presets::{DEFAULT, PRESETS};
use crate::lab::workload::settings::{JobSettings, Load};
use crate::launch::LoaderOverrides;
use crate::options::PathArgs;
use crate::setup::{
    can_record, config, exists, has_screen, listen, no_screen, prepared, print, sampling, show,
};
use crate::source::sampler::Options;
use crate::ui::format::wrap;
use crate::units::Bytes;

/// Description of the job, shown while it is looked for.
const WANTED: &str = "the built-in job";
/// How long a tour shows a preset.
const STOP: Duration = Duration::from_secs(10);
/// Printed at the end of a tour.
const END: &str = "\
watch one of them again:    pipetop demo --preset NAME
watch a running job:        pipetop
start a job and watch it:   pipetop run -- python train.py
";

/// Runs the command.
pub(super) fn run(demo: &DemoArgs, places: &PathArgs) -> Result<ExitCode, TrialError> {
    if demo.list {
        return Ok(print(list())?);
    }
    if demo.remove_dataset {
        let freed = dataset::remove(&dataset::root())?;
        let line = format!("removed {freed} of image files\n");
        return Ok(print(line)?);
    }
    if demo.tour {
        return tour(demo, places);
    }
    let mut settings = demo.settings()?;
    let config = config(&demo.watch, places)?;
    exists(places)?;
    can_record(&demo.watch)?;
    let web = prepared(&demo.watch)?;
    settings.dataset = prepare(&settings, demo.workload.dataset_size)?;
    let (mut running, options) = start(&settings, demo, places, &config)?;
    let job = launched(&places.proc_root, running.pid());
    let shown = show(options, job, config, WANTED.to_owned(), web, &demo.watch);
    match running.failure() {
        Some(error) => Err(error.into()),
        None => Ok(shown?),
    }
}

/// Starts the job; returns it with the options to watch it.
fn start(
    settings: &JobSettings,
    demo: &DemoArgs,
    places: &PathArgs,
    config: &Config,
) -> Result<(LaunchedJob, Options), TrialError> {
    let probe = (!demo.no_probe).then(|| listen("use --no-probe to go without it"));
    let probe = probe.transpose()?.map(Arc::new);
    let address = probe.as_ref().map(|probe| probe.address().to_owned());
    let running = LaunchedJob::start(settings.spec(LoaderOverrides::default(), address), None)?;
    let options = Options {
        probe,
        ..sampling(places, config, Target::Launched(running.pid()))
    };
    Ok((running, options))
}

/// Shows one preset after the other.
fn tour(demo: &DemoArgs, places: &PathArgs) -> Result<ExitCode, TrialError> {
    if !has_screen(&demo.watch) {
        let hint = "run it in a terminal; `pipetop demo --list` lists the presets";
        return Err(Hinted::new("--tour needs a screen", hint).into());
    }
    exists(places)?;
    for (place, preset) in PRESETS.iter().enumerate() {
        let config = config(&demo.watch, places)?;
        let mut settings = preset.settings();
        settings.dataset = prepare(&settings, demo.workload.dataset_size)?;
        let (mut running, options) = start(&settings, demo, places, &config)?;
        let caption = format!(
            "{}/{}: {}; see {}",
            place + 1,
            PRESETS.len(),
            preset.shows,
            preset.look_at
        );
        let outcome = app::watch(Setup {
            job: launched(&places.proc_root, running.pid()),
            options,
            board: Arc::default(),
            config,
            wanted: WANTED.to_owned(),
            span: Some(STOP),
            launch: None,
            caption: Some(caption),
        });
        let outcome = outcome.map_err(|error| no_screen(&error))?;
        if let Some(error) = running.failure() {
            return Err(error.into());
        }
        if outcome.left {
            break;
        }
    }
    Ok(print(END)?)
}

/// Creates the image files for the job, unless its load time is set.
pub(super) fn prepare(settings: &JobSettings, size: Option<u64>) -> Result<Dataset, Hinted> {
    if matches!(settings.load, Load::Time(_)) {
        return Ok(Dataset::default());
    }
    let size = size.map_or(dataset::SIZE, Bytes);
    let mut bar = None;
    let made = dataset::prepare(&dataset::root(), size, |done, total| {
        let (done, total) = (u64::from(done), u64::from(total));
        bar.get_or_insert_with(|| ProgressLine::on_stderr("image", done, total))
            .at(done);
    })?;
    if let Some(bar) = bar {
        bar.end();
    }
    Ok(made)
}

/// Returns the list of presets, in lines of 80 columns.
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
