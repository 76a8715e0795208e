//! Lengths of the newest steps of each rank and of the waits for their batches, one by one, for their distribution.
//!
//! Works on waits only; does not judge what is good. Uses fixed memory for each rank.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::sample::{Sample, Wait};
use crate::units::{ProcessKey, keep_newest, sorted, whole};

/// Number of newest steps kept of each rank.
const MAX_STEPS: usize = 1024;
/// Up to this many steps between two waits are assumed to be equal; more are counted as unseen.
const MAX_EQUAL_STEPS: u64 = 4;

/// The newest steps of every rank of the job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Steps {
    ranks: BTreeMap<ProcessKey, RankSteps>,
}

/// The newest steps of one rank. The time between the waits for two neighbouring batches is one step. If a few batches
/// were taken between two waits, polls saw no wait for them: they count as ready at once, and each step gets the mean
/// length.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankSteps {
    steps: VecDeque<TimedStep>,
    last: Option<Wait>,
    /// Steps since the last wait whose length is not known.
    unseen: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct TimedStep {
    waited_ms: f64,
    worked_ms: f64,
    /// When it ended, measured from when pipetop started.
    to: Duration,
    /// Its length is the mean of a few steps.
    mean: bool,
    /// Number of steps before it whose length is not known.
    merged: u32,
}

/// Times in milliseconds, shortest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    sorted: Vec<f64>,
}

/// One bar of a histogram: the times from one length to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    pub from_ms: f64,
    /// `None` means no upper limit.
    pub to_ms: Option<f64>,
    pub count: usize,
}

impl Steps {
    /// Adds the waits that ended since the sample before. Drops ranks that are gone.
    pub(super) fn add(&mut self, before: Option<&Sample>, sample: &Sample) {
        self.ranks.retain(|key, _| sample.rank(*key).is_some());
        for rank in sample.ranks() {
            let before = before.and_then(|before| before.rank(rank.key));
            for wait in rank.waits.since(before.map(|before| &before.waits)) {
                self.add_wait(rank.key, *wait);
            }
        }
    }

    /// Adds a wait of this rank that ended later than all before it.
    pub fn add_wait(&mut self, rank: ProcessKey, wait: Wait) {
        self.ranks.entry(rank).or_default().add(wait);
    }

    pub fn rank(&self, key: ProcessKey) -> Option<&RankSteps> {
        self.ranks.get(&key)
    }
}

impl RankSteps {
    fn add(&mut self, wait: Wait) {
        let Some(last) = self.last.replace(wait) else {
            return;
        };
        let Some(step) = wait.from.checked_sub(last.to) else {
            // Time ran backwards: a recording was rewound.
            return;
        };
        let Some((older, newer)) = last.batch.zip(wait.batch) else {
            self.unseen = self.unseen.saturating_add(1);
            return;
        };
        match newer.checked_sub(older) {
            // In a new epoch batches count from the start again.
            None => {}
            // The wait for a batch can be in several parts, for example if another batch comes first.
            Some(0) => {
                self.last = Some(Wait {
                    to: wait.to,
                    ..last
                });
            }
            Some(apart @ 1..=MAX_EQUAL_STEPS) => {
                let millis = |time: Duration| 1000.0 * time.as_secs_f64();
                let mut waited_ms = millis(last.to.saturating_sub(last.from));
                for _ in 0..apart {
                    let step = TimedStep {
                        waited_ms: std::mem::take(&mut waited_ms),
                        worked_ms: millis(step) / apart as f64,
                        to: wait.from,
                        mean: apart > 1,
                        merged: std::mem::take(&mut self.unseen),
                    };
                    keep_newest(&mut self.steps, step, MAX_STEPS);
                }
            }
            Some(apart) => {
                let steps = u32::try_from(apart).unwrap_or(u32::MAX);
                self.unseen = self.unseen.saturating_add(steps);
            }
        }
    }

    /// Returns the number of steps kept.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns how many of these are means of a few neighbours.
    pub fn means(&self) -> usize {
        self.steps.iter().filter(|step| step.mean).count()
    }

    /// Returns the number of all steps in that time, including those whose length is not known.
    pub fn all(&self) -> u64 {
        let merged: u64 = self.steps.iter().map(|step| u64::from(step.merged)).sum();
        self.steps.len() as u64 + merged + u64::from(self.unseen)
    }

    pub fn steps(&self) -> Spread {
        Spread::new(self.steps.iter().map(|step| step.worked_ms))
    }

    pub fn waits(&self) -> Spread {
        Spread::new(self.steps.iter().map(|step| step.waited_ms))
    }
}

