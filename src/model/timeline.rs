//! The newest minutes poll by poll: the states of each worker and trainer, the number of ready batches, the waits, and
//! the batches of each worker.
//!
//! Fixed memory for two minutes: a byte per track and slot of 25 ms (5 KB per worker), 4 KB of batches per worker, 80
//! KB of waits per rank. Records what was seen, and where that is only a bound; does not depend on cells or colours.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::WorkerPlace;
use crate::sample::{
    PollTrace, RankSample, SLOT, Sample, SlotState, TrainerNow, Wait, WorkerNow, WorkerSample, slot,
};
use crate::units::{ProcessKey, keep_newest};

/// Number of slots kept per track.
const SLOTS: usize = 4800;
/// Maximum number of tracks.
const TRACKS: usize = 640;
/// Number of waits kept of each rank.
const WAITS: usize = 2048;
/// Number of batches kept of each worker.
const BATCHES: usize = 100;
/// Slots by which the last poll of a living process may lag behind on a busy machine.
const LATE: u64 = 60;
/// Maximum number of slots between two polls that are filled in: more than between the rarest polls.
const MAX_FILLED_SLOTS: usize = 20;

/// The process or queue that was polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    Trainer(ProcessKey),
    Worker(WorkerPlace),
    /// The queue of this loader.
    Queue(ProcessKey, u64),
}

/// What was seen of each track, slot by slot.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    tracks: BTreeMap<Track, PollTrace>,
    waits: BTreeMap<ProcessKey, VecDeque<Wait>>,
    batches: BTreeMap<WorkerPlace, VecDeque<Batch>>,
    newest: Duration,
}

/// A batch that a worker made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batch {
    /// The loader's number of the batch, from 0 in each epoch.
    pub number: u64,
    /// In seconds since pipetop started.
    pub from: f64,
    pub to: f64,
}

/// The state in a slot, and whether it is only a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot<T> {
    pub what: T,
    /// Not polled, and the polls on either side differ: the change is in this slot or next to it.
    pub bound: bool,
}

impl Timeline {
    /// Adds what is new in `sample` since the one before.
    pub(super) fn add(&mut self, before: Option<&Sample>, sample: &Sample) {
        let now = sample.at.since_start;
        if now < self.newest {
            // A recording was rewound.
            *self = Self::default();
        }
        self.newest = now;
        let old = slot(now).saturating_sub(SLOTS as u64);
        self.tracks.retain(|_, polls| polls.end() > old);
        for rank in sample.ranks() {
            let before = before.and_then(|before| before.rank(rank.key));
            self.add_waits(rank, before);
            self.append(Track::Trainer(rank.key), &rank.polls);
            for loader in &rank.loaders {
                self.append(Track::Queue(rank.key, loader.id), &loader.queue_polls);
                for worker in &loader.workers {
                    let place = WorkerPlace::new(rank.key, loader.id, worker.id);
                    self.append(Track::Worker(place), &worker.polls);
                    self.add_batches(place, worker, before);
                }
            }
        }
        let tracks = &self.tracks;
        self.waits
            .retain(|rank, _| tracks.contains_key(&Track::Trainer(*rank)));
        self.batches
            .retain(|place, _| tracks.contains_key(&Track::Worker(*place)));
    }

    fn add_batches(
        &mut self,
        place: WorkerPlace,
        worker: &WorkerSample,
        before: Option<&RankSample>,
    ) {
        if worker.loads.is_none() || !self.tracks.contains_key(&Track::Worker(place)) {
            return;
        }
        let before = before.and_then(|rank| rank.worker(worker.key)?.loads.as_ref());
        let before = before.map(|loads| &loads.ended);
        let loads = worker.loads.iter();
        let batches = self.batches.entry(place).or_default();
        for load in loads.flat_map(|loads| loads.ended.since(before)) {
            let Some(ended) = load.ended else { continue };
            let to = ended.as_secs_f64();
            let batch = Batch {
                number: load.batch,
                from: to - load.middle_ms() / 1000.0,
                to,
            };
            keep_newest(batches, batch, BATCHES);
        }
    }

    fn add_waits(&mut self, rank: &RankSample, before: Option<&RankSample>) {
        let waits = self.waits.entry(rank.key).or_default();
        for wait in rank.waits.since(before.map(|before| &before.waits)) {
            // Waits from polls and waits from reports may overlap, and either may come late.
            if waits.back().is_some_and(|last| wait.from < last.to) {
                continue;
            }
            keep_newest(waits, *wait, WAITS);
        }
    }

    fn append(&mut self, track: Track, polls: &PollTrace) {
        let room = self.tracks.len() < TRACKS || self.tracks.contains_key(&track);
        if room && !polls.is_empty() {
            self.tracks.entry(track).or_default().append(polls, SLOTS);
        }
    }

    /// Returns whether there is any data on this rank.
    pub fn has_rank(&self, rank: ProcessKey) -> bool {
        self.tracks.contains_key(&Track::Trainer(rank))
    }

