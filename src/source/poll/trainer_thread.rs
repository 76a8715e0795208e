//! Which thread of a process trains, if that is not the main thread: Ray Train and some other launchers run the
//! training function in a thread, and the main thread waits for its end. Or the main thread puts batches into a queue for
//! the thread that trains.
//!
//! Does not depend on how stacks are read or waits recognised.

use std::time::Duration;

use super::blocked::Blocked;
use super::paced::{Paced, odd_pause};
use crate::loaders::FULL_QUEUE;
use crate::source::python::{InLoader, MainStack, Stacks, TrainerCandidate};

/// Mean time between two polls of the other threads, or more if they take long.
const PAUSE: Duration = Duration::from_millis(100);
/// A thread that was seen to train this often is the trainer, if the main thread never was.
const TRAINS: u32 = 2;
/// A thread that was seen with a loader of PyTorch this often is the trainer, if the main thread does little but sleep
/// or wait for the end of a thread. A thread that waits for room in a queue does not count: it takes batches for
/// another thread.
const MIN_BATCHES: u32 = 5;
/// The main thread does little else if at most one stack shows that for every this many that show it at rest.
const HARDLY: u32 = 5;

#[derive(Debug, Default)]
pub(super) struct TrainerThread {
    paced: Paced,
    /// Whether the main thread was seen to train.
    main_trains: bool,
    /// How often it was seen asleep or waiting for the end of a thread.
    main_sleeps: u32,
    /// How often it was seen doing anything else.
    main_runs: u32,
    /// Whether its last stack showed it waiting for another thread, but neither in its loader nor for room in a queue.
    main_waits: bool,
    /// How often it was seen waiting like that for a thread that trained, while it takes batches itself.
    steps_for_main: u32,
    /// The candidate, and how often it was seen to train and with a loader.
    seen: Option<(TrainerCandidate, u32, u32)>,
}

impl TrainerThread {
    /// Records a stack of the main thread. Returns the thread that is to be polled instead of it. A main thread that
    /// `takes` batches may feed a thread that trains, but not one that takes batches itself.
    pub(super) fn poll(
        &mut self,
        now: Duration,
        main: &MainStack,
        blocked: Blocked,
        takes: bool,
        stacks: &mut Stacks,
    ) -> Option<TrainerCandidate> {
        self.main(main, blocked);
        if self.main_trains {
            return None;
        }
        let pause = odd_pause(now, PAUSE);
        let trainers = self.paced.call(now, pause, || stacks.trainers(!takes));
        self.count(&trainers?.ok()?, takes)
    }

