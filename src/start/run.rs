//! `pipetop run`: launches the user's command, watches the training job it starts, and exits with the command's code.

mod command;
mod headless;
mod printed;
mod screen;
mod summary;

use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::RunArgs;
use crate::error::Hinted;
use crate::job::{Target, keeps_hook_out};
use crate::launch::{LaunchSpec, LoaderOverrides, is_disk_full};
use crate::options::PathArgs;
use crate::sample::Gap;
use crate::setup::{config, exists, has_screen, listen, print_error, recorded, sampling, served};
use crate::source::sampler::Options;
use crate::units::printable;

/// Runs the command.
pub(super) fn run(args: &RunArgs, places: &PathArgs) -> Result<ExitCode, Hinted> {
    let config = config(&args.watch, places)?;
    exists(places)?;
    if let (Some(log), Some(recording)) = (&args.log, &args.watch.record)
        && std::path::absolute(log).ok() == std::path::absolute(recording).ok()
    {
        return Err(Hinted::new(
            "--log and --record name the same file",
            "give each a file of its own",
        ));
    }
    let (environment, command) = args.words.parts();
    // A Python that does not load the hook would keep the hook's directory in `sys.path`.
    let unhookable = keeps_hook_out(&command).filter(|_| !args.no_hook);
    let probe =
        (!args.no_hook && unhookable.is_none()).then(|| listen("use --no-hook to go without it"));
    let probe = probe.transpose()?;
    let spec = LaunchSpec {
        command,
        environment,
        probe: probe.as_ref().map(|probe| probe.address().to_owned()),
        overrides: LoaderOverrides::default(),
    };
    let options = Options {
        probe: probe.map(Arc::new),
        ..sampling(places, &config, Target::Any)
    };
    let served = served(recorded(options, &args.watch)?, &args.watch)?;
    let mut options = served.options;
    // Serves until the end of this function.
    let _server = served.server;
    if let Some(option) = unhookable {
        options.lacking.push(Gap::new(
            "probe",
            format!("Python's option -{option} keeps the hook out"),
            format!("omit -{option} for exact figures; they are estimates with it"),
        ));
    }
    let code = if has_screen(&args.watch) {
        screen::run(args, spec, options, config)
    } else {
        headless::run(args, spec, options)
    };
    if let Some(log) = args.log.as_deref().filter(|log| is_disk_full(log)) {
        print_error(&Hinted::new(
            format!(
                "no space left on the disk of {}",
                printable(&log.display().to_string())
            ),
            "the command's output ends there, and what it prints may have failed; use another --log",
        ));
    }
    code
}

/// Runs the supervisor, the process that owns the command.
#[expect(
    unsafe_code,
    reason = "takes over the descriptor that it was started with"
)]
pub(super) fn supervise(control: i32) -> Result<ExitCode, Hinted> {
    let open = std::path::Path::new(&format!("/proc/self/fd/{control}")).exists();
    if control <= 2 || !open {
        return Err(Hinted::new(
            "this command is internal to pipetop",
            "use `pipetop run -- COMMAND`",
        ));
    }
    // SAFETY: it is open, and nothing else in this process owns it.
    crate::launch::supervise(unsafe { OwnedFd::from_raw_fd(control) });
    Ok(ExitCode::SUCCESS)
}
