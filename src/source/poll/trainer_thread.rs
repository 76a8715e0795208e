//! Which thread of a process trains, where that is not the main one: Ray Train and launchers of their own kind run the
//! training function in a thread, and the main thread waits for its end.
//!
//! Knows what was seen of threads, not how stacks are read or waits recognised.

use std::time::Duration;

use crate::source::python::{MainStack, Stacks, Trainer};

/// Between two polls at the other threads.
const PAUSE: Duration = Duration::from_millis(200);
/// A thread that was seen to train so often is the trainer, where the main thread never was.
const TRAINS: u32 = 2;
/// So is one that takes batches, where the main thread has done nothing but wait for the end of a thread.
const TAKES: u32 = 5;

#[derive(Debug, Default)]
pub(super) struct TrainerThread {
    due: Duration,
    /// The main thread was seen to train; to do something else than wait for the end of a thread.
    main_trains: bool,
    main_runs: bool,
    /// How often this one was seen to train, and to take batches.
    seen: Option<(Trainer, u32, u32)>,
}

impl TrainerThread {
    /// Takes in a stack of the main thread. Gives the thread that is to be polled in its place.
    pub(super) fn poll(
        &mut self,
        now: Duration,
        main: &MainStack,
        stacks: &mut Stacks,
    ) -> Option<Trainer> {
        self.main(main);
        if self.main_trains || now < self.due {
            return None;
        }
        self.due = now + PAUSE;
        self.count(&stacks.trainers().ok()?)
    }

    fn main(&mut self, stack: &MainStack) {
        self.main_trains |= stack.trains;
        self.main_runs |= !stack.joins;
    }

    /// Takes in the threads that were seen to train or to take batches. More than one thread that does: none of them is
    /// taken for the trainer.
    fn count(&mut self, trainers: &[Trainer]) -> Option<Trainer> {
        let [one] = trainers else { return None };
        let (before, trained, took) = self.seen.unwrap_or((*one, 0, 0));
        if (before.state, before.thread) != (one.state, one.thread) {
            self.seen = None;
            return None;
        }
        let trained = trained + u32::from(one.trains);
        let took = took + 1;
        self.seen = Some((*one, trained, took));
        (trained >= TRAINS || (took >= TAKES && !self.main_runs)).then_some(*one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Pid;

    fn seen(threads: &[(i32, bool)], main: &MainStack) -> Option<u32> {
        let mut trainer = TrainerThread::default();
        trainer.main(main);
        let each = threads.iter().map(|(thread, trains)| Trainer {
            state: 4096,
            thread: Pid(*thread),
            trains: *trains,
        });
        let all: Vec<Trainer> = each.collect();
        (1..20).find(|_| !trainer.main_trains && trainer.count(&all).is_some())
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
        assert_eq!(seen(&[(7, true)], &works), Some(TRAINS));
        assert_eq!(seen(&[(7, true)], &trains), None);
        // A thread that only takes batches may prefetch them for the main thread.
        assert_eq!(seen(&[(7, false)], &works), None);
        assert_eq!(seen(&[(7, false)], &waits), Some(TAKES));
        assert_eq!(seen(&[(7, true), (8, true)], &waits), None);
    }
}
