//! The state of the simulated pipeline, and the next event.
//!
//! Knows what happens when; what it amounts to is the tally's. Times are nanoseconds since the start.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, LogNormal, StandardUniform};

use super::settings::{DeliveryOrder, MOST_BATCHES, SimulationSettings};
use super::tally::{Nanos, SimulatedRun, Tally};

/// A time that is later than any other.
const NEVER: Nanos = Nanos::MAX;

pub(super) fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(NEVER)
}

/// What a loader does at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoaderState {
    /// It has made all that it was asked for.
    Idle,
    /// The part of its batch that is done, 0 to 1.
    Loading(f64),
}

/// What the trainer does at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrainerState {
    Waiting,
    /// On a batch that this loader made; the part of the step that is done, 0 to 1.
    Working {
        worker: u32,
        done: f64,
    },
}

/// At the same time, loads end before steps do, and loads in the order of their loaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Completion {
    LoadEnds(u32),
    StepEnds,
}

/// A stretch of work with a known end; `since` is where its beginning lies, also before the start.
#[derive(Debug, Clone, Copy)]
struct Work {
    began: Nanos,
    /// What was done before the start already.
    ahead: Nanos,
    ends: Nanos,
}

impl Work {
    fn done(&self, now: Nanos) -> f64 {
        let whole = (self.ends - self.began).saturating_add(self.ahead);
        let done = now.saturating_sub(self.began).saturating_add(self.ahead);
        if whole == 0 {
            return 1.0;
        }
        (done as f64 / whole as f64).min(1.0)
    }
}

#[derive(Debug, Default)]
struct SimulatedWorker {
    /// Indices that it was handed, each with the time that its batch takes.
    asked: VecDeque<(u64, Nanos)>,
    /// The batch under way, and the work on it.
    loading: Option<(u64, Work)>,
}

/// A run that can be stopped and looked at on its way.
#[derive(Debug)]
pub struct Simulation {
    settings: SimulationSettings,
    step: Nanos,
    clock: Option<Nanos>,
    span: Nanos,
    now: Nanos,
    chance: ChaCha8Rng,
    /// `None` = always the mean.
    loads: Option<LogNormal<f64>>,
    events: BinaryHeap<Reverse<(Nanos, Completion)>>,
    workers: Vec<SimulatedWorker>,
    /// Indices handed out, and the index that is taken next in order.
    handed_out: u64,
    next: u64,
    /// Loaded and not taken, each with its loader: by index, or in any order by arrival.
    ready: BTreeMap<u64, u32>,
    arrivals: u64,
    /// The loader of the batch in its step. `None` = the trainer waits.
    training: Option<(u32, Work)>,
    tally: Tally,
}

impl Simulation {
    /// At time 0: every loader has been asked for as many batches as it may hold.
    pub fn new(settings: &SimulationSettings, seed: u64) -> Self {
        let mean = settings.load.as_secs_f64();
        let varied = settings.load_jitter > 0.0 && mean > 0.0;
        let loads = LogNormal::from_mean_cv(mean, settings.load_jitter).ok();
        let mut simulation = Self {
            step: nanos(settings.step),
            clock: settings.clock.map(nanos).filter(|clock| *clock > 0),
            span: nanos(settings.span),
            now: 0,
            chance: ChaCha8Rng::seed_from_u64(seed),
            loads: loads.filter(|_| varied),
            events: BinaryHeap::new(),
            workers: (0..settings.workers)
                .map(|_| SimulatedWorker::default())
                .collect(),
            handed_out: 0,
            next: 0,
            ready: BTreeMap::new(),
            arrivals: 0,
            training: None,
            tally: Tally::new(seed, nanos(settings.span)),
            settings: settings.clone(),
        };
        for _ in 0..settings.prefetch_factor {
            for worker in 0..settings.workers {
                simulation.ask(worker);
            }
        }
        for worker in 0..settings.workers {
            let ahead = if settings.desync {
                StandardUniform.sample(&mut simulation.chance)
            } else {
                0.0
            };
            simulation.load_next(worker, ahead);
        }
        simulation
    }

    /// Lets everything happen up to `to`, that included, and nothing after the end of the span.
    pub fn advance(&mut self, to: Duration) {
        let to = nanos(to).min(self.span);
        while let Some(Reverse((at, event))) = self.events.peek().copied()
            && at <= to
            && at < self.span
            && self.tally.batches < MOST_BATCHES
        {
            self.events.pop();
            self.now = at;
            match event {
                Completion::LoadEnds(worker) => self.load_ended(worker),
                Completion::StepEnds => {
                    self.tally.step_ended(at);
                    self.training = None;
                }
            }
            self.take();
        }
        self.now = self.now.max(to);
    }

