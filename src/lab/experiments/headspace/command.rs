//! The headspace of a job: in every other run it is handed cached batches, the user's own command by the hook.

use super::{Headspace, Plan, blocks, judge, too_few};
use crate::error::Hinted;
use crate::lab::experiments::command::{TrainerReports, TrainingCommand, Trial, TrialError};
use crate::lab::experiments::taken;
use crate::launch::LoaderOverrides;
use crate::probe::Step;
use crate::source::sampler::Options;

/// Steps of a script that a plan of fewer than these is made for.
const FEWEST: u64 = 20;

/// Measures; `report` is called with what is being done.
///
/// # Errors
/// Where the command cannot be run, or does not make the steps that are to be measured.
pub fn launched(
    command: &TrainingCommand,
    plan: Plan,
    options: &Options,
    mut report: impl FnMut(&str),
) -> Result<Headspace, TrialError> {
    let (mut now, mut free) = (vec![], vec![]);
    let mut notes = None;
    let runs = 2 * plan.rounds.max(1);
    for run in 0..runs {
        let mut report = |what: String| report(&format!("run {} of {runs}: {what}", run + 1));
        report("waiting for the first step".to_owned());
        if run % 2 == 0 {
            let (steps, ranks) = as_it_is(command, plan, options, &mut report)?;
            let own = command.builtin.is_none();
            notes = own.then(|| self::notes(&steps, ranks));
            now.extend(steps.blocks());
        } else {
            free.extend(cached(command, plan, options, &mut report)?.blocks());
        }
    }
    let headspace = judge(now, free, (plan.steps, plan.run_steps)).ok_or_else(too_few)?;
    Ok(Headspace { notes, ..headspace })
}

/// The steps that are measured of one run.
struct Measured {
    steps: Vec<Step>,
    workers: u32,
    epochs: EpochLengths,
}

impl Measured {
    fn blocks(&self) -> Vec<f64> {
        // A block longer than the run is none.
        let length = self.steps.len().max(1);
        let turn = (self.workers.max(1) as usize).min(length);
        match self.epochs {
            // In whole epochs, as each has a start, when the queue is empty.
            EpochLengths::Of(steps) if steps <= length => {
                blocks(&self.steps, turn.next_multiple_of(steps).min(length))
            }
            _ => blocks(&self.steps, turn),
        }
    }
}

/// How the steps of a run are parted by what the trainer does beside its loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EpochLengths {
    /// No loop has ended.
    One,
    /// Each has so many steps.
    Of(usize),
    /// They differ in length: several loaders, mostly.
    Several,
}

impl EpochLengths {
    /// Of the steps from the first one on.
    fn of(steps: &[Step]) -> Self {
        let ends = steps.windows(2).enumerate().filter(|(_, pair)| {
            // A step whose report was lost is no end.
            pair[0].number + 1 == pair[1].number && pair[0].step_to < pair[1].wait_from
        });
        let ends: Vec<usize> = ends.map(|(at, _)| at + 1).collect();
        let Some(first) = ends.first() else {
            return Self::One;
        };
        let same = ends.windows(2).all(|pair| pair[1] - pair[0] == *first);
        let rest = steps.len() - ends.last().unwrap_or(first);
        if same && rest <= *first {
            Self::Of(*first)
        } else {
            Self::Several
        }
    }
}

fn as_it_is(
    command: &TrainingCommand,
    plan: Plan,
    options: &Options,
    report: &mut impl FnMut(String),
) -> Result<(Measured, usize), TrialError> {
    let mut trial = Trial::start(command, LoaderOverrides::default(), options)?;
    // Both runs are measured after as many steps: what is warm then is warm in both.
    let before = |heard: &TrainerReports| plan.cache.after + u64::from(heard.capacity()) + 1;
    trial.listen(
        |_, heard| {
            let all = before(heard) + plan.steps;
            report(format!("step {} of {all}", heard.made().min(all)));
            Ok(heard.made() >= all)
        },
        |made| ended_early(made, plan),
    )?;
    let heard = trial.heard();
    let before = before(&heard);
    let ranks = trial.writers.ranks();
    drop(trial);
    let epochs = EpochLengths::of(&heard.steps);
    let measured = measured(command, &heard, |step| step.number >= before, plan);
    Ok((Measured { epochs, ..measured }, ranks))
}

