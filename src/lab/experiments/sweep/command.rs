//! One run of a sweep. Of the user's own command the hook sets what its loaders have, or its command line says it.

use std::time::Duration;

use super::{SweepRow, Tried, WatchedWorkers, figures};
use crate::error::Hinted;
use crate::lab::experiments::command::{TrainerReports, TrainingCommand, Trial, TrialError};
use crate::lab::experiments::{steady, taken};
use crate::launch::LoaderOverrides;
use crate::probe::Step;
use crate::source::sampler::Options;

/// Where loading is slow, a run goes on until so many steps of its steady state were seen,
const FEWEST_STEPS: usize = 10;
/// but no longer than so many times what was asked for.
const LONGER: u32 = 4;

/// When a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// So long after its start-up.
    pub span: Duration,
    /// Or after so many steps of its steady state, if that is sooner.
    pub steps: Option<u64>,
}

/// Runs the command with these settings; `report` is called with what is being done.
///
/// # Errors
/// Where it cannot be run, or ends too early.
pub fn run(
    command: &TrainingCommand,
    tried: Tried,
    bound: Bound,
    options: &Options,
    mut report: impl FnMut(&str),
) -> Result<SweepRow, TrialError> {
    report("waiting for the first step");
    let tried = command.builtin.as_ref().map_or(tried, |settings| Tried {
        prefetch_factor: tried.prefetch_factor.or(Some(settings.prefetch_factor)),
        pin_memory: tried.pin_memory.or(Some(settings.pin_memory)),
        ..tried
    });
    let replaced = command.with_workers(tried.workers);
    let overrides = LoaderOverrides {
        workers: replaced.is_none().then_some(tried.workers),
        prefetch: tried.prefetch_factor,
        pin: tried.pin_memory,
        cache: None,
    };
    let mut trial = Trial::start(replaced.as_ref().unwrap_or(command), overrides, options)?;
    let too_few = |made| too_few(made, bound);
    let steady = |heard: &TrainerReports| steady(&heard.steps, heard.capacity()).to_vec();
    let mut trainer = None;
    trial.listen(
        |pid, heard| {
            report(&format!("starting, step {}", heard.made()));
            trainer = Some(pid);
            Ok(!steady(heard).is_empty())
        },
        too_few,
    )?;
    let watched = trainer.map(|pid| WatchedWorkers::start(options, pid));
    trial.listen(
        |pid, heard| {
            if trainer != Some(pid) {
                trainer = None;
            }
            let steps = steady(heard);
            report(&format!("steady state, step {}", steps.len()));
            let enough = bound.steps.is_some_and(|most| steps.len() as u64 >= most);
            let few = steps.len() < FEWEST_STEPS;
            let span = if few { LONGER * bound.span } else { bound.span };
            Ok(enough || taken(&steps) >= span)
        },
        too_few,
    )?;
    let heard = trial.heard();
    // Of another process than it began with there is nothing to be seen.
    let watched = watched.filter(|_| trainer.is_some());
    let figures = figures(whole_turns(&steady(&heard), tried.workers));
    let seen = watched.map(|watched| watched.end(tried.workers));
    drop(trial);
    Ok(SweepRow {
        not_set: match command.builtin {
            Some(_) => None,
            None => not_set(tried, replaced.is_some(), &heard),
        },
        ..SweepRow::new(tried, heard.steps.first(), figures, seen.as_ref())
    })
}

/// Without the last turn of the workers where it is not whole: their batches may come all at once.
fn whole_turns(steps: &[Step], workers: u32) -> &[Step] {
    let turn = workers.max(1) as usize;
    let whole = steps.len() / turn * turn;
    if whole > 0 { &steps[..whole] } else { steps }
}

/// What is not as it was meant to be.
fn not_set(tried: Tried, by_words: bool, heard: &TrainerReports) -> Option<String> {
    let Tried {
        workers,
        prefetch_factor,
        pin_memory,
    } = tried;
    let other = heard.workers.last().copied();
    match other {
        // A loop over anything else says nothing of it, and the command line does.
        None if !by_words => return Some("the loader reports no num_workers".to_owned()),
        Some(other) if !heard.workers.contains(&workers) => {
            return Some(format!("num_workers was {other}"));
        }
        _ => {}
    }
    if let Some(factor) = prefetch_factor {
        let capacity = workers.saturating_mul(factor);
        match heard.capacities.last() {
            None => return Some("the loader reports no prefetch_factor".to_owned()),
            Some(other) if !heard.capacities.contains(&capacity) => {
                let other = other / workers.max(1);
                return Some(format!("prefetch_factor was {other}"));
            }
            Some(_) => {}
        }
    }
    match pin_memory.filter(|pin| !heard.pins.contains(pin)) {
        None => None,
        Some(true) => Some("memory was pageable: PyTorch pins memory only with a GPU".to_owned()),
        Some(false) => Some("memory was pinned".to_owned()),
    }
}

fn too_few(made: u64, bound: Bound) -> Hinted {
    let span = humantime::format_duration(bound.span);
    Hinted::new(
        format!("the command ended after {made} steps, before {span} of steady state"),
        "train for longer, or measure less: --for 1s, or --steps 20",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIED: Tried = Tried {
        workers: 4,
        prefetch_factor: None,
        pin_memory: None,
    };

    fn heard(workers: &[u32], capacities: &[u32], pins: &[bool]) -> TrainerReports {
        TrainerReports {
            workers: workers.iter().copied().collect(),
            capacities: capacities.iter().copied().collect(),
            pins: pins.iter().copied().collect(),
            ..TrainerReports::default()
        }
    }

    #[test]
    fn what_did_not_take_effect_is_told() {
        let report =
            |tried, heard: &TrainerReports| not_set(tried, false, heard).unwrap_or_default();
        let set = heard(&[4], &[8], &[false]);
        assert_eq!(report(TRIED, &set), "");
        // One with which it checks its model has none.
        assert_eq!(report(TRIED, &heard(&[0, 4], &[8], &[])), "");
        assert_eq!(report(TRIED, &heard(&[2], &[4], &[])), "num_workers was 2");
        let silent = TrainerReports::default();
        assert!(report(TRIED, &silent).contains("no num_workers"));
        assert_eq!(not_set(TRIED, true, &silent), None);
        let ahead = Tried {
            prefetch_factor: Some(2),
            ..TRIED
        };
        assert_eq!(report(ahead, &set), "");
        assert_eq!(
            report(ahead, &heard(&[4], &[16], &[])),
            "prefetch_factor was 4"
        );
        let pinned = Tried {
            pin_memory: Some(true),
            ..TRIED
        };
        assert!(report(pinned, &set).contains("only with a GPU"));
        let pageable = Tried {
            pin_memory: Some(false),
            ..TRIED
        };
        assert_eq!(report(pageable, &set), "");
    }

    #[test]
    fn a_turn_that_is_not_whole_is_left_out() {
        let steps = vec![Step::default(); 11];
        assert_eq!(whole_turns(&steps, 4).len(), 8);
        assert_eq!(whole_turns(&steps, 0).len(), 11);
        assert_eq!(whole_turns(&steps, 16).len(), 11);
    }
}
