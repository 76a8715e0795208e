//! One run of a sweep. The settings of the user's command are changed through the hook or on its command line.

use std::time::Duration;

use clap::Args;

use super::{SweepRow, Tried, figures, observed, others_cpu, watch, worker_cpu};
use crate::error::Hinted;
use crate::lab::experiments::command::{TrainerReports, TrainingCommand, Trial, TrialError};
use crate::lab::experiments::{steady, taken};
use crate::launch::LoaderOverrides;
use crate::options::value;
use crate::probe::Step;
use crate::source::sampler::Options;
use crate::units::typed;

/// If loading is slow, a run is extended until it has made this many steps in its steady state.
const MIN_STEPS: usize = 10;
/// Such a run lasts at most this many times as long as requested.
const MAX_STRETCH: u32 = 4;

/// When a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Bound {
    /// Stop each run of a command after this many steps past start-up, if that is sooner than --for
    #[arg(long, value_name = "N", requires = "command", value_parser = value::whole(2..=10_000_000_u64))]
    pub steps: Option<u64>,

    /// Time to measure each run, once its queue is full (up to four times as long if there are few steps)
    #[arg(long = "for", value_name = "DURATION", default_value = "4s", value_parser = value::span)]
    pub span: Duration,
}

/// Runs the command with these settings; `report` is called with the current activity.
///
/// # Errors
/// Returns an error if the command cannot be run, or ends too early.
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
    let steady = |reports: &TrainerReports| steady(&reports.steps, reports.capacity()).to_vec();
    let mut trainer = None;
    trial.listen(
        |pid, reports| {
            report(&format!("starting, step {}", reports.made()));
            trainer = Some(pid);
            Ok(!steady(reports).is_empty())
        },
        too_few,
    )?;
    let watched = trainer.and_then(|pid| watch(options, pid));
    trial.listen(
        |pid, reports| {
            if trainer != Some(pid) {
                trainer = None;
            }
            let steps = steady(reports);
            report(&format!("steady state, step {}", steps.len()));
            let enough = bound.steps.is_some_and(|most| steps.len() as u64 >= most);
            let few = steps.len() < MIN_STEPS;
            let span = if few {
                MAX_STRETCH * bound.span
            } else {
                bound.span
            };
            Ok(enough || taken(&steps) >= span)
        },
        too_few,
    )?;
    let reports = trial.reports();
    // If the trainer changed, the watched process is not the measured one.
    let watched = watched.filter(|_| trainer.is_some());
    let figures = figures(complete_rounds(&steady(&reports), tried.workers));
    let seen = watched.map(|watched| observed(watched, tried.workers));
    drop(trial);
    let first = reports.steps.first();
    let first = first.map(|step| step.wait_to.saturating_sub(step.wait_from));
    Ok(SweepRow {
        tried,
        first_batch: Duration::from_nanos(first.unwrap_or_default()),
        steady: figures,
        worker_cpu: seen.as_ref().and_then(worker_cpu),
        others_cpu: seen.as_ref().and_then(others_cpu),
        not_set: match command.builtin {
            Some(_) => None,
            None => not_set(tried, replaced.is_some(), &reports),
        },
    })
}

/// Drops the last turn of the workers if it is incomplete: their batches may all arrive at the same time.
fn complete_rounds(steps: &[Step], workers: u32) -> &[Step] {
    let turn = workers.max(1) as usize;
    let whole = steps.len() / turn * turn;
    if whole > 0 { &steps[..whole] } else { steps }
}

/// Returns which setting did not take effect.
fn not_set(tried: Tried, by_words: bool, reports: &TrainerReports) -> Option<String> {
    let Tried {
        workers,
        prefetch_factor,
        pin_memory,
    } = tried;
    let other = reports.workers.last().copied();
    match other {
        // Another kind of loader cannot report its number of workers, but then the command line has set it.
        None if !by_words => return Some("the loader reports no num_workers".to_owned()),
        Some(other) if !reports.workers.contains(&workers) => {
            return Some(format!("num_workers was {other}"));
        }
        _ => {}
    }
    if let Some(factor) = prefetch_factor {
        let capacity = workers.saturating_mul(factor);
        match reports.capacities.last() {
            None => return Some("the loader reports no prefetch_factor".to_owned()),
            Some(other) if !reports.capacities.contains(&capacity) => {
                let other = other / workers.max(1);
                return Some(format!("prefetch_factor was {other}"));
            }
            Some(_) => {}
        }
    }
    match pin_memory.filter(|pin| !reports.pins.contains(pin)) {
        None => None,
        Some(true) => Some("memory was pageable: PyTorch pins memory only with a GPU".to_owned()),
        Some(false) => Some("memory was pinned".to_owned()),
    }
}

fn too_few(made: u64, bound: Bound) -> Hinted {
    let span = typed(bound.span);
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

    fn reports(workers: &[u32], capacities: &[u32], pins: &[bool]) -> TrainerReports {
        TrainerReports {
            workers: workers.iter().copied().collect(),
            capacities: capacities.iter().copied().collect(),
            pins: pins.iter().copied().collect(),
            ..TrainerReports::default()
        }
    }

    #[test]
    fn settings_without_effect_are_reported() {
        let report =
            |tried, reports: &TrainerReports| not_set(tried, false, reports).unwrap_or_default();
        let set = reports(&[4], &[8], &[false]);
        assert_eq!(report(TRIED, &set), "");
        // A loader for validation may have no workers.
        assert_eq!(report(TRIED, &reports(&[0, 4], &[8], &[])), "");
        assert_eq!(
            report(TRIED, &reports(&[2], &[4], &[])),
            "num_workers was 2"
        );
        let silent = TrainerReports::default();
        assert!(report(TRIED, &silent).contains("no num_workers"));
        assert_eq!(not_set(TRIED, true, &silent), None);
        let ahead = Tried {
            prefetch_factor: Some(2),
            ..TRIED
        };
        assert_eq!(report(ahead, &set), "");
        assert_eq!(
            report(ahead, &reports(&[4], &[16], &[])),
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
    fn an_incomplete_round_is_skipped() {
        let steps = vec![Step::default(); 11];
        assert_eq!(complete_rounds(&steps, 4).len(), 8);
        assert_eq!(complete_rounds(&steps, 0).len(), 11);
        assert_eq!(complete_rounds(&steps, 16).len(), 11);
    }
}