impl Spread {
    fn new(times: impl Iterator<Item = f64>) -> Self {
        Self {
            sorted: sorted(times),
        }
    }

    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns the length that this share of the times does not exceed (nearest rank). `None` if there are no times.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let place = whole((share * self.sorted.len() as f64).ceil().max(1.0));
        self.sorted.get(place - 1).copied()
    }

    /// Returns a histogram with at most `most` bins of a round width. The last bin has no upper limit, so that a single
    /// checkpoint does not flatten all others.
    pub fn bins(&self, most: usize) -> Vec<Bin> {
        let (Some(shortest), Some(long)) = (self.quantile(0.0), self.quantile(0.99)) else {
            return Vec::new();
        };
        let width = round_up((long - shortest) / most.saturating_sub(2).max(1) as f64);
        let first = (shortest / width).floor() * width;
        let mut bins: Vec<Bin> = Vec::new();
        let mut rest = &self.sorted[..];
        let mut from_ms = first;
        while !rest.is_empty() {
            let last = bins.len() + 1 == most.max(1);
            let to_ms = from_ms + width;
            let count = if last {
                rest.len()
            } else {
                rest.partition_point(|time| *time < to_ms)
            };
            bins.push(Bin {
                from_ms,
                to_ms: (!last).then_some(to_ms),
                count,
            });
            rest = &rest[count..];
            from_ms = to_ms;
        }
        bins
    }
}

/// Returns `length` rounded up to 1, 2 or 5 times a power of ten, at least a tenth of a millisecond.
fn round_up(length: f64) -> f64 {
    let mut power = 0.1;
    while power * 10.0 < length {
        power *= 10.0;
    }
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let fitting = steps.into_iter().find(|step| *step >= length);
    fitting.unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(from: u64, to: u64, batch: Option<u64>) -> Wait {
        Wait {
            from: Duration::from_millis(from),
            to: Duration::from_millis(to),
            batch,
            first: None,
            begins: false,
        }
    }

    fn of(waits: &[Wait]) -> RankSteps {
        let mut steps = RankSteps::default();
        for wait in waits {
            steps.add(*wait);
        }
        steps
    }

    #[test]
    fn what_lies_between_the_waits_for_neighbouring_batches_is_a_step() {
        let steps = of(&[
            wait(0, 65, Some(1)),
            wait(103, 168, Some(2)),
            wait(210, 270, Some(3)),
        ]);
        assert_eq!((steps.len(), steps.all()), (2, 2));
        assert_eq!(steps.steps().quantile(0.5), Some(38.0));
        assert_eq!(steps.steps().quantile(0.99), Some(42.0));
        assert_eq!(steps.waits().quantile(1.0), Some(65.0));
    }

    #[test]
    fn a_batch_that_came_at_once_was_not_waited_for() {
        // No wait for batch 3 was seen: there are two steps from 2 to 4.
        let steps = of(&[
            wait(0, 65, Some(1)),
            wait(100, 160, Some(2)),
            wait(240, 300, Some(4)),
            wait(340, 400, Some(5)),
        ]);
        assert_eq!((steps.len(), steps.means(), steps.all()), (4, 2, 4));
        assert_eq!(steps.steps().quantile(1.0), Some(40.0));
        assert_eq!(steps.waits().quantile(0.25), Some(0.0));
        assert_eq!(steps.waits().quantile(1.0), Some(65.0));
    }

    #[test]
    fn unnumbered_or_too_many_steps_give_no_result() {
        let many = of(&[wait(0, 65, Some(1)), wait(900, 960, Some(9))]);
        assert_eq!((many.len(), many.all()), (0, 8));
        let uncounted = of(&[wait(0, 65, None), wait(100, 160, None)]);
        assert_eq!((uncounted.len(), uncounted.all()), (0, 1));
        assert_eq!(uncounted.steps().quantile(0.5), None);
        assert!(uncounted.steps().bins(8).is_empty());
    }

    #[test]
    fn stays_for_one_batch_are_one_wait() {
        let steps = of(&[
            wait(0, 30, Some(1)),
            wait(40, 65, Some(1)),
            wait(103, 168, Some(2)),
        ]);
        assert_eq!((steps.len(), steps.all()), (1, 1));
        assert_eq!(steps.steps().quantile(0.5), Some(38.0));
        assert_eq!(steps.waits().quantile(0.5), Some(65.0));
    }

    #[test]
    fn neither_a_new_epoch_nor_a_jump_back_makes_a_step() {
        let steps = of(&[
            wait(0, 65, Some(99)),
            wait(5000, 5100, Some(0)),
            wait(5140, 5200, Some(1)),
            wait(100, 200, Some(2)),
        ]);
        assert_eq!((steps.len(), steps.all()), (1, 1));
        assert_eq!(steps.steps().quantile(0.5), Some(40.0));
    }

    #[test]
    fn the_newest_are_kept() {
        let mut steps = RankSteps::default();
        for at in 0..3000 {
            steps.add(wait(at * 100, at * 100 + 50, Some(at)));
        }
        assert_eq!((steps.len(), steps.all()), (MAX_STEPS, MAX_STEPS as u64));
    }

    #[test]
    fn the_bins_hold_every_time_once_and_the_last_what_is_longest() {
        let times = (0..200).map(|at| 38.0 + f64::from(at % 10));
        let spread = Spread::new(times.chain([5000.0]));
        let bins = spread.bins(8);
        assert!(bins.len() <= 8, "{bins:?}");
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), 201);
        assert_eq!((bins[0].from_ms, bins[0].to_ms), (38.0, Some(40.0)));
        assert_eq!(
            bins.last().map(|bin| (bin.to_ms, bin.count)),
            Some((None, 1))
        );
        let alike = Spread::new([7.0; 5].into_iter()).bins(8);
        assert_eq!(alike.len(), 1, "{alike:?}");
    }
}
