//! Decides which of a rank's datasets is the training data, and which are for validation.
//!
//! Works on the counts of each dataset; does not depend on how loaders are read.

use crate::sample::Passes;

/// Polls (of [`crate::sample::BEAT`]) that one stack stands for. Once a dataset has as many in training-only code, the
/// dataset with the most of them is the training data.
const POLLS_OF_A_STACK: u64 = 40;
/// Minimum polls in training-only code, and their minimum share of the time outside of the loader, that the training
/// data must have: then the lack of such polls in another dataset shows soon.
const MIN_VISIBLE_POLLS: u64 = 5 * POLLS_OF_A_STACK;
const MIN_VISIBLE: f64 = 0.1;
/// A dataset is not trained on if it has less than this part of the training data's share. When the trainer changes
/// from one dataset to another, up to 0.2 s count for the wrong one.
const LESS_THAN: f64 = 0.5;
/// Standard errors by which two shares must differ. By chance they do so once in a hundred comparisons; with
/// `CLEARLY_OF_MANY`, as rarely for any of many datasets, if a job makes one for each epoch.
const CLEARLY: f64 = 2.33;
const CLEARLY_OF_MANY: f64 = 3.5;
/// Maximum part of the training data's batches for a dataset to have clearly fewer: the last batches of a pass may not
/// be seen.
const FEWER: f64 = 0.6;

/// Minimum batches and polls of a long turn. If datasets take turns in each step, some turns may not be seen.
const MIN_BATCHES_OF_TURN: u64 = 3;
const MIN_POLLS_OF_TURN: u64 = 200;

/// Minimum waits after which an iterator that yields more than one batch has been seen with one of them.
const MIN_WAITS: u64 = 10;

/// Returns the dataset that is trained on: the one with the most time in training-only code or, if that was not seen,
/// the one that most batches came from.
pub(super) fn training(all: &[Passes]) -> Option<&Passes> {
    let trained = |passes: &Passes| {
        if passes.trained >= POLLS_OF_A_STACK {
            passes.trained
        } else {
            0
        }
    };
    all.iter()
        .max_by_key(|passes| (trained(passes), passes.batches))
}

/// Returns the datasets that are not trained on: those with clearly less training-only time than the training data or,
/// if that does not decide, with clearly fewer batches in shorter passes (two datasets that take turns have about as
/// many). Batches decide only if the trainer came back from the dataset and, of more than two datasets, also came back
/// to it: a job may make a new dataset for each epoch, even at the address of an earlier one. Of two datasets, where
/// almost nothing shows training, a first pass in progress counts, too.
pub(super) fn validations(all: &[Passes]) -> impl Iterator<Item = &Passes> {
    let training = training(all);
    let two = all.len() == 2;
    all.iter().filter(move |passes| {
        let Some(training) = training.filter(|training| training.dataset != passes.dataset) else {
            return false;
        };
        let visible = training.trained >= MIN_VISIBLE_POLLS && rate(training) >= MIN_VISIBLE;
        let less = rate(passes) < LESS_THAN * rate(training);
        let errors = if two { CLEARLY } else { CLEARLY_OF_MANY };
        if visible && (!less || differs(passes, training, errors)) {
            return less;
        }
        let come_and_go = training.returns > 0 && (two || passes.begun > 2);
        let fewer = |of: fn(&Passes) -> u64| of(passes) as f64 <= FEWER * of(training) as f64;
        (come_and_go || (two && !visible))
            && passes.longest > 0
            && fewer(|passes| passes.longest)
            && fewer(|passes| passes.batches)
    })
}

/// Returns the number of batches in the longest pass through this dataset. `None` until it has had three, or until enough
/// waits have passed without an iterator that lasts. `waits`: those for batches of any dataset since attaching, if they are
/// counted.
pub(super) fn longest_pass(
    all: &[Passes],
    dataset: Option<u64>,
    waits: Option<u64>,
) -> Option<u64> {
    let passes = all.iter().find(|passes| Some(passes.dataset) == dataset)?;
    if passes.begun >= 3 && passes.longest > 0 {
        return Some(passes.longest);
    }
    // An iterator that has yielded a batch is hardly ever seen if it is gone with its first.
    let hardly = passes.longest <= 1 && passes.batches <= passes.begun;
    let gone = all.len() == 1 && hardly && waits >= Some(MIN_WAITS);
    gone.then_some(1)
}

