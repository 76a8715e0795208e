//! Runs a command line: finds the job, picks the way to show it, returns the exit code.

mod check;
mod diff;
mod fleet;
mod replay;
mod run;
mod serve;
mod target;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::{self, Args, Command, NamedFile, Stop, WRITTEN};
use crate::config::{DEFAULT_FILE, usual_path};
use crate::doctor::{self, Facts, Terminal};
use crate::error::{Explain as _, Hinted, write_error};
use crate::folders;
use crate::job::{NoTarget, Target};
use crate::launch::{have_memory, raise_open_files, survive_the_limit_of_file_sizes};
use crate::loaders::user_file;
use crate::logging;
use crate::options::PathArgs;
use crate::record::rotated;
use crate::serve::files_of_web_config;
use crate::setup::{can_record, config, exists, has_screen, prepared, print, sampling, show};
use crate::source::clock::Clock;
use crate::source::nvml;
use crate::source::sampler::find;
use target::no_target_error;

/// Recording rules and alerts for Prometheus.
const RULES: &str = include_str!("../contrib/pipetop.rules.yml");
/// Dashboard for Grafana.
const DASHBOARD: &str = include_str!("../contrib/pipetop.dashboard.json");

fn no_output() -> ExitCode {
    let hint = "redirect it to a file; `>/dev/null` discards what is printed";
    print_error(&Hinted::new("standard output is closed", hint), 1)
}

/// Parses, runs, and turns the outcome into an exit code.
pub(crate) fn main(stdout_is_closed: bool) -> ExitCode {
    let args = match cli::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(Stop::Show(_)) if stdout_is_closed => return no_output(),
        Err(Stop::Show(text)) => {
            let printed = print(text);
            return printed.unwrap_or_else(|error| print_error(&error, 1));
        }
        Err(Stop::Usage(error)) => return print_error(&error, 2),
    };
    let hidden = args.command.as_ref().is_some_and(Command::is_hidden);
    if stdout_is_closed && !hidden {
        return no_output();
    }
    let code = run(args).unwrap_or_else(|error| print_error(&error, 1));
    if let Some(incomplete) = logging::failure() {
        write_error(incomplete.note());
    }
    code
}

/// Prints an error and returns its exit code.
fn print_error(error: &Hinted, code: u8) -> ExitCode {
    tracing::error!(hint = error.hint, "{}", error.message);
    write_error(error.lines());
    ExitCode::from(code)
}

/// Runs the command.
///
/// # Errors
/// Returns an error with one line and a hint, for exit code 1.
fn run(args: Args) -> Result<ExitCode, Hinted> {
    writes_each_file_once(&args)?;
    survive_the_limit_of_file_sizes();
    if let Some(path) = &args.log_file {
        logging::start(path, std::env::var(logging::VARIABLE).ok().as_deref())?;
    }
    if !args.command.as_ref().is_some_and(Command::is_hidden) {
        have_memory().map_err(|_| {
            Hinted::new(
                "not enough memory to start",
                "raise the limit of address space (`ulimit -v`), or free memory",
            )
        })?;
        raise_open_files();
    }
    match args.command {
        None => watch(args),
        Some(Command::Run(command)) => run::run(&command, &args.places),
        #[cfg(feature = "lab")]
        Some(Command::Lab(command)) => crate::lab::commands::run(&command, &args.places),
        Some(Command::BuiltinSupervisor { control }) => run::supervise(control),
        Some(Command::Completions { shell }) => print(cli::completions(shell)),
        Some(Command::Man) => {
            let page =
                cli::manual().explain("cannot write the man page", "this is a bug in pipetop")?;
            print(&page)
        }
        Some(Command::Doctor { json }) => print(examine(&args.places, json)),
        Some(Command::Replay(command)) => replay::run(&command, &args.places),
        Some(Command::Diff(command)) => diff::run(&command),
        Some(Command::Serve(command)) => serve::run(command, &args.places),
        Some(Command::Fleet(command)) => fleet::run(command, &args.places),
        Some(Command::Config { check: Some(file) }) => {
            check::configuration(file.as_deref(), &args.places)
        }
        Some(Command::Rules) => print(RULES),
        Some(Command::Dashboards) => print(DASHBOARD),
        Some(Command::Config { check: None }) => print(DEFAULT_FILE),
    }
}

