//! The files that a command line names, whatever its command.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// A path with the option or argument that names it.
pub(crate) type NamedFile = (String, PathBuf);

/// Returns the paths on the command line: a new option is among them without being listed anywhere.
pub(super) fn named(program: &Command, matches: &ArgMatches) -> Vec<NamedFile> {
    let (mut command, mut matches) = (program, matches);
    while let Some((name, below)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(name)
    {
        (command, matches) = (found, below);
    }
    let paths = command.get_arguments().filter_map(|arg| {
        let id = arg.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            return None;
        }
        let path = matches.try_get_one::<PathBuf>(id);
        let name = match (arg.get_long(), arg.get_value_names()) {
            (Some(long), _) => format!("--{long}"),
            (None, names) => names?.first()?.to_string(),
        };
        Some((name, path.ok()??.clone()))
    });
    paths.collect()
}
