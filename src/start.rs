//! From what was typed to what runs: finds the job, picks the way to show it, gives the exit code.

mod check;
mod demo;
mod experiments;
mod record;
mod replay;
mod run;
mod simulate;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;

use crate::app::{self, Setup};
use crate::cli::{self, Args, Command, GpuChoice, Places, Watch};
use crate::config::{Config, DEFAULT_FILE, Environment, Overrides, ThemeName};
use crate::doctor::{self, Terminal};
use crate::error::Hinted;
use crate::job::{Candidate, NoTarget, Target};
use crate::observe::{Observation, WINDOW, observe};
use crate::source::clock::Clock;
use crate::source::nvml;
use crate::source::sampler::{Options, find};
use crate::verdict::Kind;

/// The exit code where `--fail-if` matched.
const FAILED_IF: u8 = 3;

/// Does what was asked for.
///
/// # Errors
/// One line and a hint, for exit code 1.
pub fn run(args: Args) -> Result<ExitCode, Hinted> {
    let mut out = std::io::stdout();
    match args.command {
        None => watch(args),
        Some(Command::Run(asked)) => run::run(&asked, &args.places),
        Some(Command::Demo(demo)) => demo::run(&demo, &args.places),
        Some(Command::Sweep(sweep)) => experiments::sweep(&sweep, &args.places),
        Some(Command::Headspace(headspace)) => experiments::headspace(&headspace, &args.places),
        Some(Command::BuiltinTrainer(inner)) => demo::trainer(&inner),
        Some(Command::BuiltinWorker(inner)) => demo::worker(&inner),
        Some(Command::BuiltinGuard { control }) => run::guard(control),
        Some(Command::Completions { shell }) => print(&mut out, &cli::completions(shell)),
        Some(Command::Man) => {
            let page = cli::manual().map_err(|error| {
                Hinted::new(
                    format!("cannot write the page: {error}"),
                    "this is a fault of pipetop",
                )
            })?;
            print(&mut out, &page)
        }
        Some(Command::Doctor { json }) => {
            let report = examine(&args.places, json);
            print(&mut out, report.as_bytes())
        }
        Some(Command::Replay(asked)) => replay::run(&asked, &args.places),
        Some(Command::Simulate(asked)) => simulate::run(&asked, &args.places),
        Some(Command::Config { check: Some(file) }) => {
            check::configuration(file.as_deref(), &args.places)
        }
        Some(Command::Config { check: None }) => print(&mut out, DEFAULT_FILE.as_bytes()),
    }
}

fn print(out: &mut impl Write, text: &[u8]) -> Result<ExitCode, Hinted> {
    match out.write_all(text) {
        // `| head` has what it wanted.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Hinted::new(
            format!("cannot write to standard output: {error}"),
            "check where it is redirected to",
        )),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn examine(places: &Places, json: bool) -> String {
    let library = places.nvml_lib.clone();
    let at = Clock::start().now();
    let gpus = move || {
        let gpus = nvml::open(library.as_deref())?;
        Ok(gpus.into_iter().map(|mut gpu| gpu.read(at)).collect())
    };
    let checks = doctor::examine(
        &places.proc_root,
        &places.sys_root,
        Terminal::current(),
        gpus,
    );
    if json {
        format!("{:#}\n", doctor::json(&checks))
    } else {
        doctor::text(&checks)
    }
}

fn watch(args: Args) -> Result<ExitCode, Hinted> {
    let config = config(&args.watch, &args.places)?;
    let target = match args.target {
        None => Target::Any,
        Some(cli::Target::Pid(pid)) => Target::Pid(pid),
        Some(cli::Target::Word(word)) => Target::Word(word),
    };
    exists(&args.places)?;
    let screen = has_screen(&args.watch);
    let job = match find(&args.places.proc_root, &target) {
        Ok(job) => job,
        // On a terminal there is a screen to choose from.
        Err(NoTarget::Several(_)) if screen => None,
        Err(error) => return Err(refused(&error)),
    };
    if job.is_none() && args.watch.once {
        return Err(Hinted::new(
            "no training job is running here",
            "`pipetop demo` starts one to look at; `pipetop PID` names a process",
        ));
    }
    let wanted = match &target {
        Target::Any => "a Python process that has loaded PyTorch and has loader workers".to_owned(),
        Target::Word(word) => format!("a training process with `{word}` in its command line"),
        Target::Pid(pid) | Target::Launched(pid) | Target::Below(pid) => format!("process {pid}"),
    };
    let options = options(&args.places, &config, target);
    show(options, job, config, wanted, &args.watch)
}

