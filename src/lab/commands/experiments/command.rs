//! `pipetop sweep` and `pipetop headspace` on the user's own command.

use std::io::Write;
use std::process::ExitCode;

use super::common::{note, page_of, quick};
use super::meanwhile::Meanwhile;
use crate::config::Config;
use crate::error::Hinted;
use crate::lab::cli::{self, CommandArgs};
use crate::lab::experiments::command::{TrainingCommand, TrialError};
use crate::lab::experiments::headspace;
use crate::lab::experiments::sweep::Sweep;
use crate::lab::experiments::sweep::command::{Bound, run};
use crate::launch::Interrupt;
use crate::options::{Places, Words};
use crate::setup::{complain, print};

pub(super) fn headspace(
    asked: &cli::HeadspaceArgs,
    words: &Words,
    places: &Places,
    config: &Config,
) -> Result<ExitCode, Hinted> {
    let command = command(&asked.own, words)?;
    let options = quick(places, config);
    let meanwhile = Meanwhile::begin(places);
    let found = headspace::command::launched(&command, asked.plan(), &options, note);
    note("");
    let found = match found {
        Ok(found) => found,
        Err(failure) => return Ok(failed(&failure)),
    };
    meanwhile.warn();
    let page = if asked.json {
        format!("{:#}\n", headspace::command::json(&found))
    } else {
        headspace::command::text(&found)
    };
    print(&mut std::io::stdout(), page.as_bytes())
}

pub(super) fn sweep(
    asked: &cli::SweepArgs,
    words: &Words,
    places: &Places,
    config: &Config,
) -> Result<ExitCode, Hinted> {
    let command = command(&asked.own, words)?;
    let options = quick(places, config);
    let bound = Bound {
        span: asked.span,
        steps: asked.steps,
    };
    let memory = asked.compares_memory();
    let found = Sweep::of(&asked.counts, &asked.prefetch_factors, memory, |tried| {
        let told = |doing: &str| note(&format!("{tried}: {doing}"));
        run(&command, tried, bound, &options, told)
    });
    note("");
    match found {
        Ok(found) => print(
            &mut std::io::stdout(),
            page_of(asked, &found, config).as_bytes(),
        ),
        Err(failure) => Ok(failed(&failure)),
    }
}

fn command(own: &CommandArgs, words: &Words) -> Result<TrainingCommand, Hinted> {
    let (environment, words) = words.parts();
    let interrupt = Interrupt::listen().map_err(|error| {
        Hinted::new(
            format!("cannot set up signal handling: {error}"),
            "this is a bug in pipetop",
        )
    })?;
    Ok(TrainingCommand {
        words,
        environment,
        log: own.log.clone(),
        patience: own.patience,
        interrupt,
    })
}

/// Says why there is no figure, after the last words of the command; gives the exit code.
fn failed(failure: &TrialError) -> ExitCode {
    match failure {
        TrialError::Launch(error) => {
            complain(&Hinted::new(error.to_string(), error.hint()));
            ExitCode::from(error.code())
        }
        TrialError::Refused { error, said } => {
            for line in said {
                // Nobody reads it: nothing to do about that.
                let _ = writeln!(std::io::stderr(), "  {line}");
            }
            complain(error);
            ExitCode::FAILURE
        }
        TrialError::Interrupted(signal) => {
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
        }
    }
}