fn cached(
    command: &TrainingCommand,
    plan: Plan,
    options: &Options,
    report: &mut impl FnMut(String),
) -> Result<Measured, TrialError> {
    let overrides = LoaderOverrides {
        cache: Some(plan.cache),
        ..LoaderOverrides::default()
    };
    // It checks itself with another loader at that very step, at worst.
    let latest = 2 * plan.cache.after + 100;
    let mut trial = Trial::start(command, overrides, options)?;
    let notice = |heard: &TrainerReports| {
        let why = heard.notice.as_deref();
        Hinted::new(
            "the hook could not deliver cached batches",
            why.unwrap_or("try more steps before the cache: --after 500"),
        )
    };
    trial.listen(
        |_, heard| {
            let Some(from) = rested(heard) else {
                report(format!("step {} of {}", heard.made(), plan.cache.after));
                return if heard.made() > latest {
                    Err(notice(heard))
                } else {
                    Ok(false)
                };
            };
            let measured = heard.steps.iter().rev();
            let measured = measured.take_while(|step| step.wait_from >= from).count() as u64;
            report(format!("cached step {measured} of {}", plan.steps));
            Ok(measured >= plan.steps)
        },
        |made| ended_early(made, plan),
    )?;
    let heard = trial.heard();
    drop(trial);
    let from = rested(&heard).unwrap_or(u64::MAX);
    Ok(measured(
        command,
        &heard,
        |step| step.wait_from >= from,
        plan,
    ))
}

/// When the workers have nothing to do any more: what they have in hand when the first cached batch is handed out
/// takes them no longer than as many steps took before. `None` before the first cached batch.
fn rested(heard: &TrainerReports) -> Option<u64> {
    let cached = heard.cached?;
    let from = heard
        .steps
        .partition_point(|step| step.number < cached.from);
    let (before, after) = heard.steps.split_at(from);
    let ahead = heard.capacity().max(1);
    let usual = &before[before.len().saturating_sub(2 * ahead as usize)..];
    let usual = taken(usual) / u32::try_from(usual.len().max(1)).unwrap_or(u32::MAX);
    let rest = u64::try_from((usual * ahead).as_nanos()).unwrap_or(u64::MAX);
    Some(after.first()?.wait_from.saturating_add(rest))
}

fn measured(
    command: &TrainingCommand,
    heard: &TrainerReports,
    is: impl Fn(&Step) -> bool,
    plan: Plan,
) -> Measured {
    // The built-in job reports no number of workers: its settings have it.
    let builtin = command.builtin.as_ref().map(|settings| settings.workers);
    let reported = || heard.workers.last().copied();
    let steps = heard.steps.iter().filter(|step| is(step));
    let many = usize::try_from(plan.steps).unwrap_or(usize::MAX);
    Measured {
        steps: steps.take(many).copied().collect(),
        workers: builtin.or_else(reported).unwrap_or_default(),
        epochs: EpochLengths::One,
    }
}

fn ended_early(made: u64, plan: Plan) -> Hinted {
    let needed = plan.cache.after + plan.steps;
    let message = format!("the command ended after {made} steps; at least {needed} are needed");
    let hint = if made < FEWEST {
        "train for longer".to_owned()
    } else {
        let after = made / 4;
        let steps = (made / 2).max(10);
        format!("train for longer, or measure less: --after {after} --steps {steps}")
    };
    Hinted::new(message, hint)
}

