//! On which of its datasets a main thread spends its time.
//!
//! Depends only on how many batches each has yielded, not on loaders.

use crate::sample::MainTally;

/// After this many batches in a row of one dataset, the trainer is going through that dataset, instead of alternating
/// between datasets in each step.
const MIN_CONSECUTIVE: u64 = 2;

/// Time in beats, which are called polls in samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spent {
    pub(super) polls: u64,
    /// Beats in the loader.
    pub(super) waited: u64,
    /// Beats in which a stack showed something that only training does.
    pub(super) trained: u64,
}

impl Spent {
    fn add(&mut self, more: Self) {
        self.polls += more.polls;
        self.waited += more.waited;
        self.trained += more.trained;
    }
}

#[derive(Debug, Default)]
pub(super) struct Turns {
    counted: Spent,
    /// The dataset that yielded last, and how many batches in a row.
    dataset: Option<usize>,
    in_a_row: u64,
    /// Time of that dataset that has not been returned yet.
    held: Spent,
    /// Whether the iterator of `dataset` has ended: the time until the next batch does not belong to it.
    ended: bool,
    /// Time in a loader since the last batch; it belongs to the dataset that yields next.
    next: Spent,
}

impl Turns {
    /// Adds the time since the previous call. `trains`: whether the last stack showed something that only training
    /// does.
    pub(super) fn spend(&mut self, tally: &MainTally, trains: bool) {
        let waited = tally.waiting + tally.receiving + tally.loading;
        let polls = tally.polls.saturating_sub(self.counted.polls);
        let inside = waited.saturating_sub(self.counted.waited).min(polls);
        self.counted = Spent {
            polls: tally.polls,
            waited,
            trained: 0,
        };
        self.next.add(Spent {
            polls: inside,
            waited: inside,
            trained: 0,
        });
        if self.ended {
            return;
        }
        let outside = polls - inside;
        self.held.add(Spent {
            polls: outside,
            waited: 0,
            trained: if trains { outside } else { 0 },
        });
    }

    /// Records how many batches these datasets have yielded since the previous call. Returns the dataset whose time is
    /// now known, and that time.
    pub(super) fn yielded(&mut self, moved: &[(usize, u64)]) -> Option<(usize, Spent)> {
        let before = self.settled();
        self.ended &= moved.is_empty();
        match *moved {
            [] => return None,
            [(dataset, batches)] if self.dataset.is_none_or(|it| it == dataset) => {
                self.dataset = Some(dataset);
                self.in_a_row += batches;
                self.held.add(std::mem::take(&mut self.next));
            }
            [(dataset, batches)] => {
                (self.dataset, self.in_a_row) = (Some(dataset), batches);
                let own = std::mem::replace(&mut self.held, std::mem::take(&mut self.next));
                return before.map(|before| (before, own));
            }
            _ => self.forget(),
        }
        Some((self.settled()?, std::mem::take(&mut self.held)))
    }

    /// Drops the time until now, which belongs to no dataset: the trainer goes through several at once, or none was
    /// known.
    pub(super) fn forget(&mut self) {
        *self = Self {
            counted: self.counted,
            ..Self::default()
        };
    }

    /// Records that an iterator over this dataset is gone.
    pub(super) fn end(&mut self, dataset: usize) {
        self.ended |= self.dataset == Some(dataset);
    }

    /// Records that the trainer goes through `dataset`, which was found late and has yielded `batches` since the other
    /// one stopped. Returns the dataset, and its time until now.
    pub(super) fn found(&mut self, dataset: usize, batches: u64) -> Option<(usize, Spent)> {
        let another = self.dataset.is_some_and(|before| before != dataset);
        if !another || batches == 0 {
            return None;
        }
        (self.dataset, self.in_a_row, self.ended) = (Some(dataset), batches, false);
        Some((self.settled()?, std::mem::take(&mut self.held)))
    }

