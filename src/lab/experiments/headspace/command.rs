//! Measures the headspace of a job: every other run gets cached batches, in the user's own command through the hook.

use super::{MeasuredHeadspace, Plan, blocks, judge, too_few};
use crate::error::Hinted;
use crate::lab::experiments::command::{TrainerReports, TrainingCommand, Trial, TrialError};
use crate::lab::experiments::taken;
use crate::launch::LoaderOverrides;
use crate::probe::{Cached, Step};
use crate::source::sampler::Options;
use crate::units::nanoseconds;

/// If a script makes fewer steps than these, no smaller plan is suggested.
const MIN_STEPS: u64 = 20;

/// Measures the headspace; `report` is called with the current activity.
///
/// # Errors
/// Returns an error if the command cannot be run, or does not make the steps to be measured.
pub fn launched(
    command: &TrainingCommand,
    plan: Plan,
    options: &Options,
    mut report: impl FnMut(&str),
) -> Result<MeasuredHeadspace, TrialError> {
    let (mut now, mut free) = (vec![], vec![]);
    let mut notes = None;
    let runs = 2 * plan.rounds.max(1);
    for run in 0..runs {
        let mut report = |what: String| report(&format!("run {} of {runs}: {what}", run + 1));
        report("waiting for the first step".to_owned());
        if run % 2 == 0 {
            let steps = normal_run(command, plan, options, &mut report)?;
            let own = command.builtin.is_none();
            notes = own.then(|| self::notes(&steps));
            now.extend(steps.blocks());
        } else {
            free.extend(cached(command, plan, options, &mut report)?.blocks());
        }
    }
    let headspace = judge(now, free, (plan.steps, plan.run_steps)).ok_or_else(too_few)?;
    Ok(MeasuredHeadspace { notes, ..headspace })
}

/// The measured steps of one run.
struct Measured {
    steps: Vec<Step>,
    workers: u32,
    epochs: EpochLengths,
    /// Number of ranks that train.
    ranks: usize,
}

impl Measured {
    fn blocks(&self) -> Vec<f64> {
        // A block must not be longer than the run.
        let length = self.steps.len().max(1);
        let turn = (self.workers.max(1) as usize).min(length);
        match self.epochs {
            // Blocks are whole epochs, as the queue is empty at the start of each.
            EpochLengths::Of(steps) if steps <= length => {
                blocks(&self.steps, turn.next_multiple_of(steps).min(length))
            }
            _ => blocks(&self.steps, turn),
        }
    }
}

/// How the steps of a run are divided by pauses between the trainer's loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EpochLengths {
    /// No loop has ended.
    One,
    /// Each loop has this many steps.
    Of(usize),
    /// The loops differ in length, usually because there are several loaders.
    Several,
}