    pub fn settings(&self) -> &SimulationSettings {
        &self.settings
    }

    /// Time since the start of the loaders.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    /// Nothing will happen any more.
    pub fn is_over(&self) -> bool {
        self.now >= self.span
    }

    /// What each loader does.
    pub fn loaders(&self) -> impl Iterator<Item = LoaderState> + '_ {
        let now = self.now;
        self.workers
            .iter()
            .map(move |worker| match &worker.loading {
                None => LoaderState::Idle,
                Some((_, work)) => LoaderState::Loading(work.done(now)),
            })
    }

    /// The loaders of the batches that are ready, the one to be taken first at the front.
    pub fn ready(&self) -> impl Iterator<Item = u32> + '_ {
        self.ready.values().copied()
    }

    pub fn trainer(&self) -> TrainerState {
        match &self.training {
            None => TrainerState::Waiting,
            Some((worker, work)) => TrainerState::Working {
                worker: *worker,
                done: work.done(self.now),
            },
        }
    }

    /// What has come of it so far.
    pub fn outcome(&self) -> SimulatedRun {
        self.tally.outcome(self.now)
    }

    /// When something is seen that is due at `at`.
    fn tick(&self, at: Nanos) -> Nanos {
        self.clock.map_or(at, |clock| {
            at.div_ceil(clock).checked_mul(clock).unwrap_or(NEVER)
        })
    }

    /// Hands the next index to a loader. The times of batches are drawn in the order of their indices, so that
    /// batch 12 takes as long in either order.
    fn ask(&mut self, worker: u32) {
        let index = self.handed_out;
        self.handed_out += 1;
        let length = match &self.loads {
            None => nanos(self.settings.load),
            Some(loads) => {
                let seconds = loads.sample(&mut self.chance);
                Duration::try_from_secs_f64(seconds).map_or(NEVER, nanos)
            }
        };
        if let Some(worker) = self.worker(worker) {
            worker.asked.push_back((index, length));
        }
    }

    /// A loader without work begins with what it was asked for next; `ahead` of it is done already.
    fn load_next(&mut self, worker: u32, ahead: f64) {
        let now = self.now;
        let Some(state) = self.worker(worker) else {
            return;
        };
        if state.loading.is_some() {
            return;
        }
        let Some((index, length)) = state.asked.pop_front() else {
            return;
        };
        let left = Duration::from_nanos(length).mul_f64(1.0 - ahead);
        let left = if ahead > 0.0 { nanos(left) } else { length };
        let ends = self.tick(now.saturating_add(left));
        let work = Work {
            began: now,
            ahead: length.saturating_sub(left),
            ends,
        };
        if let Some(state) = self.worker(worker) {
            state.loading = Some((index, work));
        }
        self.events
            .push(Reverse((ends, Completion::LoadEnds(worker))));
    }

    fn load_ended(&mut self, worker: u32) {
        let loaded = self.worker(worker).and_then(|state| state.loading.take());
        if let Some((index, _)) = loaded {
            let place = match self.settings.order {
                DeliveryOrder::InOrder => index,
                DeliveryOrder::AnyOrder => self.arrivals,
            };
            self.arrivals += 1;
            self.ready.insert(place, worker);
            self.tally.arrived(self.now);
        }
        self.load_next(worker, 0.0);
    }

    /// The trainer takes the next batch, if it has time and there is one.
    fn take(&mut self) {
        if self.training.is_some() {
            return;
        }
        let Some(first) = self.ready.first_entry() else {
            return;
        };
        if self.settings.order == DeliveryOrder::InOrder && *first.key() != self.next {
            return;
        }
        let maker = first.remove();
        self.next += 1;
        self.tally.taken(self.now);
        let ends = self.tick(self.now.saturating_add(self.step));
        let work = Work {
            began: self.now,
            ahead: 0,
            ends,
        };
        self.training = Some((maker, work));
        self.events.push(Reverse((ends, Completion::StepEnds)));
        let asked = match self.settings.order {
            DeliveryOrder::InOrder => {
                let turn = self.handed_out % u64::from(self.settings.workers.max(1));
                u32::try_from(turn).unwrap_or(maker)
            }
            DeliveryOrder::AnyOrder => maker,
        };
        self.ask(asked);
        self.load_next(asked, 0.0);
    }

    fn worker(&mut self, worker: u32) -> Option<&mut SimulatedWorker> {
        self.workers.get_mut(usize::try_from(worker).ok()?)
    }
}