fn notes(measured: &Measured, ranks: usize) -> Vec<String> {
    let mut notes = vec![];
    match measured.epochs {
        EpochLengths::One => {}
        EpochLengths::Of(steps) if steps <= measured.steps.len() => notes.push(format!(
            "epochs of {steps} steps: the gain includes the empty queue at the start of each\nepoch, but not the time between epochs"
        )),
        EpochLengths::Of(steps) => notes.push(format!(
            "epochs of {steps} steps: their starts are left out; --steps {steps} includes them"
        )),
        EpochLengths::Several => notes.push(
            "loops of different lengths were measured: if the script also validates its\nmodel, choose --steps so that measuring ends before".to_owned(),
        ),
    }
    if ranks > 1 {
        notes.push(format!("the figures are for the lowest of {ranks} ranks"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Cached;

    /// Steps of 10 ms each, with a pause of 5 ms before those of these numbers.
    fn steps(count: u64, pauses: &[u64]) -> Vec<Step> {
        let mut at = 0;
        let step = |number| {
            at += if pauses.contains(&number) {
                5_000_000
            } else {
                0
            };
            let wait_from = at;
            at += 10_000_000;
            Step {
                number,
                wait_from,
                wait_to: wait_from + 1_000_000,
                step_to: at,
                ..Step::default()
            }
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn epochs_are_told_by_what_is_between_them() {
        assert_eq!(EpochLengths::of(&steps(50, &[])), EpochLengths::One);
        assert_eq!(
            EpochLengths::of(&steps(50, &[20, 40])),
            EpochLengths::Of(20)
        );
        assert_eq!(EpochLengths::of(&steps(50, &[40])), EpochLengths::Of(40));
        assert_eq!(
            EpochLengths::of(&steps(50, &[20, 25, 45])),
            EpochLengths::Several
        );
        assert_eq!(EpochLengths::of(&steps(50, &[20])), EpochLengths::Several);
        // Lost reports are no end of an epoch.
        let mut lost = steps(50, &[]);
        lost.drain(10..20);
        assert_eq!(EpochLengths::of(&lost), EpochLengths::One);
    }

    #[test]
    fn blocks_hold_whole_turns_and_whole_epochs() {
        let of = |count, workers, epochs| {
            let steps = steps(count, &[]);
            Measured {
                steps,
                workers,
                epochs,
            }
            .blocks()
            .len()
        };
        assert_eq!(of(100, 0, EpochLengths::One), 10);
        assert_eq!(of(100, 8, EpochLengths::One), 6);
        assert_eq!(of(100, 2, EpochLengths::Of(30)), 3);
        // An epoch that is longer than what is measured cannot be held.
        assert_eq!(of(100, 2, EpochLengths::Of(300)), 10);
        assert_eq!(of(10, 16, EpochLengths::One), 1);
        assert_eq!(of(0, 4, EpochLengths::One), 0);
        // What runs between epochs is in no block.
        let steps = steps(60, &[20, 40]);
        let epochs = EpochLengths::of(&steps);
        let blocks = Measured {
            steps,
            workers: 2,
            epochs,
        }
        .blocks();
        assert_eq!(blocks, [0.01; 3]);
    }

    #[test]
    fn workers_that_fill_their_queue_are_waited_for() {
        let mut heard = TrainerReports {
            steps: steps(100, &[]),
            ..TrainerReports::default()
        };
        assert_eq!(rested(&heard), None);
        heard.cached = Some(Cached {
            batches: 5,
            from: 40,
        });
        assert_eq!(rested(&heard), Some(410_000_000));
        heard.capacities.insert(8);
        assert_eq!(rested(&heard), Some(480_000_000));
        heard.cached = Some(Cached {
            batches: 5,
            from: 100,
        });
        assert_eq!(rested(&heard), None, "none has come yet");
    }

    #[test]
    fn a_script_that_is_too_short_is_told_what_would_do() {
        let plan = Plan {
            cache: crate::launch::Cache {
                batches: 10,
                after: 100,
            },
            steps: 100,
            rounds: 3,
            run_steps: 1000,
        };
        let refused = ended_early(80, plan);
        assert!(refused.message.contains("after 80 steps; at least 200"));
        assert!(refused.hint.ends_with("--after 20 --steps 40"));
        assert!(!ended_early(8, plan).hint.contains("--after"));
    }
}
