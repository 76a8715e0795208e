//! The state of the simulated pipeline, and the next event.
//!
//! Decides what happens when; the tally computes the figures. Times are nanoseconds since the start.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, LogNormal, StandardUniform};

use super::settings::{MAX_BATCHES, SimulationSettings};
use super::tally::{Nanos, SimulatedRun, Tally};
use crate::lab::workload::message::BatchMessage;
use crate::lab::workload::scheduler::Scheduler;
use crate::units::nanoseconds;

/// A time that is later than any other.
const NEVER: Nanos = Nanos::MAX;

/// An event. Of several at the same time, loads end before steps do, and loads in the order of their loaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Completion {
    LoadEnds(u32),
    StepEnds,
}

#[derive(Debug, Default)]
struct SimulatedWorker {
    /// The batches it was asked for, each with its load time.
    asked: VecDeque<(BatchMessage, Nanos)>,
    /// The batch under way.
    loading: Option<BatchMessage>,
    /// Number of batches it has made.
    made: u64,
}

/// A run that can be advanced in steps and inspected in between.
#[derive(Debug)]
pub(super) struct Simulation {
    pub(super) settings: SimulationSettings,
    step: Nanos,
    clock: Option<Nanos>,
    span: Nanos,
    now: Nanos,
    chance: ChaCha8Rng,
    /// `None` = always the mean.
    loads: Option<LogNormal<f64>>,
    events: BinaryHeap<Reverse<(Nanos, Completion)>>,
    workers: Vec<SimulatedWorker>,
    pub(super) order: Scheduler,
    /// Whether the trainer is in a step, rather than waiting.
    pub(super) training: bool,
    tally: Tally,
}

impl Simulation {
    /// Creates the state at time 0: every loader has been asked for as many batches as it may hold.
    pub(super) fn new(settings: &SimulationSettings, seed: u64) -> Self {
        let mean = settings.load.as_secs_f64();
        let varied = settings.load_jitter > 0.0 && mean > 0.0;
        let loads = LogNormal::from_mean_cv(mean, settings.load_jitter).ok();
        let (in_order, workers) = (settings.in_order, settings.workers);
        let capacity = workers.saturating_mul(settings.prefetch_factor);
        let mut simulation = Self {
            step: nanoseconds(settings.step),
            clock: settings.clock.map(nanoseconds).filter(|clock| *clock > 0),
            span: nanoseconds(settings.span),
            now: 0,
            chance: ChaCha8Rng::seed_from_u64(seed),
            loads: loads.filter(|_| varied),
            events: BinaryHeap::new(),
            workers: (0..workers).map(|_| SimulatedWorker::default()).collect(),
            // One more than the capacity: the next request goes out before the place of the taken batch is free.
            order: Scheduler::new(in_order, workers, capacity.saturating_add(1)),
            training: false,
            tally: Tally::new(seed, nanoseconds(settings.span)),
            settings: settings.clone(),
        };
        for _ in 0..capacity {
            let request = simulation.order.request();
            simulation.ask(request);
        }
        for worker in 0..workers {
            let ahead = if settings.desync {
                StandardUniform.sample(&mut simulation.chance)
            } else {
                0.0
            };
            simulation.load_next(worker, ahead);
        }
        simulation
    }

    /// Processes all events up to and including `to`, but none after the end of the span.
    pub(super) fn advance(&mut self, to: Duration) {
        let to = nanoseconds(to).min(self.span);
        while let Some(Reverse((at, event))) = self.events.peek().copied()
            && at <= to
            && at < self.span
            && self.tally.batches < MAX_BATCHES
        {
            self.events.pop();
            self.now = at;
            match event {
                Completion::LoadEnds(worker) => self.load_ended(worker),
                Completion::StepEnds => {
                    self.tally.step_ended(at);
                    self.training = false;
                }
            }
            self.take();
        }
        self.now = self.now.max(to);
    }

    /// Returns for each worker whether it is making a batch, and how many it has made.
    pub(super) fn workers(&self) -> impl Iterator<Item = (bool, u64)> + '_ {
        let workers = self.workers.iter();
        workers.map(|worker| (worker.loading.is_some(), worker.made))
    }

    /// Returns the result so far.
    pub(super) fn outcome(&self) -> SimulatedRun {
        self.tally.outcome(self.now)
    }

    /// Returns when an event due at `at` is noticed.
    fn tick(&self, at: Nanos) -> Nanos {
        self.clock.map_or(at, |clock| {
            at.div_ceil(clock).checked_mul(clock).unwrap_or(NEVER)
        })
    }

    /// Asks a loader for a batch. Load times are drawn in the order of the requests, so that batch 12 takes the same
    /// time in either delivery order.
    fn ask(&mut self, request: Option<BatchMessage>) -> Option<u32> {
        let request = request?;
        let length = match &self.loads {
            None => nanoseconds(self.settings.load),
            Some(loads) => {
                let seconds = loads.sample(&mut self.chance);
                Duration::try_from_secs_f64(seconds).map_or(NEVER, nanoseconds)
            }
        };
        let asked = &mut self.workers[request.worker as usize].asked;
        asked.push_back((request, length));
        Some(request.worker)
    }

    /// Starts an idle loader on its next index; `ahead` is the part of that load that is already done.
    fn load_next(&mut self, worker: u32, ahead: f64) {
        let state = &mut self.workers[worker as usize];
        if state.loading.is_some() {
            return;
        }
        let Some((request, length)) = state.asked.pop_front() else {
            return;
        };
        state.loading = Some(request);
        let left = Duration::from_nanos(length).mul_f64(1.0 - ahead);
        let left = if ahead > 0.0 {
            nanoseconds(left)
        } else {
            length
        };
        let ends = self.tick(self.now.saturating_add(left));
        self.events
            .push(Reverse((ends, Completion::LoadEnds(worker))));
    }

    fn load_ended(&mut self, worker: u32) {
        let state = &mut self.workers[worker as usize];
        state.made += 1;
        if let Some(made) = state.loading.take() {
            self.order.arrived(made);
            self.tally.arrived(self.now);
        }
        self.load_next(worker, 0.0);
    }

    /// Lets the trainer take the next batch, if it is waiting and there is one.
    fn take(&mut self) {
        if self.training {
            return;
        }
        let Some((taken, next)) = self.order.take() else {
            return;
        };
        self.order.release(taken.slot);
        self.tally.taken(self.now);
        let ends = self.tick(self.now.saturating_add(self.step));
        self.training = true;
        self.events.push(Reverse((ends, Completion::StepEnds)));
        if let Some(worker) = self.ask(next) {
            self.load_next(worker, 0.0);
        }
    }
}
