//! The batch clock that any process of the same user can read: shared-memory segments are named
//! `torch_PID_RANDOM_NUMBER` after the worker that made them, and each worker counts its own.
//!
//! Depends only on the names of segments, not on loaders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::units::Pid;

/// Parses a segment's maker and number.
fn segment(target: &Path) -> Option<(Pid, u64)> {
    let name = target.to_str()?.strip_prefix("/dev/shm/torch_")?;
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    let mut parts = name.split('_');
    let maker = parts.next()?.parse().ok()?;
    let number = parts.nth(1)?.parse().ok()?;
    Some((Pid(maker), number))
}

/// Counts batches by the segments that the trainer holds.
#[derive(Debug, Clone, Default)]
pub struct SegmentClock {
    /// The workers whose batches are counted.
    alive: BTreeSet<Pid>,
    workers: BTreeMap<Pid, Made>,
    /// How often runs of each length were seen among a worker's segments: one run is one batch.
    runs: BTreeMap<u64, u64>,
    /// Batches of workers that are gone, since each was first seen.
    gone: u64,
}

/// Number of segments that a worker had made when it was first and last seen.
#[derive(Debug, Clone, Copy)]
struct Made {
    first: u64,
    last: u64,
}

impl SegmentClock {
    /// Records the targets of the trainer's descriptors.
    pub fn poll<'a>(&mut self, targets: impl Iterator<Item = &'a Path>) {
        let mut held: BTreeMap<Pid, Vec<u64>> = BTreeMap::new();
        for (maker, number) in targets.filter_map(segment) {
            held.entry(maker).or_default().push(number);
        }
        for (maker, mut numbers) in held
            .into_iter()
            .filter(|(maker, _)| self.alive.contains(maker))
        {
            numbers.sort_unstable();
            numbers.dedup();
            let newest = numbers.last().copied().unwrap_or_default() + 1;
            let made = self.workers.entry(maker).or_insert(Made {
                first: newest,
                last: 0,
            });
            if newest > made.last {
                made.last = newest;
                for run in numbers.chunk_by(|one, next| one + 1 == *next) {
                    *self.runs.entry(run.len() as u64).or_default() += 1;
                }
            }
        }
    }

    /// Whether a segment of a living worker was ever seen.
    pub fn has_any(&self) -> bool {
        !self.workers.is_empty()
    }

    /// Returns the number of tensors in a batch: the most common run. `None` before a few batches were seen.
    fn tensors(&self) -> Option<u64> {
        let seen: u64 = self.runs.values().sum();
        let (run, _) = self
            .runs
            .iter()
            .max_by_key(|(run, count)| (**count, **run))?;
        (seen >= 3).then_some(*run)
    }

    /// Returns the number of batches that `worker` made and the trainer took, since the worker began.
    pub fn batches(&self, worker: Pid) -> Option<u64> {
        Some(self.workers.get(&worker)?.last / self.tensors()?)
    }

    /// Returns the number of batches that the trainer took from all workers since each was first seen.
    pub fn taken(&self) -> Option<u64> {
        let tensors = self.tensors()?;
        let since_seen = |made: &Made| (made.last - made.first) / tensors + 1;
        Some(self.gone + self.workers.values().map(since_seen).sum::<u64>())
    }

    /// Counts for these workers from now on. Those that are gone are counted for the last time, because their PIDs may
    /// be used again.
    pub fn follow(&mut self, workers: impl Iterator<Item = Pid>) {
        let before = self.taken();
        self.alive = workers.collect();
        self.workers.retain(|worker, _| self.alive.contains(worker));
        if let (Some(before), Some(after)) = (before, self.taken()) {
            self.gone += before - after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(clock: &mut SegmentClock, names: &[&str]) {
        clock.poll(names.iter().map(Path::new));
    }

    #[test]
    fn numbers_in_names_count_batches() {
        let mut clock = SegmentClock::default();
        clock.follow([Pid(7), Pid(8)].into_iter());
        poll(
            &mut clock,
            &["/dev/shm/torch_6_1_5", "/dev/shm/torch_6_1_6"],
        );
        poll(
            &mut clock,
            &[
                "/dev/shm/torch_7_11_0 (deleted)",
                "/dev/shm/torch_7_12_1 (deleted)",
            ],
        );
        assert_eq!(
            clock.batches(Pid(7)),
            None,
            "one look does not tell the tensors of a batch"
        );
        poll(
            &mut clock,
            &[
                "/dev/shm/torch_7_11_2 (deleted)",
                "/dev/shm/torch_7_12_3 (deleted)",
            ],
        );
        poll(
            &mut clock,
            &[
                "/dev/shm/torch_8_1_8",
                "/dev/shm/torch_8_2_9",
                "pipe:[1]",
                "/dev/shm/x",
            ],
        );
        assert_eq!(
            (clock.batches(Pid(7)), clock.batches(Pid(8))),
            (Some(2), Some(5))
        );
        assert_eq!(clock.batches(Pid(9)), None);
        assert_eq!(
            clock.taken(),
            Some(2 + 1),
            "what was taken before the first look is not counted"
        );
        clock.follow([Pid(8)].into_iter());
        assert_eq!((clock.batches(Pid(7)), clock.taken()), (None, Some(3)));
    }

    #[test]
    fn foreign_names_are_no_segments() {
        for name in [
            "/dev/shm/torch_",
            "/dev/shm/torch_a_b_c",
            "/dev/shm/torch_1_2",
            "torch_1_2_3",
        ] {
            assert_eq!(segment(Path::new(name)), None, "{name}");
        }
    }
}