/// Returns an error if a file to write is named twice, or is also read.
fn writes_each_file_once(args: &Args) -> Result<(), Hinted> {
    let usual = [
        ("the usual configuration", usual_path()),
        ("the user's loaders.toml", user_file()),
    ];
    let usual = usual
        .into_iter()
        .filter_map(|(name, path)| Some((name.to_owned(), identity(&path?)?)));
    let named = args.files.iter().cloned();
    let named = named.chain(args.files.iter().flat_map(files_beside));
    let named = named.filter_map(|(name, path)| Some((name, identity(&path)?)));
    let files: Vec<_> = named.chain(usual).collect();
    let clash = WRITTEN.iter().find_map(|written| {
        let (_, file) = files.iter().find(|(name, _)| name == written)?;
        let is_same = |(name, other): &&(String, FileIdentity)| name != written && other == file;
        Some((written, &files.iter().find(is_same)?.0))
    });
    match clash {
        Some((written, other)) => Err(Hinted::new(
            format!("{written} and {other} name the same file"),
            "use one file for each",
        )),
        None => Ok(()),
    }
}

/// Returns the files that are used along with a named one, without being named on the command line.
fn files_beside((name, path): &NamedFile) -> Vec<NamedFile> {
    match name.as_str() {
        "--record" | "FILE" | "BEFORE" | "AFTER" => {
            vec![(format!("the rotated part of {name}"), rotated(path))]
        }
        "--web.config.file" => {
            let files = files_of_web_config(path).into_iter();
            let files = files.map(|(field, path)| (format!("the {field} of {name}"), path));
            files.collect()
        }
        _ => vec![],
    }
}

/// Device and inode of a file; before it exists, those of its folder, and its name.
type FileIdentity = (u64, u64, Option<OsString>);

/// Returns what tells a file from all others. `None` if its folder does not exist.
fn identity(path: &Path) -> Option<FileIdentity> {
    let inode = |path: &Path| path.metadata().map(|data| (data.dev(), data.ino())).ok();
    if let Some((device, inode)) = inode(path) {
        return Some((device, inode, None));
    }
    let (device, folder) = inode(folders::of_file(path))?;
    Some((device, folder, path.file_name().map(OsString::from)))
}

fn examine(places: &PathArgs, json: bool) -> String {
    let library = places.nvml_lib.clone();
    let at = Clock::start().now();
    let gpus = move || {
        let gpus = nvml::open(library.as_deref())?;
        Ok(gpus.into_iter().map(|mut gpu| gpu.read(at)).collect())
    };
    let (proc_root, sys_root) = (&places.proc_root, &places.sys_root);
    let facts = Facts::read(proc_root, sys_root, Terminal::current(), gpus);
    let checks = doctor::checks(&facts);
    if json {
        format!("{:#}\n", doctor::json(&checks))
    } else {
        doctor::text(&checks)
    }
}

fn watch(args: Args) -> Result<ExitCode, Hinted> {
    let config = config(&args.watch, &args.places)?;
    let target = args.target.unwrap_or_default();
    exists(&args.places)?;
    can_record(&args.watch)?;
    let web = prepared(&args.watch)?;
    let screen = has_screen(&args.watch);
    let job = match find(&args.places.proc_root, &target) {
        Ok(job) => job,
        // With a screen the user can choose a job there.
        Err(NoTarget::Several(_)) if screen => None,
        Err(error) => return Err(no_target_error(&error)),
    };
    if job.is_none() && args.watch.once {
        return Err(Hinted::new(
            "no training job is running",
            if cfg!(feature = "lab") {
                "start a demo job with `pipetop demo`, or name a process: `pipetop PID`"
            } else {
                "start yours with `pipetop run -- COMMAND`, or name a process: `pipetop PID`"
            },
        ));
    }
    let wanted = match &target {
        Target::Any => "a Python process with PyTorch and loader workers".to_owned(),
        Target::Word(word) => format!("a training process with `{word}` in its command line"),
        Target::Pid(pid) | Target::Launched(pid) | Target::Below(pid) => format!("process {pid}"),
    };
    let options = sampling(&args.places, &config, target);
    show(options, job, config, wanted, web, &args.watch)
}