fn options(places: &Places, config: &Config, target: Target) -> Options {
    Options {
        proc_root: places.proc_root.clone(),
        sys_root: places.sys_root.clone(),
        nvml_lib: places.nvml_lib.clone(),
        gpus: config.gpus.clone(),
        interval: config.interval,
        target,
        probe: None,
        recorder: None,
        lacking: vec![],
    }
}

/// A screen, where there is a terminal for it and nothing else was asked for.
fn has_screen(watch: &Watch) -> bool {
    can_draw() && !watch.once && !watch.json
}

/// Standard output is a terminal on which more can be done than write line after line.
fn can_draw() -> bool {
    std::io::stdout().is_terminal() && Environment::read().can_draw()
}

fn no_screen(error: &anyhow::Error) -> Hinted {
    Hinted::new(
        format!("cannot use this terminal: {error:#}"),
        "pipetop --once prints a report without a screen",
    )
}

/// Watches on the screen or in lines, as was asked for.
fn show(
    options: Options,
    job: Option<Candidate>,
    config: Config,
    wanted: String,
    watch: &Watch,
) -> Result<ExitCode, Hinted> {
    let options = record::with(options, watch)?;
    if has_screen(watch) {
        let outcome = app::watch(Setup {
            options,
            job,
            config,
            window: WINDOW,
            wanted,
            span: watch.span,
            launch: None,
        });
        let outcome = outcome.map_err(|error| no_screen(&error))?;
        return Ok(exit_code(outcome.kind, &watch.fail_if));
    }
    let how = Observation {
        once: watch.once,
        json: watch.json,
        span: watch.span,
        steady: false,
    };
    let kind = observe(options, job, how, &mut std::io::stdout())?;
    Ok(exit_code(kind, &watch.fail_if))
}

/// A place that was named and is not there is a mistake; without a name, it may well be missing.
fn exists(places: &Places) -> Result<(), Hinted> {
    if let Err(error) = places.proc_root.read_dir() {
        return Err(Hinted::new(
            format!("cannot list {}: {error}", places.proc_root.display()),
            "--proc-root names the directory where a procfs is mounted, as /proc",
        ));
    }
    let library = places.nvml_lib.as_deref();
    // A name without a directory is looked for by the dynamic loader.
    match library.filter(|path| path.components().count() > 1 && !path.exists()) {
        Some(path) => Err(Hinted::new(
            format!("no NVML library {}", path.display()),
            "leave --nvml-lib out to load the driver's own libnvidia-ml.so.1",
        )),
        None => Ok(()),
    }
}

fn exit_code(kind: Option<Kind>, fail_if: &[Kind]) -> ExitCode {
    if kind.is_some_and(|kind| fail_if.contains(&kind)) {
        ExitCode::from(FAILED_IF)
    } else {
        ExitCode::SUCCESS
    }
}

/// The user's choices: command line over file over default.
fn config(watch: &Watch, places: &Places) -> Result<Config, Hinted> {
    let theme = watch.theme.as_deref().map(|name| {
        ThemeName::from_str(name, false).map_err(|_| {
            let name = name.escape_debug();
            Hinted::new(
                format!("no theme `{name}`"),
                "choose dark, light, colour-blind or mono",
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

fn refused(error: &NoTarget) -> Hinted {
    let jobs = match error {
        NoTarget::Several(jobs) => &jobs[..],
        _ => &[],
    };
    Hinted::new(error.to_string(), error.hint()).choices(jobs.iter().map(listed))
}

fn listed(job: &Candidate) -> String {
    let pid = job
        .ranks
        .first()
        .map_or_else(String::new, |rank| rank.pid.to_string());
    let ranks = counted(job.ranks.len(), "rank");
    let workers = counted(job.workers, "worker");
    format!("{pid:>8}  {ranks:>8}  {workers:>11}  {}", job.command)
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