    /// Returns the dataset that the trainer is going through.
    fn settled(&self) -> Option<usize> {
        self.dataset.filter(|_| self.in_a_row >= MIN_CONSECUTIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAINING: usize = 7;
    const VALIDATION: usize = 9;

    /// Spends time: `polls` in all, `waits` of them in the loader.
    fn after(turns: &mut Turns, polls: u64, waits: u64, trains: bool) {
        let (before, waited) = (turns.counted.polls, turns.counted.waited);
        let tally = MainTally {
            polls: before + polls,
            waiting: waited + waits,
            ..MainTally::default()
        };
        turns.spend(&tally, trains);
    }

    fn spent(polls: u64, waited: u64, trained: u64) -> Spent {
        Spent {
            polls,
            waited,
            trained,
        }
    }

    #[test]
    fn a_wait_belongs_to_the_dataset_that_yields_next() {
        let mut turns = Turns::default();
        after(&mut turns, 3, 3, false);
        assert_eq!(turns.yielded(&[(TRAINING, 1)]), None);
        after(&mut turns, 5, 0, true);
        after(&mut turns, 2, 2, false);
        let wanted = Some((TRAINING, spent(10, 5, 5)));
        assert_eq!(turns.yielded(&[(TRAINING, 1)]), wanted);
        after(&mut turns, 5, 0, true);
        // The workers of the validation loader start.
        after(&mut turns, 40, 40, false);
        assert_eq!(turns.yielded(&[]), None);
        let wanted = Some((TRAINING, spent(5, 0, 5)));
        assert_eq!(turns.yielded(&[(VALIDATION, 1)]), wanted);
        after(&mut turns, 5, 0, false);
        let wanted = Some((VALIDATION, spent(45, 40, 0)));
        assert_eq!(turns.yielded(&[(VALIDATION, 1)]), wanted);
    }

    #[test]
    fn the_time_after_the_end_of_an_iterator_is_no_ones() {
        let mut turns = Turns::default();
        turns.yielded(&[(VALIDATION, 2)]);
        after(&mut turns, 5, 0, false);
        turns.end(VALIDATION);
        // A checkpoint, and the start of the next epoch's workers.
        after(&mut turns, 50, 0, false);
        after(&mut turns, 3, 3, false);
        let wanted = Some((VALIDATION, spent(5, 0, 0)));
        assert_eq!(turns.yielded(&[(TRAINING, 1)]), wanted);
        turns.end(VALIDATION);
        after(&mut turns, 4, 0, true);
        let wanted = Some((TRAINING, spent(7, 3, 4)));
        assert_eq!(turns.yielded(&[(TRAINING, 1)]), wanted);
    }

    #[test]
    fn a_dataset_found_late_gets_the_time_since_the_other_is_idle() {
        let mut turns = Turns::default();
        turns.yielded(&[(TRAINING, 2)]);
        after(&mut turns, 30, 0, false);
        let wanted = Some((VALIDATION, spent(30, 0, 0)));
        assert_eq!(turns.found(VALIDATION, 5), wanted);
        after(&mut turns, 6, 0, false);
        let wanted = Some((VALIDATION, spent(6, 0, 0)));
        assert_eq!(turns.yielded(&[(VALIDATION, 1)]), wanted);
    }

    #[test]
    fn the_time_of_the_first_dataset_counts_from_when_it_is_found() {
        let mut turns = Turns::default();
        after(&mut turns, 90, 0, false);
        turns.forget();
        after(&mut turns, 20, 4, true);
        let wanted = Some((TRAINING, spent(20, 4, 16)));
        assert_eq!(turns.yielded(&[(TRAINING, 4)]), wanted);
    }

    #[test]
    fn datasets_that_take_turns_in_each_step_have_no_time_of_their_own() {
        let mut turns = Turns::default();
        for _ in 0..20 {
            for dataset in [TRAINING, VALIDATION] {
                after(&mut turns, 7, 2, true);
                assert_eq!(turns.yielded(&[(dataset, 1)]), None);
            }
        }
        for _ in 0..20 {
            after(&mut turns, 70, 20, true);
            let both = [(TRAINING, 5), (VALIDATION, 5)];
            assert_eq!(turns.yielded(&both), None);
        }
    }
}
