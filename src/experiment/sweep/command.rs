//! The sweep of the user's own command: the hook sets what its loaders have, or its command line says it.

use std::sync::mpsc;
use std::time::Duration;

use super::{Row, figures, worker_cpu, workers};
use crate::error::Hinted;
use crate::experiment::command::{Command, Failure, Heard, Trial};
use crate::experiment::job::steady;
use crate::experiment::taken;
use crate::job::Target;
use crate::launch::Overrides;
use crate::model::Model;
use crate::probe::Step;
use crate::source::sampler::{Options, Sampler, launched};

/// The settings of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    pub workers: u32,
    /// `None` = as the command has it, as below.
    pub prefetch_factor: Option<u32>,
    pub pin_memory: Option<bool>,
}

/// When a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// So long after its start-up.
    pub span: Duration,
    /// Or after so many steps of its steady state, if that is sooner.
    pub steps: Option<u64>,
}

/// Runs the command with these settings; `told` is called with what is being done.
///
/// # Errors
/// Where it cannot be run, or ends too early.
pub fn run(
    command: &Command,
    tried: Tried,
    bound: Bound,
    options: &Options,
    mut told: impl FnMut(&str),
) -> Result<Row, Failure> {
    told("waiting for the first step");
    let replaced = command.with_workers(tried.workers);
    let overrides = Overrides {
        workers: replaced.is_none().then_some(tried.workers),
        prefetch: tried.prefetch_factor,
        pin: tried.pin_memory,
        cache: None,
    };
    let mut trial = Trial::start(replaced.as_ref().unwrap_or(command), overrides, options)?;
    let too_few = |made| too_few(made, bound);
    let steady = |heard: &Heard| steady(&heard.steps, heard.capacity()).to_vec();
    let mut trainer = None;
    trial.listen(
        |pid, heard| {
            told(&format!("starts, step {}", heard.made()));
            trainer = Some(pid);
            Ok(!steady(heard).is_empty())
        },
        too_few,
    )?;
    // Watched from outside, too: that is where the CPU of each worker is seen.
    let (send, samples) = mpsc::channel();
    let sampler = trainer.and_then(|pid| {
        let job = launched(&options.proc_root, pid)?;
        let options = Options {
            target: Target::Launched(pid),
            ..options.clone()
        };
        Sampler::start(options, Some(job), move |sample| send.send(sample).is_ok()).ok()
    });
    trial.listen(
        |pid, heard| {
            if trainer != Some(pid) {
                trainer = None;
            }
            let steps = steady(heard);
            told(&format!("step {} of its steady state", steps.len()));
            let enough = bound.steps.is_some_and(|most| steps.len() as u64 >= most);
            Ok(enough || taken(&steps) >= bound.span)
        },
        too_few,
    )?;
    drop(sampler);
    let heard = trial.heard();
    drop(trial);
    let mut model = Model::new(Duration::MAX);
    for sample in samples {
        // Of another process than it began with there is nothing to be seen, nor of a loader that was just made.
        if trainer.is_some() && workers(&sample) >= tried.workers as usize {
            model.apply(sample);
        }
    }
    let first = heard.steps.first();
    let first = first.map(|step| step.wait_to.saturating_sub(step.wait_from));
    Ok(Row {
        workers: tried.workers,
        prefetch_factor: tried.prefetch_factor,
        pin_memory: tried.pin_memory,
        first_batch: Duration::from_nanos(first.unwrap_or_default()),
        steady: figures(whole_turns(&steady(&heard), tried.workers)),
        worker_cpu: worker_cpu(&model),
        not_set: not_set(tried, replaced.is_some(), &heard),
    })
}

/// Without the last turn of the workers where it is not whole: their batches may come all at once.
fn whole_turns(steps: &[Step], workers: u32) -> &[Step] {
    let turn = workers.max(1) as usize;
    let whole = steps.len() / turn * turn;
    if whole > 0 { &steps[..whole] } else { steps }
}

/// What is not as it was meant to be.
fn not_set(tried: Tried, by_words: bool, heard: &Heard) -> Option<String> {
    let Tried {
        workers,
        prefetch_factor,
        pin_memory,
    } = tried;
    let other = heard.workers.last().copied();
    match other {
        // A loop over anything else says nothing of it, and the command line does.
        None if !by_words => return Some("the loader tells of no workers".to_owned()),
        Some(other) if !heard.workers.contains(&workers) => {
            return Some(format!("num_workers was {other}"));
        }
        _ => {}
    }
    if let Some(factor) = prefetch_factor {
        let capacity = workers.saturating_mul(factor);
        match heard.capacities.last() {
            None => return Some("the loader tells of no prefetch_factor".to_owned()),
            Some(other) if !heard.capacities.contains(&capacity) => {
                let other = other / workers.max(1);
                return Some(format!("prefetch_factor was {other}"));
            }
            Some(_) => {}
        }
    }
    match pin_memory.filter(|pin| !heard.pins.contains(pin)) {
        None => None,
        Some(true) => Some("memory was pageable: PyTorch pins none without a GPU".to_owned()),
        Some(false) => Some("memory was pinned".to_owned()),
    }
}

fn too_few(made: u64, bound: Bound) -> Hinted {
    let span = humantime::format_duration(bound.span);
    Hinted::new(
        format!("the command ended after {made} steps, before {span} of its steady state"),
        "let it train for longer, or measure less: --for 1s, or --steps 20",
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

    fn heard(workers: &[u32], capacities: &[u32], pins: &[bool]) -> Heard {
        Heard {
            workers: workers.iter().copied().collect(),
            capacities: capacities.iter().copied().collect(),
            pins: pins.iter().copied().collect(),
            ..Heard::default()
        }
    }

    #[test]
    fn what_did_not_take_effect_is_told() {
        let told = |tried, heard: &Heard| not_set(tried, false, heard).unwrap_or_default();
        let set = heard(&[4], &[8], &[false]);
        assert_eq!(told(TRIED, &set), "");
        // One with which it checks its model has none.
        assert_eq!(told(TRIED, &heard(&[0, 4], &[8], &[])), "");
        assert_eq!(told(TRIED, &heard(&[2], &[4], &[])), "num_workers was 2");
        let silent = Heard::default();
        assert!(told(TRIED, &silent).contains("no workers"));
        assert_eq!(not_set(TRIED, true, &silent), None);
        let ahead = Tried {
            prefetch_factor: Some(2),
            ..TRIED
        };
        assert_eq!(told(ahead, &set), "");
        assert_eq!(
            told(ahead, &heard(&[4], &[16], &[])),
            "prefetch_factor was 4"
        );
        let pinned = Tried {
            pin_memory: Some(true),
            ..TRIED
        };
        assert!(told(pinned, &set).contains("without a GPU"));
        let pageable = Tried {
            pin_memory: Some(false),
            ..TRIED
        };
        assert_eq!(told(pageable, &set), "");
    }

    #[test]
    fn a_turn_that_is_not_whole_is_left_out() {
        let steps = vec![Step::default(); 11];
        assert_eq!(whole_turns(&steps, 4).len(), 8);
        assert_eq!(whole_turns(&steps, 0).len(), 11);
        assert_eq!(whole_turns(&steps, 16).len(), 11);
    }
}
