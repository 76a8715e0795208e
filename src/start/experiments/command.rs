//! `pipetop sweep` and `pipetop headspace` on the user's own command.

use std::io::Write;
use std::process::ExitCode;

use super::{note, page_of, quick};
use crate::cli::{self, Own, Places, Words};
use crate::config::Config;
use crate::error::Hinted;
use crate::experiment::command::{Command, Failure};
use crate::experiment::headspace;
use crate::experiment::sweep::Sweep;
use crate::experiment::sweep::command::{Bound, Tried, run};
use crate::launch::Interrupt;
use crate::start::print;
use crate::start::run::complain;
use crate::workload::cpus_allowed;

pub(super) fn headspace(
    asked: &cli::Headspace,
    words: &Words,
    places: &Places,
    config: &Config,
) -> Result<ExitCode, Hinted> {
    let command = command(&asked.own, words)?;
    let options = quick(places, config);
    let found = headspace::command::launched(&command, asked.plan(), &options, note);
    note("");
    let found = match found {
        Ok(found) => found,
        Err(failure) => return Ok(failed(&failure)),
    };
    let page = if asked.json {
        format!("{:#}\n", headspace::command::json(&found))
    } else {
        headspace::command::text(&found)
    };
    print(&mut std::io::stdout(), page.as_bytes())
}

pub(super) fn sweep(
    asked: &cli::Sweep,
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
    let run = |tried: Tried, what: &str| {
        run(&command, tried, bound, &options, |doing| {
            note(&format!("{what}: {doing}"));
        })
    };
    let found = all(asked, run);
    note("");
    match found {
        Ok(found) => print(
            &mut std::io::stdout(),
            page_of(asked, &found, config).as_bytes(),
        ),
        Err(failure) => Ok(failed(&failure)),
    }
}

/// The workers first, then what else was asked for with as many of them as are enough.
fn all(
    asked: &cli::Sweep,
    mut run: impl FnMut(Tried, &str) -> Result<crate::experiment::sweep::Row, Failure>,
) -> Result<Sweep, Failure> {
    let mut found = Sweep {
        rows: vec![],
        prefetch: vec![],
        memory: vec![],
        cpus_allowed: cpus_allowed(),
    };
    for workers in &asked.counts {
        let tried = Tried {
            workers: *workers,
            prefetch_factor: None,
            pin_memory: None,
        };
        found.rows.push(run(tried, &format!("{workers} workers"))?);
    }
    let Some(workers) = found.knee() else {
        return Ok(found);
    };
    for factor in &asked.prefetch_factors {
        let tried = Tried {
            workers,
            prefetch_factor: Some(*factor),
            pin_memory: None,
        };
        let what = format!("{workers} workers, prefetch factor {factor}");
        found.prefetch.push(run(tried, &what)?);
    }
    let both = asked.compares_memory().then_some([false, true]);
    for pinned in both.into_iter().flatten() {
        let tried = Tried {
            workers,
            prefetch_factor: None,
            pin_memory: Some(pinned),
        };
        let what = if pinned { "pinned" } else { "pageable" };
        found
            .memory
            .push(run(tried, &format!("{workers} workers, {what} memory"))?);
    }
    Ok(found)
}

fn command(own: &Own, words: &Words) -> Result<Command, Hinted> {
    let (environment, words) = words.parts();
    let interrupt = Interrupt::listen().map_err(|error| {
        Hinted::new(
            format!("cannot listen to signals: {error}"),
            "this is a fault of pipetop",
        )
    })?;
    Ok(Command {
        words,
        environment,
        log: own.log.clone(),
        patience: own.patience,
        interrupt,
    })
}

/// Says why there is no figure, after the last words of the command; gives the exit code.
fn failed(failure: &Failure) -> ExitCode {
    match failure {
        Failure::Launch(error) => {
            complain(&Hinted::new(error.to_string(), error.hint()));
            ExitCode::from(error.code())
        }
        Failure::Refused { error, said } => {
            for line in said {
                // Nobody reads it: nothing to do about that.
                let _ = writeln!(std::io::stderr(), "  {line}");
            }
            complain(error);
            ExitCode::FAILURE
        }
        Failure::Interrupted(signal) => {
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
        }
    }
}
