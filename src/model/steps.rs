//! How long the newest steps of each rank took, and what each batch was waited for: one by one, for how they are
//! spread.
//!
//! Pure arithmetic on waits; no opinion about what is good. Fixed memory for each rank.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::sample::{RankSample, Sample, Wait};
use crate::units::ProcessKey;

/// Steps that are kept of each rank: the newest.
const KEPT: usize = 1024;
/// So many steps between two waits that were seen are taken for alike; of more, nothing is said.
const ALIKE: u64 = 4;

/// The newest steps of every rank of the job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Steps {
    ranks: BTreeMap<ProcessKey, RankSteps>,
}

/// The newest steps of one rank. What lies between the waits for two neighbouring batches is one step. Where it is
/// a few steps, the batches between were there at once, as far as could be seen: their wait is none, and each step has
/// the mean.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankSteps {
    steps: VecDeque<Step>,
    last: Option<Wait>,
    /// Steps since then of which nothing can be said.
    unseen: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    waited_ms: f64,
    worked_ms: f64,
    /// When it ended, since pipetop started.
    to: Duration,
    /// It is the mean of a few.
    mean: bool,
    /// Steps before it of which nothing can be said.
    merged: u32,
}

/// Times in milliseconds, in order of their length.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    sorted: Vec<f64>,
}

/// Times from one length to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    pub from_ms: f64,
    /// `None` = and all that are longer.
    pub to_ms: Option<f64>,
    pub count: usize,
}

impl Steps {
    /// Takes the waits in that ended since the sample before. Ranks that are gone are forgotten.
    pub(super) fn add(&mut self, before: Option<&Sample>, sample: &Sample) {
        fn ranks(sample: &Sample) -> impl Iterator<Item = &RankSample> {
            sample.job.iter().flat_map(|job| &job.ranks)
        }
        self.ranks
            .retain(|key, _| ranks(sample).any(|rank| rank.key == *key));
        for RankSample { key, waits, .. } in ranks(sample) {
            let before = before.and_then(|before| ranks(before).find(|rank| rank.key == *key));
            for wait in waits.since(before.map(|before| &before.waits)) {
                self.add_wait(*key, *wait);
            }
        }
    }

    /// A wait of this rank that ended, later than all before it.
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
            // Time ran back: a recording was wound back.
            return;
        };
        let Some((older, newer)) = last.batch.zip(wait.batch) else {
            self.unseen = self.unseen.saturating_add(1);
            return;
        };
        match newer.checked_sub(older) {
            // A new epoch counts anew.
            None => {}
            // A batch can be waited for in several stays, as where another's comes first.
            Some(0) => {
                self.last = Some(Wait {
                    to: wait.to,
                    ..last
                });
            }
            Some(apart @ 1..=ALIKE) => {
                let millis = |time: Duration| 1000.0 * time.as_secs_f64();
                let mut waited_ms = millis(last.to.saturating_sub(last.from));
                for _ in 0..apart {
                    if self.steps.len() == KEPT {
                        self.steps.pop_front();
                    }
                    self.steps.push_back(Step {
                        waited_ms: std::mem::take(&mut waited_ms),
                        worked_ms: millis(step) / apart as f64,
                        to: wait.from,
                        mean: apart > 1,
                        merged: std::mem::take(&mut self.unseen),
                    });
                }
            }
            Some(apart) => {
                let steps = u32::try_from(apart).unwrap_or(u32::MAX);
                self.unseen = self.unseen.saturating_add(steps);
            }
        }
    }

    /// Steps that are kept.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Of those, the ones that are means of a few neighbours.
    pub fn means(&self) -> usize {
        self.steps.iter().filter(|step| step.mean).count()
    }

    /// All steps in that time, those of which nothing can be said among them.
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
        let mut sorted: Vec<f64> = times.collect();
        sorted.sort_by(f64::total_cmp);
        Self { sorted }
    }

    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The length that this share of the times does not exceed (nearest rank). `None` where there is no time.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a list"
        )]
        let place = (share * self.sorted.len() as f64).ceil().max(1.0) as usize;
        self.sorted.get(place - 1).copied()
    }

    /// Times by their length, in at most so many steps of a round length. The last takes what is longer than
    /// most: a single checkpoint does not flatten all others.
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

/// 1, 2 or 5 and zeros, at least a tenth of a millisecond.
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
        // Nobody saw a wait for batch 3: from 2 to 4 lie two steps.
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
    fn of_steps_without_number_or_too_many_nothing_is_said() {
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
        assert_eq!((steps.len(), steps.all()), (KEPT, KEPT as u64));
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
