//! `pipetop serve`: checks that what was named is there, then serves.

use std::process::ExitCode;

use super::target::{meant, refused};
use crate::cli::Serve;
use crate::error::Hinted;
use crate::options::{Places, Watch};
use crate::serve::{ADDRESS, Exporter};
use crate::setup::{config, endpoints, exists, sampling};
use crate::source::sampler::find;

/// Runs the command.
pub(super) fn run(args: Serve, places: &Places) -> Result<ExitCode, Hinted> {
    let watch = Watch {
        interval: args.interval,
        ..Watch::default()
    };
    let config = config(&watch, places)?;
    exists(places)?;
    let target = meant(args.target);
    if !args.all {
        find(&places.proc_root, &target).map_err(|error| {
            let refused = refused(&error);
            Hinted {
                hint: format!("{}; or watch all with --all", refused.hint),
                ..refused
            }
        })?;
    }
    let mut endpoints = endpoints(args.web);
    if endpoints.listen.is_empty() && args.textfile.is_none() {
        endpoints.listen.push(ADDRESS.to_owned());
    }
    let exporter = Exporter {
        options: sampling(places, &config, target),
        all: args.all,
        endpoints,
        textfile: args.textfile,
    };
    exporter.run()?;
    Ok(ExitCode::SUCCESS)
}
