//! `pipetop run`: launches the user's command, watches what trains below it, and ends as the command does.

mod command;
mod headless;
mod printed;
mod screen;
mod summary;

use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::Run;
use crate::error::Hinted;
use crate::job::{Target, leaves_site_out};
use crate::launch::{LaunchSpec, LoaderOverrides};
use crate::options::Places;
use crate::sample::Gap;
use crate::setup::{config, exists, has_screen, listen, recorded, sampling, served};
use crate::source::sampler::Options;

/// Runs the command.
pub(super) fn run(args: &Run, places: &Places) -> Result<ExitCode, Hinted> {
    let config = config(&args.watch, places)?;
    exists(places)?;
    let (environment, command) = args.words.parts();
    // A Python that would not load the hook would keep its directory in `sys.path`.
    let unhookable = leaves_site_out(&command);
    let probe = (!args.no_hook && !unhookable).then(|| listen("use --no-hook to go without it"));
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
    // To the end of what is watched.
    let (mut options, _server) = served(recorded(options, &args.watch)?, &args.watch)?;
    if unhookable && !args.no_hook {
        options.lacking.push(Gap {
            source: "probe".into(),
            reason: "Python's option -S keeps the hook out".into(),
            hint: "omit -S for exact figures; they are estimates with it".into(),
        });
    }
    if has_screen(&args.watch) {
        screen::run(args, spec, options, config)
    } else {
        headless::run(args, spec, options)
    }
}

/// The process that owns the command.
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
    // SAFETY: it is open, and nobody else in this process knows of it.
    crate::launch::supervise(unsafe { OwnedFd::from_raw_fd(control) });
    Ok(ExitCode::SUCCESS)
}
