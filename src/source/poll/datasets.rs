//! Passes of a main thread through its datasets, and the time spent on each.
//!
//! Does not depend on how iterators are read.

use super::turns::Spent;
use crate::sample::Passes;

/// Maximum number of datasets whose passes are counted: those seen last.
const DATASETS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Datasets {
    /// The one that yielded last is at the end.
    known: Vec<DatasetPasses>,
    /// Number of datasets seen.
    seen: u64,
}

#[derive(Debug)]
struct DatasetPasses {
    address: usize,
    passes: Passes,
    /// Batches of the newest pass.
    batches: u64,
}

impl Datasets {
    /// Counts what an iterator over the dataset at this address has yielded. Less than before means the next pass.
    pub(super) fn count(&mut self, address: usize, yielded: u64) {
        let is = |known: &DatasetPasses| known.address == address;
        let Some(at) = self.known.iter().position(is) else {
            if self.known.len() == DATASETS {
                self.known.remove(0);
            }
            self.known.push(DatasetPasses {
                address,
                passes: Passes {
                    dataset: self.seen,
                    begun: 1,
                    batches: yielded,
                    longest: yielded,
                    ..Passes::default()
                },
                batches: yielded,
            });
            self.seen += 1;
            return;
        };
        let mut known = self.known.remove(at);
        known.passes.returns += u64::from(at < self.known.len());
        let next = yielded < known.batches;
        let since = if next { 0 } else { known.batches };
        known.passes.begun += u64::from(next);
        known.passes.batches += yielded - since;
        known.passes.longest = known.passes.longest.max(yielded);
        known.batches = yielded;
        self.known.push(known);
    }

    /// Adds time spent on the dataset at this address.
    pub(super) fn add(&mut self, spent: Option<(usize, Spent)>) {
        let Some((address, spent)) = spent else {
            return;
        };
        if let Some(known) = self.known.iter_mut().find(|it| it.address == address) {
            known.passes.polls += spent.polls;
            known.passes.waited += spent.waited;
            known.passes.trained += spent.trained;
        }
    }

    /// Returns the number of the dataset at this address.
    pub(super) fn number(&self, address: usize) -> Option<u64> {
        let known = self.known.iter().find(|known| known.address == address)?;
        Some(known.passes.dataset)
    }

    pub(super) fn passes(&self) -> Vec<Passes> {
        self.known.iter().map(|known| known.passes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_restart_of_the_count_is_a_pass() {
        let mut datasets = Datasets::default();
        // Attached in the middle of a pass; then two more, and a validation between them.
        for (address, yielded) in [
            (7, 40),
            (7, 41),
            (7, 2),
            (9, 1),
            (9, 6),
            (7, 0),
            (7, 5),
            (9, 2),
        ] {
            datasets.count(address, yielded);
        }
        let wanted = |dataset, begun, (batches, longest), returns| Passes {
            dataset,
            begun,
            batches,
            longest,
            returns,
            ..Passes::default()
        };
        let passes = datasets.passes();
        assert_eq!(passes, [wanted(0, 3, (48, 41), 1), wanted(1, 2, (8, 6), 1)]);
        // Of many datasets, those that the trainer comes back to are kept.
        for other in 100..200 {
            datasets.count(7, 5);
            datasets.count(other, 1);
        }
        let passes = datasets.passes();
        assert_eq!(passes.len(), DATASETS);
        assert_eq!(passes[DATASETS - 1], wanted(101, 1, (1, 1), 0));
        assert_eq!(passes[DATASETS - 2], wanted(0, 3, (48, 41), 101));
    }
}
