//! `pipetop serve`: checks that the given files exist, then serves.

use std::ffi::OsStr;
use std::process::ExitCode;

use super::target::no_target_error;
use crate::cli::ServeArgs;
use crate::error::{Hinted, write_error};
use crate::options::{PathArgs, WatchArgs};
use crate::serve::{self, ADDRESS, Prepared};
use crate::setup::{config, exists, sampling};
use crate::source::sampler::find;

/// Runs the command.
pub(super) fn run(args: ServeArgs, places: &PathArgs) -> Result<ExitCode, Hinted> {
    let watch = WatchArgs {
        interval: args.interval,
        ..WatchArgs::default()
    };
    let config = config(&watch, places)?;
    exists(places)?;
    let mut web = args.web;
    if web.listen.is_empty() && args.textfile.is_none() {
        web.listen.push(ADDRESS.to_owned());
    }
    // Before the job is looked for: what is wrong with an option is wrong whatever runs.
    let prepared = Prepared::new(web)?;
    let target = args.target.unwrap_or_default();
    if !args.all {
        find(&places.proc_root, &target).map_err(|error| {
            let no_target_error = no_target_error(&error);
            Hinted {
                hint: format!("{}; or watch all with --all", no_target_error.hint),
                ..no_target_error
            }
        })?;
    }
    let file = args.textfile.as_deref();
    if file.is_some_and(|file| file.extension() != Some(OsStr::new("prom"))) {
        write_error("note: the node exporter reads only files whose names end in .prom");
    }
    let options = sampling(places, &config, target);
    serve::run(options, args.all, prepared, args.textfile)?;
    Ok(ExitCode::SUCCESS)
}