    fn of_rank(&self, rank: ProcessKey) -> impl Iterator<Item = &PollTrace> {
        let of_rank = move |track: &Track| match track {
            Track::Trainer(key) | Track::Queue(key, _) => *key == rank,
            Track::Worker(place) => place.rank == rank,
        };
        let tracks = self.tracks.iter();
        tracks.filter_map(move |(track, polls)| of_rank(track).then_some(polls))
    }

    /// Returns the time, in seconds, since which most tracks of this rank were polled.
    pub fn seen_from(&self, rank: ProcessKey) -> Option<f64> {
        let first = self.of_rank(rank).filter_map(PollTrace::seen_from);
        let mut first: Vec<u64> = first.collect();
        first.sort_unstable();
        let median = *first.get(first.len() / 2)?;
        Some(median as f64 * SLOT.as_secs_f64())
    }

    /// Returns the time, in seconds, until which all tracks of this rank were polled. Ignores tracks that are gone.
    pub fn seen_until(&self, rank: ProcessKey) -> Option<f64> {
        let ends = self.of_rank(rank).map(PollTrace::seen_until);
        let late = slot(self.newest).saturating_sub(LATE);
        let end = ends.filter(|end| *end > late).min()?;
        Some(end as f64 * SLOT.as_secs_f64())
    }

    /// Returns what a worker did in the slots from `from` to before `to`.
    pub fn worker(
        &self,
        place: WorkerPlace,
        (from, to): (u64, u64),
    ) -> Vec<Option<Slot<WorkerNow>>> {
        self.slots(Track::Worker(place), from, to)
    }

    /// Returns what the trainer did, by polls alone.
    pub fn trainer(
        &self,
        rank: ProcessKey,
        (from, to): (u64, u64),
    ) -> Vec<Option<Slot<TrainerNow>>> {
        self.slots(Track::Trainer(rank), from, to)
    }

    /// Returns how many batches were ready.
    pub fn queue(
        &self,
        rank: ProcessKey,
        loader: u64,
        (from, to): (u64, u64),
    ) -> Vec<Option<Slot<u32>>> {
        self.slots(Track::Queue(rank, loader), from, to)
    }

    /// Returns the kept batches of a worker whose times are known, oldest first.
    pub fn batches(&self, place: WorkerPlace) -> impl DoubleEndedIterator<Item = &Batch> {
        self.batches.get(&place).into_iter().flatten()
    }

    /// Returns the kept waits of a rank, oldest first.
    pub fn waits(&self, rank: ProcessKey) -> impl DoubleEndedIterator<Item = &Wait> {
        self.waits.get(&rank).into_iter().flatten()
    }

    fn slots<T: SlotState + PartialEq>(
        &self,
        track: Track,
        from: u64,
        to: u64,
    ) -> Vec<Option<Slot<T>>> {
        let Some(polls) = self.tracks.get(&track) else {
            return Vec::new();
        };
        // Polls a little before the first slot or after the last one may fill in some of them.
        let (before, after) = (
            from.saturating_sub(MAX_FILLED_SLOTS as u64),
            to + MAX_FILLED_SLOTS as u64,
        );
        let seen = (before..after).map(|slot| polls.seen(slot));
        let slots = filled(&seen.collect::<Vec<_>>()).into_iter();
        let here = (before..).zip(slots);
        here.filter(|(slot, _)| (from..to).contains(slot))
            .map(|(_, what)| what)
            .collect()
    }
}

/// Returns the slots between two times.
pub fn slots_of(from: Duration, to: Duration) -> (u64, u64) {
    (slot(from), slot(to + SLOT))
}

