//! Decides which of a rank's datasets is the training data, and which are for validation.
//!
//! Works on the counts of each dataset; does not depend on how loaders are read.

use crate::sample::Passes;

/// Polls (of 10 ms) spent in training-only code, from which on they decide which dataset is trained on.
const MIN_TRAINING_POLLS: u64 = 20;
/// Polls outside of the loader, from which on a dataset without training-only code counts as not trained on.
const MIN_POLLS_OUTSIDE: u64 = 50;
/// Of the time outside of the loader that the training data's has in what only training does, or of its batches: with less,
/// a dataset is not trained on. Where one gives way to another, up to 0.2 s are taken for the wrong one's.
const LESS_THAN: f64 = 0.5;
/// Polls in training-only code that a dataset would have if it were trained on, from which on fewer show that it is not. A
/// stack counts for all polls until the next one, some 10 to 20, and one of many datasets has few by chance.
const ENOUGH_OF_TWO: f64 = 40.0;
const ENOUGH_OF_MANY: f64 = 400.0;

/// Returns the dataset that is trained on: the one with the most time in training-only code or, if that was not seen,
/// the one that most batches came from.
pub(super) fn training(all: &[Passes]) -> Option<&Passes> {
    let trained = |passes: &Passes| {
        if passes.trained >= MIN_TRAINING_POLLS {
            passes.trained
        } else {
            0
        }
    };
    all.iter()
        .max_by_key(|passes| (trained(passes), passes.batches))
}

/// The others, unless these are trained on, too: with clearly fewer batches (two that take turns have about as many) in
/// shorter passes, or with far less in training-only code than so much time would have if they were trained on. Of more
/// than two only once the trainer came back to them, or by more time: a job may make a new dataset for each epoch, also where
/// an earlier one was, and stacks are too rare to show all of them alike.
pub(super) fn validations(all: &[Passes]) -> impl Iterator<Item = &Passes> {
    let training = training(all);
    all.iter().filter(move |passes| {
        let Some(training) = training.filter(|training| training.dataset != passes.dataset) else {
            return false;
        };
        let two = all.len() == 2;
        let [few, many] = [passes, training].map(|passes| passes.batches as f64);
        // The last pass of the training data may only have begun.
        let many_a_pass = many / training.begun.saturating_sub(1).max(1) as f64;
        let few_a_pass = few / passes.begun.max(1) as f64;
        let shorter = (two || passes.begun > 2)
            && few <= LESS_THAN * many
            && few_a_pass <= LESS_THAN * many_a_pass;
        if training.trained < MIN_TRAINING_POLLS {
            return shorter && (two || training.returns > 0);
        }
        let is_known = training.returns > 0 || outside(passes) >= MIN_POLLS_OUTSIDE;
        let if_trained = rate(training) * outside(passes) as f64;
        let enough = if two { ENOUGH_OF_TWO } else { ENOUGH_OF_MANY };
        is_known && (shorter || if_trained >= enough) && rate(passes) < LESS_THAN * rate(training)
    })
}

/// Returns the training-only share of the time outside of the loader.
fn rate(passes: &Passes) -> f64 {
    passes.trained as f64 / outside(passes).max(1) as f64
}

fn outside(passes: &Passes) -> u64 {
    passes.polls.saturating_sub(passes.waited)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(dataset: u64, batches: u64, (polls, waited, trained): (u64, u64, u64)) -> Passes {
        Passes {
            dataset,
            begun: 1,
            batches,
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
    fn the_largest_dataset_is_trained_on_without_other_evidence() {
        let nothing = (0, 0, 0);
        assert_eq!(found(&[]), (None, vec![]));
        assert_eq!(found(&[passes(0, 9, nothing)]), (Some(0), vec![]));
        let all = [passes(0, 5, nothing), passes(1, 10, nothing)];
        assert_eq!(found(&all), (Some(1), vec![0]));
        // Two that take turns.
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
        // Its first steps may not have been seen in what only training does.
        let (trained, begins) = ((900, 100, 300), (60, 20, 0));
        assert!(not(&[once(0, 90, trained), once(1, 5, begins)]));
        // Seen of a job with epochs of a second, whose backward pass few stacks met.
        let few = [0, 8, 0, 3, 1].map(|trained| (100, 38, trained));
        let mut epochs: Vec<_> = (0..)
            .zip(few)
            .map(|(id, time)| once(id, 60, time))
            .collect();
        epochs.push(Passes {
            begun: 2,
            ..passes(9, 120, (207, 80, 23))
        });
        assert!(not(&epochs));
        let evaluated = (140, 20, 0);
        assert_eq!(
            found(&[once(0, 90, trained), once(1, 50, evaluated)]).1,
            [1]
        );
    }

    #[test]
    fn a_new_dataset_where_an_earlier_one_was_is_no_validation() {
        let again = |dataset, begun, batches| Passes {
            begun,
            ..passes(dataset, batches, (0, 0, 0))
        };
        let validations = |all: &[Passes]| found(all).1;
        let epochs = [again(0, 5, 60), again(1, 2, 24)];
        assert!(validations(&epochs).is_empty());
        // The newest has only begun.
        let begun = [epochs[0], epochs[1], again(2, 1, 3)];
        assert!(validations(&begun).is_empty());
        assert_eq!(validations(&[epochs[0], again(1, 5, 25)]), [1]);
        // The second pass of the training data has only begun.
        assert_eq!(validations(&[again(0, 2, 42), again(1, 1, 12)]), [1]);
    }

    #[test]
    fn a_validation_with_more_batches_than_training_is_one() {
        let all = [
            passes(0, 500, (4000, 1000, 40)),
            passes(1, 100, (2000, 500, 900)),
        ];
        assert_eq!(found(&all), (Some(1), vec![0]));
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
