//! What the commands share: the configuration, what the sampler gets, a screen or lines to watch in, the exit code.
//!
//! Knows none of the commands.

mod record;
mod web;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;

use crate::app::{self, Setup};
use crate::config::{Config, Environment, Overrides, ThemeName};
use crate::error::Hinted;
pub(crate) use crate::headless::WINDOW;
use crate::headless::{Observation, observe};
use crate::job::{Candidate, Target};
use crate::launch::Log;
use crate::options::{GpuChoice, Places, Watch};
use crate::source::probe::Listener;
use crate::source::sampler::Options;
use crate::units::printable;
use crate::verdict::Kind;

pub(crate) use record::{finish, with as recorded};
pub(crate) use web::{endpoints, served};

/// The exit code where `--fail-if` matched.
pub(crate) const FAILED_IF: u8 = 3;

/// Writes all of it. A reader that has left is no error.
///
/// # Errors
/// Where it cannot be written.
pub(crate) fn print(out: &mut impl Write, text: &[u8]) -> Result<ExitCode, Hinted> {
    let written = out.write_all(text).and_then(|()| out.flush());
    match written.err().and_then(|error| Hinted::unwritten(&error)) {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The file of the user's that a launched command prints to.
///
/// # Errors
/// Where it cannot be written to.
pub(crate) fn named_log(path: &Path) -> Result<Log, Hinted> {
    Log::named(path).map_err(|error| {
        Hinted::new(
            format!("cannot write to {}: {error}", path.display()),
            "--log needs a file that can be created or appended to",
        )
    })
}

/// What the sampler is to read, without a probe and without a recording.
pub(crate) fn sampling(places: &Places, config: &Config, target: Target) -> Options {
    Options {
        proc_root: places.proc_root.clone(),
        sys_root: places.sys_root.clone(),
        nvml_lib: places.nvml_lib.clone(),
        gpus: config.gpus.clone(),
        interval: config.interval,
        target,
        probe: None,
        recorder: None,
        tee: None,
        lacking: vec![],
    }
}

/// A screen, where there is a terminal for it and nothing else was asked for.
pub(crate) fn has_screen(watch: &Watch) -> bool {
    can_draw() && !watch.once && !watch.json
}

/// Standard output is a terminal on which more can be done than write line after line.
pub(crate) fn can_draw() -> bool {
    std::io::stdout().is_terminal() && Environment::read().can_draw()
}

pub(crate) fn no_screen(error: &anyhow::Error) -> Hinted {
    Hinted::new(
        format!("cannot use this terminal: {error:#}"),
        "`pipetop --once` prints a report without a screen",
    )
}

/// Watches on the screen or in lines, as was asked for.
pub(crate) fn show(
    options: Options,
    job: Option<Candidate>,
    config: Config,
    wanted: String,
    watch: &Watch,
) -> Result<ExitCode, Hinted> {
    let (options, server) = served(recorded(options, watch)?, watch)?;
    let recorder = options.recorder.clone();
    if has_screen(watch) {
        let outcome = app::watch(Setup {
            options,
            job,
            config,
            window: WINDOW,
            wanted,
            span: watch.span,
            launch: None,
            caption: None,
        });
        let outcome = outcome.map_err(|error| no_screen(&error))?;
        let recorded = watch.record.as_ref().filter(|_| recorder.is_some());
        let recorded = recorded.map(|path| format!("recording: {}", path.display()));
        drop(server);
        // A terminal that is gone reads no last words.
        let _ = last_words(outcome.verdict.into_iter().chain(recorded));
        finish(recorder)?;
        return Ok(exit_code(outcome.kind, &watch.fail_if));
    }
    let how = Observation {
        once: watch.once,
        json: watch.json,
        span: watch.span,
        steady: false,
    };
    let kind = observe(options, job, how, &mut std::io::stdout())?;
    finish(recorder)?;
    Ok(exit_code(kind, &watch.fail_if))
}

/// What stays on the terminal when the screen closes.
fn last_words(lines: impl Iterator<Item = String>) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    for line in lines {
        writeln!(out, "{}", printable(&line))?;
    }
    out.flush()
}

/// A place that was named and is not there is a mistake; without a name, it may well be missing.
pub(crate) fn exists(places: &Places) -> Result<(), Hinted> {
    if let Err(error) = places.proc_root.read_dir() {
        return Err(Hinted::new(
            format!("cannot list {}: {error}", places.proc_root.display()),
            "--proc-root must be the mount point of a procfs, such as /proc",
        ));
    }
    let library = places.nvml_lib.as_deref();
    // A name without a directory is looked for by the dynamic loader.
    match library.filter(|path| path.components().count() > 1 && !path.exists()) {
        Some(path) => Err(Hinted::new(
            format!("no NVML library {}", path.display()),
            "omit --nvml-lib to load the driver's libnvidia-ml.so.1",
        )),
        None => Ok(()),
    }
}

pub(crate) fn exit_code(kind: Option<Kind>, fail_if: &[Kind]) -> ExitCode {
    if kind.is_some_and(|kind| fail_if.contains(&kind)) {
        ExitCode::from(FAILED_IF)
    } else {
        ExitCode::SUCCESS
    }
}

/// The user's choices: command line over file over default.
pub(crate) fn config(watch: &Watch, places: &Places) -> Result<Config, Hinted> {
    let theme = watch.theme.as_deref().map(|name| {
        ThemeName::from_str(name, false).map_err(|_| {
            let name = name.escape_debug();
            Hinted::new(
                format!("unknown theme `{name}`"),
                "use dark, light, colour-blind or mono",
            )
        })
    });
    let gpus = watch.gpu.iter().map(|gpu| match gpu {
        GpuChoice::Index(index) => index.to_string(),
        GpuChoice::Uuid(uuid) => uuid.clone(),
    });
    let gpus: Vec<String> = gpus.collect();
    let overrides = Overrides {
        interval: watch.interval,
        ascii: watch.ascii,
        theme: theme.transpose()?,
        gpus: (!gpus.is_empty()).then_some(gpus),
    };
    let path = places.config.as_deref();
    Config::load(path, &overrides, &Environment::read())
        .map_err(|error| Hinted::new(error.to_string(), error.hint()))
}

/// Takes the reports of a job that we start; `hint` says what helps where that cannot be.
pub(crate) fn listen(hint: &str) -> Result<Listener, Hinted> {
    Listener::bind().map_err(|error| {
        let message = format!("cannot open the socket for the job's reports: {error}");
        Hinted::new(message, hint)
    })
}

/// On standard error.
pub(crate) fn complain(error: &Hinted) {
    // Nobody reads it: nothing to do about that.
    let _ = writeln!(std::io::stderr(), "{}", error.lines());
}
