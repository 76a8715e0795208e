//! The files that a command line names, whatever its command.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::error::Hinted;

/// Options that name a file to write; all others name one to read.
pub(crate) const WRITTEN: [&str; 4] = ["--log", "--log-file", "--record", "--textfile"];

/// A path with the option or argument that names it.
pub(crate) type NamedFile = (String, PathBuf);

/// # Errors
/// Returns an error if a name cannot be that of a file.
pub(super) fn check(files: &[NamedFile]) -> Result<(), Hinted> {
    for (name, path) in files {
        let bytes = path.as_os_str().as_encoded_bytes();
        // Other programs take it for standard input or output, which are used for something else here.
        if bytes == b"-" {
            return Err(Hinted::new(
                format!("{name}: `-` names no file"),
                "if a file has this name, write `./-`",
            ));
        }
        if bytes.ends_with(b"/") && WRITTEN.contains(&name.as_str()) {
            return Err(Hinted::new(
                format!("{name}: `{}` names a folder", path.display()),
                "add the name of a file in it",
            ));
        }
    }
    Ok(())
}

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