/// Fills the slots between two polls that are close together. If both polls agree, so do the slots between them.
fn filled<T: Copy + PartialEq>(seen: &[Option<T>]) -> Vec<Option<Slot<T>>> {
    let mut slots: Vec<Option<Slot<T>>> = Vec::with_capacity(seen.len());
    let mut last: Option<(usize, T)> = None;
    for (place, what) in seen.iter().enumerate() {
        slots.push(what.map(|what| Slot { what, bound: false }));
        let Some(what) = *what else { continue };
        if let Some((at, before)) = last.filter(|(at, _)| place - at <= MAX_FILLED_SLOTS) {
            let between = Slot {
                what: before,
                bound: before != what,
            };
            slots[at + 1..place].fill(Some(between));
        }
        last = Some((place, what));
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::literals::{first_loader, first_rank, training};

    const MS: Duration = Duration::from_millis(1);

    fn polls(from: u64, what: &[WorkerNow]) -> PollTrace {
        let mut polls = PollTrace::default();
        for (slot, now) in (from..).zip(what) {
            polls.record(SLOT * u32::try_from(slot).unwrap(), *now, 800);
        }
        polls
    }

    fn place(sample: &mut Sample) -> WorkerPlace {
        let rank = first_rank(sample).key;
        let loader = first_loader(sample);
        WorkerPlace {
            rank,
            loader: loader.id,
            id: loader.workers[0].id,
        }
    }

    /// Returns the timeline of samples that are a second apart: in each, the first worker had these states from this
    /// slot on.
    fn fed(seen: &[(u64, &[WorkerNow])]) -> (Timeline, WorkerPlace) {
        let mut timeline = Timeline::default();
        let mut before: Option<Sample> = None;
        for (second, (from, what)) in (1_u32..).zip(seen) {
            let mut sample = training(f64::from(second));
            first_loader(&mut sample).workers[0].polls = polls(*from, what);
            timeline.add(before.as_ref(), &sample);
            before = Some(sample);
        }
        let place = place(before.as_mut().unwrap());
        (timeline, place)
    }

    #[test]
    fn slots_of_samples_that_repeat_each_other_are_kept_once() {
        use WorkerNow::{Cpu, Idle};
        let (timeline, place) = fed(&[(0, &[Cpu, Cpu, Idle]), (1, &[Cpu, Idle, Cpu])]);
        let seen = timeline.worker(place, (0, 5));
        let what: Vec<_> = seen.iter().map(|slot| slot.map(|slot| slot.what)).collect();
        assert_eq!(what, [Some(Cpu), Some(Cpu), Some(Idle), Some(Cpu), None]);
    }

    #[test]
    fn coverage_ends_at_the_last_poll_of_the_least_polled() {
        let mut sample = training(1.0);
        let rank = first_rank(&mut sample);
        let key = rank.key;
        rank.polls = polls(0, &[WorkerNow::Idle; 40]);
        let worker = &mut first_loader(&mut sample).workers[0];
        worker.polls = polls(0, &[WorkerNow::Cpu; 30]);
        // After that nothing was seen.
        worker.polls.record(SLOT * 38, WorkerNow::Unknown, 800);
        let mut timeline = Timeline::default();
        timeline.add(None, &sample);
        assert_eq!(timeline.seen_until(key), Some(0.75));
    }

    #[test]
    fn from_when_most_were_seen() {
        let mut sample = training(2.0);
        let rank = first_rank(&mut sample);
        let key = rank.key;
        rank.polls = polls(4, &[WorkerNow::Idle; 40]);
        let loader = first_loader(&mut sample);
        loader.queue_polls = PollTrace::default();
        for worker in &mut loader.workers {
            worker.polls = polls(20, &[WorkerNow::Cpu; 20]);
        }
        let mut timeline = Timeline::default();
        assert_eq!(timeline.seen_from(key), None);
        timeline.add(None, &sample);
        assert_eq!(timeline.seen_from(key), Some(0.5));
    }

    #[test]
    fn unpolled_slots_are_bounds_or_unknown() {
        let known = |what, bound| Some(Slot { what, bound });
        assert_eq!(
            filled(&[None, Some(1), None, Some(1), None, Some(2), None]),
            [
                None,
                known(1, false),
                known(1, false),
                known(1, false),
                known(1, true),
                known(2, false),
                None
            ]
        );
        let mut far = vec![None; MAX_FILLED_SLOTS + 2];
        far[0] = Some(1);
        far[MAX_FILLED_SLOTS + 1] = Some(1);
        assert_eq!(filled(&far).iter().flatten().count(), 2);
    }

    #[test]
    fn time_that_runs_backwards_restarts_the_history() {
        let (mut timeline, place) = fed(&[(0, &[WorkerNow::Cpu]), (30, &[WorkerNow::Cpu])]);
        timeline.add(None, &training(0.5));
        assert_eq!(timeline.worker(place, (0, 40)), []);
    }

    #[test]
    fn waits_are_kept_in_order_for_current_ranks() {
        let mut sample = training(10.0);
        let wait = |from: u32, to: u32| Wait {
            from: from * MS,
            to: to * MS,
            batch: None,
            first: None,
            begins: false,
        };
        let rank = first_rank(&mut sample);
        let key = rank.key;
        rank.polls = polls(390, &[WorkerNow::Idle]);
        rank.waits = vec![wait(0, 100), wait(50, 90), wait(120, 130)].into();
        let mut timeline = Timeline::default();
        timeline.add(None, &sample);
        let kept: Vec<Wait> = timeline.waits(key).copied().collect();
        assert_eq!(kept, [wait(0, 100), wait(120, 130)]);
        assert!(timeline.has_rank(key));
        sample.job = None;
        sample.at.since_start = Duration::from_hours(1);
        timeline.add(None, &sample);
        assert_eq!(timeline.waits(key).count(), 0);
        assert!(!timeline.has_rank(key));
    }

    #[test]
    fn memory_is_bounded_as_workers_change() {
        let mut timeline = Timeline::default();
        for second in 0..50_u32 {
            let mut sample = training(f64::from(second));
            let polls = polls(u64::from(second) * 40, &[WorkerNow::Cpu; 40]);
            let loader = first_loader(&mut sample);
            let worker = loader.workers[0].clone();
            loader.workers = (0..100)
                .map(|id| crate::sample::WorkerSample {
                    id: second * 100 + id,
                    polls: polls.clone(),
                    ..worker.clone()
                })
                .collect();
            timeline.add(None, &sample);
        }
        assert!(timeline.tracks.len() <= TRACKS);
        assert!(timeline.tracks.values().all(|polls| polls.end() <= 2000));
    }
}