impl EpochLengths {
    /// Finds the loops in these steps, beginning with the first.
    fn of(steps: &[Step]) -> Self {
        let ends = steps.windows(2).enumerate().filter(|(_, pair)| {
            // A step with a lost report does not end a loop.
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

fn normal_run(
    command: &TrainingCommand,
    plan: Plan,
    options: &Options,
    report: &mut impl FnMut(String),
) -> Result<Measured, TrialError> {
    let mut trial = Trial::start(command, LoaderOverrides::default(), options)?;
    // Both runs are measured after the same number of steps, so that both are equally warmed up.
    let before = |reports: &TrainerReports| plan.after + u64::from(reports.capacity()) + 1;
    trial.listen(
        |_, reports| {
            let all = before(reports) + plan.steps;
            report(format!("step {} of {all}", reports.made().min(all)));
            Ok(reports.made() >= all)
        },
        |made| ended_early(made, plan),
    )?;
    let reports = trial.reports();
    let before = before(&reports);
    Ok(Measured {
        epochs: EpochLengths::of(&reports.steps),
        ..measured(&trial, |step| step.number >= before, plan)
    })
}

fn cached(
    command: &TrainingCommand,
    plan: Plan,
    options: &Options,
    report: &mut impl FnMut(String),
) -> Result<Measured, TrialError> {
    let cache = Cached {
        batches: plan.cache_batches,
        from: plan.after,
    };
    let overrides = LoaderOverrides {
        cache: Some(cache),
        ..LoaderOverrides::default()
    };
    // The cache can start later than planned: at worst, the hook is testing itself with another loader at exactly that
    // step.
    let latest = 2 * plan.after + 100;
    let mut trial = Trial::start(command, overrides, options)?;
    let notice = |reports: &TrainerReports| {
        let why = reports.notice.as_deref();
        Hinted::new(
            "the hook could not deliver cached batches",
            why.unwrap_or("try more steps before the cache: --after 500"),
        )
    };
    trial.listen(
        |_, reports| {
            let Some(from) = idle_since(reports) else {
                report(format!("step {} of {}", reports.made(), plan.after));
                return if reports.made() > latest {
                    Err(notice(reports))
                } else {
                    Ok(false)
                };
            };
            let measured = reports.steps.iter().rev();
            let measured = measured.take_while(|step| step.wait_from >= from).count() as u64;
            report(format!("cached step {measured} of {}", plan.steps));
            Ok(measured >= plan.steps)
        },
        |made| ended_early(made, plan),
    )?;
    let from = idle_since(&trial.reports()).unwrap_or(u64::MAX);
    Ok(measured(&trial, |step| step.wait_from >= from, plan))
}

/// Returns when the workers are certainly idle. After the first cached batch is delivered, they finish what they have,
/// which takes at most as long as the same number of steps took before. `None` before the first cached batch.
fn idle_since(reports: &TrainerReports) -> Option<u64> {
    let cached = reports.cached?;
    let from = reports
        .steps
        .partition_point(|step| step.number < cached.from);
    let (before, after) = reports.steps.split_at(from);
    let ahead = reports.capacity().max(1);
    let usual = &before[before.len().saturating_sub(2 * ahead as usize)..];
    let usual = taken(usual) / u32::try_from(usual.len().max(1)).unwrap_or(u32::MAX);
    let rest = nanoseconds(usual * ahead);
    Some(after.first()?.wait_from.saturating_add(rest))
}

fn measured(trial: &Trial<'_>, is: impl Fn(&Step) -> bool, plan: Plan) -> Measured {
    let reports = trial.reports();
    // The built-in job does not report its number of workers, but its settings contain it.
    let builtin = trial.command.builtin.as_ref();
    let builtin = builtin.map(|settings| settings.workers);
    let reported = || reports.workers.last().copied();
    let steps = reports.steps.iter().filter(|step| is(step));
    let many = usize::try_from(plan.steps).unwrap_or(usize::MAX);
    Measured {
        steps: steps.take(many).copied().collect(),
        workers: builtin.or_else(reported).unwrap_or_default(),
        epochs: EpochLengths::One,
        ranks: trial.writers.ranks(),
    }
}

fn ended_early(made: u64, plan: Plan) -> Hinted {
    let needed = plan.after + plan.steps;
    let message = format!("the command ended after {made} steps; at least {needed} are needed");
    let hint = if made < MIN_STEPS {
        "train for longer".to_owned()
    } else {
        let after = made / 4;
        let steps = (made / 2).max(10);
        format!("train for longer, or measure less: --after {after} --steps {steps}")
    };
    Hinted::new(message, hint)
}

fn notes(measured: &Measured) -> Vec<String> {
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
            "loops of different lengths were measured: if the script also validates its\nmodel, choose --steps so that this is not measured".to_owned(),
        ),
    }
    if measured.ranks > 1 {
        notes.push(format!(
            "the figures are for the first of {} ranks",
            measured.ranks
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns steps of 10 ms each, with a pause of 5 ms before those with these numbers.
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
    fn epochs_are_detected_by_the_gaps_between_them() {
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
        // Lost reports do not end an epoch.
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
                ranks: 0,
            }
            .blocks()
            .len()
        };
        assert_eq!(of(100, 0, EpochLengths::One), 10);
        assert_eq!(of(100, 8, EpochLengths::One), 6);
        assert_eq!(of(100, 2, EpochLengths::Of(30)), 3);
        // An epoch longer than the measurement does not fit into it.
        assert_eq!(of(100, 2, EpochLengths::Of(300)), 10);
        assert_eq!(of(10, 16, EpochLengths::One), 1);
        assert_eq!(of(0, 4, EpochLengths::One), 0);
        // Time between epochs is in no block.
        let steps = steps(60, &[20, 40]);
        let epochs = EpochLengths::of(&steps);
        let blocks = Measured {
            steps,
            workers: 2,
            epochs,
            ranks: 0,
        }
        .blocks();
        assert_eq!(blocks, [0.01; 3]);
    }

    #[test]
    fn workers_that_fill_their_queue_are_waited_for() {
        let mut reports = TrainerReports {
            steps: steps(100, &[]),
            ..TrainerReports::default()
        };
        assert_eq!(idle_since(&reports), None);
        reports.cached = Some(Cached {
            batches: 5,
            from: 40,
        });
        assert_eq!(idle_since(&reports), Some(410_000_000));
        reports.capacities.insert(8);
        assert_eq!(idle_since(&reports), Some(480_000_000));
        reports.cached = Some(Cached {
            batches: 5,
            from: 100,
        });
        assert_eq!(idle_since(&reports), None, "none has come yet");
    }

    #[test]
    fn a_script_that_is_too_short_gets_the_length_needed() {
        let plan = Plan {
            cache_batches: 10,
            after: 100,
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