    /// Whether the other threads are to be polled, with a stack of the main thread.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        !self.main_trains && self.paced.is_due(now)
    }

    fn main(&mut self, stack: &MainStack, blocked: Blocked) {
        self.main_trains |= stack.trains;
        let not_for_room = stack.not_data != Some(FULL_QUEUE);
        let outside = stack.loader == InLoader::Outside;
        self.main_waits = stack.for_thread && outside && not_for_room;
        if stack.joins || blocked == Blocked::Timer {
            self.main_sleeps = self.main_sleeps.saturating_add(1);
        } else {
            self.main_runs = self.main_runs.saturating_add(1);
        }
    }

    /// Records the threads that were seen to train or with a loader. If more than one does, none of them is taken for
    /// the trainer. A main thread that takes batches and waits while another one trains lets it do a step at a time, for
    /// example in a pool: it is the main thread that waits for data.
    fn count(
        &mut self,
        trainers: &[TrainerCandidate],
        main_takes: bool,
    ) -> Option<TrainerCandidate> {
        let [one] = trainers else { return None };
        let (before, trained, took) = self.seen.unwrap_or((*one, 0, 0));
        if (before.state, before.thread) != (one.state, one.thread) {
            self.seen = None;
            return None;
        }
        let for_main = one.trains && main_takes && self.main_waits;
        self.steps_for_main = (self.steps_for_main).saturating_add(for_main.into());
        let trained = trained + u32::from(one.trains && !for_main);
        let took = if one.hands_on { 0 } else { took + 1 };
        self.seen = Some((*one, trained, took));
        let main_rests = !main_takes && HARDLY * self.main_runs <= self.main_sleeps;
        // The main thread may have begun to wait just after its stack was read.
        let trains = trained >= TRAINS && trained > self.steps_for_main;
        (trains || (took >= MIN_BATCHES && main_rests)).then_some(*one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Pid;

    fn seen(threads: &[(i32, bool)], main: &MainStack, blocked: Blocked) -> Option<u32> {
        let mut trainer = TrainerThread::default();
        trainer.main(main, blocked);
        let each = threads.iter().map(|(thread, trains)| TrainerCandidate {
            state: 4096,
            thread: Pid(*thread),
            trains: *trains,
            hands_on: false,
        });
        let all: Vec<TrainerCandidate> = each.collect();
        (1..20).find(|_| !trainer.main_trains && trainer.count(&all, false).is_some())
    }

    #[test]
    fn a_thread_that_trains_is_the_trainer_where_the_main_one_does_not() {
        let waits = MainStack {
            joins: true,
            ..MainStack::default()
        };
        let works = MainStack::default();
        let trains = MainStack {
            trains: true,
            ..MainStack::default()
        };
        let lock = Blocked::Lock;
        assert_eq!(seen(&[(7, true)], &works, lock), Some(TRAINS));
        assert_eq!(seen(&[(7, true)], &trains, lock), None);
        // A thread that only takes batches may prefetch them for the main thread.
        assert_eq!(seen(&[(7, false)], &works, lock), None);
        assert_eq!(seen(&[(7, false)], &waits, lock), Some(MIN_BATCHES));
        // One that only sleeps does not take them.
        assert_eq!(
            seen(&[(7, false)], &works, Blocked::Timer),
            Some(MIN_BATCHES)
        );
        assert_eq!(seen(&[(7, true), (8, true)], &waits, lock), None);
    }

    #[test]
    fn beside_a_main_thread_that_takes_batches_only_one_that_trains_is_the_trainer() {
        for trains in [true, false] {
            let mut trainer = TrainerThread::default();
            let waits = MainStack {
                joins: true,
                ..MainStack::default()
            };
            trainer.main(&waits, Blocked::Lock);
            let candidate = TrainerCandidate {
                state: 4096,
                thread: Pid(7),
                trains,
                hands_on: false,
            };
            let found = (0..100).any(|_| trainer.count(&[candidate], true).is_some());
            assert_eq!(found, trains);
        }
    }

    #[test]
    fn a_thread_that_makes_a_step_while_the_main_thread_waits_for_it_is_no_trainer() {
        let found = |in_loaders: &[InLoader], not_data, takes| {
            let mut trainer = TrainerThread::default();
            let candidate = TrainerCandidate {
                state: 4096,
                thread: Pid(7),
                trains: true,
                hands_on: false,
            };
            in_loaders.iter().cycle().take(100).any(|in_loader| {
                let waits = MainStack {
                    for_thread: true,
                    loader: *in_loader,
                    not_data,
                    ..MainStack::default()
                };
                trainer.main(&waits, Blocked::Lock);
                trainer.count(&[candidate], takes).is_some()
            })
        };
        let outside = InLoader::Outside;
        assert!(!found(&[outside], None, true));
        // It began to wait just after its stack was read.
        assert!(!found(&[outside, outside, InLoader::Loading], None, true));
        // It waits for a batch, or for room in the queue of a thread that trains.
        assert!(found(&[InLoader::Waiting], None, true));
        assert!(found(&[outside], Some(FULL_QUEUE), true));
        // It waits for a training function to end.
        assert!(found(&[outside], None, false));
    }

    #[test]
    fn a_thread_that_hands_batches_on_is_no_trainer() {
        let mut trainer = TrainerThread::default();
        trainer.main(&MainStack::default(), Blocked::Timer);
        let mut count = |trains, hands_on| {
            let all = [TrainerCandidate {
                state: 4096,
                thread: Pid(7),
                trains,
                hands_on,
            }];
            trainer.count(&all, false).is_some()
        };
        for poll in 1..=100 {
            assert!(!count(false, poll % MIN_BATCHES == 0), "{poll}");
        }
        // A thread that trains may wait for room as well, for example in the queue of a log.
        let trains = [count(true, false), count(false, true), count(true, false)];
        assert_eq!(trains, [false, false, true]);
    }
}
