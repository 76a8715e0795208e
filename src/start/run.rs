//! `pipetop run`: launches the user's command, watches the training job it starts, and exits with the command's code.

mod command;
mod headless;
mod printed;
mod screen;
mod summary;

use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::RunArgs;
use crate::error::{Hinted, write_error};
use crate::folders;
use crate::job::{Target, keeps_hook_out};
use crate::launch::{LaunchSpec, LoaderOverrides};
use crate::options::PathArgs;
use crate::sample::Gap;
use crate::setup::{config, exists, has_screen, listen, prepared, recorded, sampling, served};
use crate::source::sampler::Options;
use crate::units::printable;

/// Runs the command.
pub(super) fn run(args: &RunArgs, places: &PathArgs) -> Result<ExitCode, Hinted> {
    let config = config(&args.watch, places)?;
    exists(places)?;
    let (environment, command) = args.words.parts();
    let unhookable = keeps_hook_out(&command).filter(|_| !args.no_hook);
    // With -S there is no hook, because its directory would stay in `sys.path`. With -E and -I, the Pythons that the
    // command starts still load it.
    let hook = !args.no_hook && unhookable != Some('S');
    let probe = hook.then(|| listen("use --no-hook to go without it"));
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
    let served = served(recorded(options, &args.watch)?, prepared(&args.watch)?)?;
    let mut options = served.options;
    // Serves until the end of this function.
    let _server = served.server;
    if let Some(option) = unhookable {
        options.lacking.push(Gap::new(
            "probe",
            format!("Python's option -{option} disables the hook in it"),
            format!("omit -{option} for exact figures"),
        ));
    }
    let code = if has_screen(&args.watch) {
        screen::run(args, spec, options, config)
    } else {
        headless::run(args, spec, options)
    };
    let full = |log: &&Path| folders::room(log) == Some(0);
    if let Some(log) = args.log.as_deref().filter(full) {
        let log = printable(&log.display().to_string());
        write_error(format_args!(
            "warning: no space left on the disk of {log}: the command's output may be cut off, and its writes may have failed"
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
