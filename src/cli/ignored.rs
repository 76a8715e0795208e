//! Options of all commands that have no effect on some: these refuse them, and their help does not list them.

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, Error};

use super::files::NamedFile;

fn ignores(command: &str, option: &str) -> bool {
    let ignored: &[&str] = match command {
        "doctor" => &["--config"],
        "replay" | "fleet" | "simulate" | "config" => &["--proc-root", "--sys-root", "--nvml-lib"],
        "diff" | "rules" | "dashboards" | "completions" | "man" => {
            &["--config", "--proc-root", "--sys-root", "--nvml-lib"]
        }
        _ => &[],
    };
    ignored.contains(&option)
}

/// Gives each command the options of all, and hides those that it ignores.
pub(super) fn built(mut program: Command) -> Command {
    program.build();
    program.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|arg| {
            let long = arg.get_long().unwrap_or_default();
            let hidden = arg.is_hide_set() || ignores(&name, &format!("--{long}"));
            arg.hide(hidden)
        })
    })
}

/// # Errors
/// Returns an error if one of the files on the command line is named by an option that the command ignores.
pub(super) fn check(
    program: &mut Command,
    matches: &ArgMatches,
    files: &[NamedFile],
) -> Result<(), Error> {
    let Some(command) = matches.subcommand_name() else {
        return Ok(());
    };
    let Some((option, _)) = files.iter().find(|(option, _)| ignores(command, option)) else {
        return Ok(());
    };
    let message = format!("{option} cannot be used with `{command}`");
    let tip = format!("omit it: `pipetop {command}` does not use it");
    Err(program.error(
        ErrorKind::ArgumentConflict,
        format!("{message}\n\ntip: {tip}"),
    ))
}