/// Returns whether the share of training-only time differs by this many standard errors. The share is known from
/// stacks, which may miss short steps by chance.
fn differs(passes: &Passes, training: &Passes, errors: f64) -> bool {
    let [own, most] = [passes, training].map(|passes| outside(passes) / POLLS_OF_A_STACK as f64);
    let both = (passes.trained + training.trained) as f64 / (outside(passes) + outside(training));
    let error = (both * (1.0 - both) * (1.0 / own + 1.0 / most)).sqrt();
    rate(training) - rate(passes) >= errors * error
}

/// Returns the training-only share of the time outside of the loader.
fn rate(passes: &Passes) -> f64 {
    passes.trained as f64 / outside(passes)
}

/// Returns the polls outside of the loader, at least one.
fn outside(passes: &Passes) -> f64 {
    passes.polls.saturating_sub(passes.waited).max(1) as f64
}

/// Whether the trainer takes many batches from one dataset, for a second or longer, before it goes to another. Any
/// validation counts as such a turn.
pub(super) fn take_long_turns(all: &[Passes]) -> bool {
    let long = |passes: &Passes| {
        let turns = passes.returns + 1;
        passes.batches >= MIN_BATCHES_OF_TURN * turns && passes.polls >= MIN_POLLS_OF_TURN * turns
    };
    all.len() > 1 && (all.iter().all(long) || validations(all).next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the passes of a dataset; times are in hundredths of a second, of two polls each.
    fn passes(dataset: u64, batches: u64, times: (u64, u64, u64)) -> Passes {
        let [polls, waited, trained] = [times.0, times.1, times.2].map(|time| 2 * time);
        Passes {
            dataset,
            begun: 1,
            batches,
            longest: batches,
            returns: 1,
            polls,
            waited,
            trained,
        }
    }

    fn found(all: &[Passes]) -> (Option<u64>, Vec<u64>) {
        let validations = validations(all).map(|passes| passes.dataset).collect();
        (training(all).map(|passes| passes.dataset), validations)
    }

    #[test]
    fn turns_of_many_batches_are_told_from_those_of_each_step() {
        let returning = |dataset, returns| Passes {
            returns,
            ..passes(dataset, 100, (1000, 200, 0))
        };
        assert!(!take_long_turns(&[returning(0, 9)]));
        assert!(take_long_turns(&[returning(0, 9), returning(1, 9)]));
        // The datasets alternate in each step, but only some of the turns were seen.
        assert!(!take_long_turns(&[returning(0, 20), returning(1, 20)]));
        let step_of_seconds = |dataset| Passes {
            returns: 99,
            ..passes(dataset, 100, (20_000, 200, 0))
        };
        assert!(!take_long_turns(&[step_of_seconds(0), step_of_seconds(1)]));
        let validation = passes(1, 10, (50, 10, 0));
        assert!(take_long_turns(&[returning(0, 0), validation]));
    }

    #[test]
    fn the_largest_dataset_is_trained_on_without_other_evidence() {
        let nothing = (0, 0, 0);
        assert_eq!(found(&[]), (None, vec![]));
        assert_eq!(found(&[passes(0, 9, nothing)]), (Some(0), vec![]));
        let all = [passes(0, 5, nothing), passes(1, 10, nothing)];
        assert_eq!(found(&all), (Some(1), vec![0]));
        // Two datasets that take turns have about as many batches.
        let all = [passes(0, 9, nothing), passes(1, 10, nothing)];
        assert_eq!(found(&all), (Some(1), vec![]));
    }

    #[test]
    fn a_new_dataset_for_each_epoch_is_no_validation() {
        let once = |dataset, batches, time| Passes {
            returns: 0,
            ..passes(dataset, batches, time)
        };
        let nothing = (0, 0, 0);
        let not = |all: &[Passes]| found(all).1.is_empty();
        assert!(not(&[
            once(0, 90, nothing),
            once(1, 90, nothing),
            once(2, 5, nothing)
        ]));
        // The first steps of a new dataset may not have been seen in training-only code.
        let (trained, begins) = ((900, 100, 300), (60, 20, 0));
        assert!(not(&[once(0, 90, trained), once(1, 5, begins)]));
        // Figures of a real job with epochs of a second: few stacks met its backward pass.
        let few = [0, 8, 0, 3, 1].map(|trained| (100, 38, trained));
        let epochs = (0..).zip(few).map(|(id, time)| once(id, 60, time));
        let newest = Passes {
            begun: 2,
            ..passes(9, 120, (207, 80, 23))
        };
        assert!(not(&epochs.chain([newest]).collect::<Vec<_>>()));
        // By chance, six stacks may have missed the short steps of another epoch, but hardly twelve.
        assert!(not(&[once(0, 90, trained), once(1, 50, (140, 20, 0))]));
        let evaluated = (260, 20, 0);
        assert_eq!(
            found(&[once(0, 90, trained), once(1, 50, evaluated)]).1,
            [1]
        );
    }

    #[test]
    fn a_new_dataset_where_an_earlier_one_was_is_no_validation() {
        let again = |dataset, begun, (batches, longest)| Passes {
            begun,
            longest,
            ..passes(dataset, batches, (0, 0, 0))
        };
        let validations = |all: &[Passes]| found(all).1;
        let epochs = [again(0, 5, (60, 12)), again(1, 2, (24, 12))];
        assert!(validations(&epochs).is_empty());
        // The newest dataset has only begun.
        let begun = [epochs[0], epochs[1], again(2, 1, (3, 3))];
        assert!(validations(&begun).is_empty());
        assert_eq!(validations(&[epochs[0], again(1, 5, (25, 5))]), [1]);
        // The second pass of the training data has only begun.
        let [few, many] = [again(1, 1, (12, 12)), again(0, 2, (42, 40))];
        assert_eq!(validations(&[few, many]), [1]);
    }

    #[test]
    fn the_longest_passes_are_compared() {
        let again = |longest| Passes {
            begun: 2,
            longest,
            ..passes(0, 90, (0, 0, 0))
        };
        let other = |batches| passes(1, batches, (0, 0, 0));
        // The training data's 90 batches are of a pass of 80 and the beginning of the next, not of one pass of 90.
        assert!(found(&[other(50), again(80)]).1.is_empty());
        assert_eq!(found(&[other(40), again(80)]).1, [1]);
    }

    #[test]
    fn the_length_of_passes_is_known_after_three() {
        let begun = |begun, longest, batches| Passes {
            begun,
            longest,
            ..passes(1, batches, (0, 0, 0))
        };
        let longest = |passes: Passes, waits| longest_pass(&[passes], Some(1), waits);
        assert_eq!(longest(begun(3, 1, 9), None), Some(1));
        assert_eq!(longest(begun(2, 1, 9), None), None);
        assert_eq!(longest(begun(3, 0, 9), Some(20)), None);
        assert_eq!(longest_pass(&[begun(3, 1, 9)], None, None), None);
        // None of its iterators was seen with a batch.
        let never = begun(1, 0, 0);
        assert_eq!(longest(never, Some(9)), None);
        assert_eq!(longest(never, Some(10)), Some(1));
        // One or two of them were.
        for seen in [begun(1, 1, 1), begun(2, 1, 2)] {
            assert_eq!(longest(seen, Some(9)), None);
            assert_eq!(longest(seen, Some(10)), Some(1));
        }
        assert_eq!(longest(begun(1, 2, 2), Some(10)), None);
        let other = passes(2, 9, (0, 0, 0));
        assert_eq!(longest_pass(&[never, other], Some(1), Some(10)), None);
    }

    #[test]
    fn a_short_validation_is_one_once_the_trainer_came_back() {
        let trained = passes(0, 200, (900, 100, 300));
        let short = passes(1, 20, (60, 20, 0));
        assert_eq!(found(&[short, trained]).1, [1]);
        let before = Passes {
            returns: 0,
            ..trained
        };
        assert!(found(&[before, short]).1.is_empty());
        // A dataset that is trained on as much.
        let also = passes(1, 20, (60, 20, 20));
        assert!(found(&[also, trained]).1.is_empty());
    }

    #[test]
    fn short_steps_that_stacks_missed_by_chance_are_no_validation() {
        let [seen_once, never] = [passes(0, 80, (450, 50, 20)), passes(1, 60, (900, 500, 0))];
        assert!(found(&[seen_once, never]).1.is_empty());
        // So little training-only time shows nothing, so the batches decide.
        assert_eq!(found(&[seen_once, passes(1, 40, (900, 500, 0))]).1, [1]);
    }

    #[test]
    fn a_validation_with_more_batches_than_training_is_one() {
        let all = [
            passes(0, 500, (4000, 1000, 40)),
            passes(1, 100, (2000, 500, 900)),
        ];
        assert_eq!(found(&all), (Some(1), vec![0]));
        // The same holds for three datasets.
        let another = passes(2, 9, (60, 20, 0));
        assert_eq!(found(&[all[0], all[1], another]).1, [0]);
    }

    #[test]
    fn two_datasets_that_are_both_trained_on_are_no_validation() {
        let all = [
            passes(0, 500, (4000, 1000, 1500)),
            passes(1, 100, (2000, 500, 900)),
        ];
        assert_eq!(found(&all), (Some(0), vec![]));
    }
}
