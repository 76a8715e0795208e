//! The time that the main thread spends on each dataset: on a validation's, and in turns.
//!
//! Which dataset is a validation's is decided elsewhere.

use crate::model::datasets;
use crate::model::rates::tally::MainGrown;
use crate::model::rates::{Estimate, ValidationRates};
use crate::sample::{Passes, RankSample};
use crate::units::Share;

/// Time that the main thread spent on each dataset and, in it, in the loader: in polls.
pub(super) struct TimeOnData<'a> {
    older: &'a [Passes],
    newer: &'a [Passes],
    all: u64,
    inside: u64,
}

impl<'a> TimeOnData<'a> {
    /// `None` if the main thread was not polled.
    pub(super) fn of(
        older: Option<&'a RankSample>,
        newer: &'a RankSample,
        polled: Option<&MainGrown>,
    ) -> Option<Self> {
        let polled = polled?;
        Some(Self {
            older: older.map_or(&[], |older| &older.passes),
            newer: &newer.passes,
            all: polled.tally.polls + polled.before,
            inside: polled.tally.in_loader() + polled.waited_before,
        })
    }

    fn grown(&self, newer: &Passes) -> (u64, u64) {
        let older = self
            .older
            .iter()
            .find(|older| older.dataset == newer.dataset);
        let older = older.copied().unwrap_or_default();
        let polls = newer.polls.saturating_sub(older.polls);
        (polls, newer.waited.saturating_sub(older.waited))
    }

    /// Returns the time spent on the datasets that are not trained on. If the wait is reported, polls show which part
    /// of it was for them.
    pub(super) fn validation(&self, wait: Option<Estimate>) -> Option<ValidationRates> {
        datasets::training(self.newer)?;
        let validations = datasets::validations(self.newer).map(|passes| self.grown(passes));
        let (polls, waited) = validations.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let of_wait = Share::of(waited as f64, self.inside as f64).unwrap_or_default();
        Some(ValidationRates {
            time: Share::of(polls as f64, self.all as f64)?.clamped(),
            waiting: Share(of_wait.clamped().0 * wait?.share.0),
        })
    }

    /// Returns the share of the time spent on a dataset. `None` unless the trainer goes through one after the other.
    pub(super) fn share(&self, dataset: u64) -> Option<Share> {
        let newer = self.newer.iter().find(|newer| newer.dataset == dataset)?;
        let share = Share::of(self.grown(newer).0 as f64, self.all as f64)?;
        datasets::take_long_turns(self.newer).then(|| share.clamped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_two_datasets_has_its_part_unless_they_take_turns_in_each_step() {
        let passes = |dataset, returns, polls| Passes {
            dataset,
            begun: 9,
            batches: 900,
            longest: 100,
            returns,
            polls,
            ..Passes::default()
        };
        let older = [passes(0, 8, 4000), passes(1, 8, 2000)];
        let newer = [passes(0, 9, 4600), passes(1, 9, 2200)];
        let time = |newer| TimeOnData {
            older: &older,
            newer,
            all: 800,
            inside: 0,
        };
        let shares = [0, 1, 2].map(|dataset| time(&newer).share(dataset));
        assert_eq!(shares, [Some(Share(0.75)), Some(Share(0.25)), None]);
        let in_each_step = [passes(0, 800, 4600), passes(1, 800, 2200)];
        assert_eq!(time(&in_each_step).share(0), None);
    }
}
