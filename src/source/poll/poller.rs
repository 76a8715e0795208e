//! The poller: polls all targets in turn, within its budget, and hands out what it
//! counted.
//!
//! Knows when to poll what, not what a poll means: that is for the views.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::main_view::MainView;
use super::queue::QueueView;
use super::worker_view::WorkerView;
use super::{PollTargets, Seen, WatchedLoader, lock};
use crate::sample::slot;
use crate::source::clock::{Clock, thread_cpu};
use crate::units::ProcessKey;

/// Between two polls at a main thread, where the budget allows.
const PERIOD: Duration = Duration::from_millis(10);
/// And where it does not.
const LONGEST_PERIOD: Duration = Duration::from_millis(60);
/// Share of one core that polling may cost: at one job, and at all that this process watches.
const BUDGET: f64 = 0.005;
const BUDGET_OF_ALL: f64 = 0.02;
/// How many of them there are.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// A worker or a queue is polled in every so many rounds.
const ROUNDS_PER_WORKER_LOOK: usize = 5;
/// Between two polls at the batch that a worker has in work, and between two such polls at any of them: at least.
const BATCH_LOOKS_APART: Duration = Duration::from_millis(45);
const BATCH_LOOKS_OF_ALL: Duration = Duration::from_millis(5);
/// What is large is reported in every so many rounds.
const ROUNDS_PER_FULL_REPORT: usize = 10;

pub(super) struct Poller {
    proc_root: PathBuf,
    clock: Clock,
    /// Left by the sampler, taken before the next round.
    new_targets: Arc<Mutex<Option<PollTargets>>>,
    seen: Arc<Mutex<Seen>>,
    mains: Vec<MainView>,
    /// With the trainer of each.
    workers: Vec<(WorkerView, ProcessKey)>,
    /// With the trainer and the loader's number of each.
    queues: Vec<(ProcessKey, u64, QueueView)>,
    /// When a stack of any worker was last polled.
    worker_stack_at: Duration,
}

impl Poller {
    pub(super) fn new(
        proc_root: &Path,
        clock: Clock,
        new_targets: Arc<Mutex<Option<PollTargets>>>,
        seen: Arc<Mutex<Seen>>,
    ) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            clock,
            new_targets,
            seen,
            mains: Vec::new(),
            workers: Vec::new(),
            queues: Vec::new(),
            worker_stack_at: Duration::ZERO,
        }
    }

    /// Polls until `stopped` is closed.
    pub(super) fn run(self, stopped: &mpsc::Receiver<()>) {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        self.poll(stopped);
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }

    fn poll(mut self, stopped: &mpsc::Receiver<()>) {
        let mut period = PERIOD;
        let mut round = 0_usize;
        let mut jitter = Jitter(0x9e37_79b9_7f4a_7c15);
        let mut due = self.clock.since_start();
        let mut budget_since = (due, thread_cpu());
        loop {
            let now = self.clock.since_start();
            let late = now.saturating_sub(due) > period;
            match stopped.recv_timeout(due.saturating_sub(now)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            let targets = lock(&self.new_targets).take();
            if let Some(targets) = targets {
                self.follow(&targets);
            }
            self.round(round, late);
            round = round.wrapping_add(1);
            let now = self.clock.since_start();
            // Not in step with anything periodic in the job.
            due = now.max(due + jitter.around(period));
            if now.saturating_sub(budget_since.0) > Duration::from_secs(1) {
                let wall = now.saturating_sub(budget_since.0).as_secs_f64();
                let cost = thread_cpu().saturating_sub(budget_since.1).as_secs_f64() / wall;
                period = period
                    .mul_f64((cost / budget()).clamp(0.5, 2.0))
                    .clamp(PERIOD, LONGEST_PERIOD);
                budget_since = (now, thread_cpu());
            }
        }
    }

    /// Opens what is new and drops what is gone.
    fn follow(&mut self, targets: &PollTargets) {
        self.mains
            .retain(|view| targets.ranks.iter().any(|rank| rank.key == view.key()));
        let everyone = || {
            let loaders = targets.ranks.iter().flat_map(|rank| &rank.loaders);
            loaders.flat_map(|loader| &loader.workers)
        };
        self.workers
            .retain(|(view, _)| everyone().any(|key| *key == view.key()));
        for rank in &targets.ranks {
            match self.mains.iter_mut().find(|view| view.key() == rank.key) {
                Some(view) => view.follow(&self.proc_root, rank),
                None => self.mains.extend(MainView::open(&self.proc_root, rank)),
            }
            for loader in &rank.loaders {
                for worker in &loader.workers {
                    if !self.workers.iter().any(|(view, _)| view.key() == *worker)
                        && let Ok(view) = WorkerView::open(&self.proc_root, *worker, rank.builtin)
                    {
                        self.workers.push((view, rank.key));
                    }
                }
                self.follow_queue(rank.key, loader);
            }
        }
        let mut seen = lock(&self.seen);
        seen.mains
            .retain(|key, _| targets.ranks.iter().any(|rank| rank.key == *key));
        seen.workers
            .retain(|key, _| everyone().any(|worker| worker == key));
        seen.queues
            .retain(|(rank, _), _| targets.ranks.iter().any(|known| known.key == *rank));
    }

    fn follow_queue(&mut self, rank: ProcessKey, loader: &WatchedLoader) {
        let at = self
            .queues
            .iter()
            .position(|(key, id, _)| (*key, *id) == (rank, loader.id));
        match (at, loader.pipe) {
            (Some(at), Some(pipe)) if self.queues[at].2.inode() == pipe.inode => {}
            (at, Some(pipe)) => {
                let mut view = QueueView::new(&self.proc_root, rank.pid, pipe, &loader.workers);
                if let Some(at) = at {
                    let old = self.queues.remove(at).2;
                    // Workers made anew have a new pipe, and the counts go on; where the workers are the
                    // same, it was the wrong pipe.
                    if !loader
                        .workers
                        .iter()
                        .any(|worker| old.workers.contains(worker))
                    {
                        view.seen = old.seen;
                    }
                }
                self.queues.push((rank, loader.id, view));
            }
            (_, None) => {}
        }
    }

    fn round(&mut self, round: usize, late: bool) {
        let now = self.clock.since_start();
        let part = round % ROUNDS_PER_WORKER_LOOK;
        for view in &mut self.mains {
            view.poll(now);
        }
        for (worker, trainer) in self
            .workers
            .iter_mut()
            .skip(part)
            .step_by(ROUNDS_PER_WORKER_LOOK)
        {
            let trainer = self.mains.iter().find(|view| view.key() == *trainer);
            worker.poll(
                self.clock,
                trainer.and_then(MainView::stacks),
                &mut self.worker_stack_at,
            );
        }
        let workers = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
        let pause = BATCH_LOOKS_OF_ALL
            .saturating_mul(workers)
            .max(BATCH_LOOKS_APART);
        for (worker, _) in &mut self.workers {
            worker.poll_batch_after(pause, self.clock);
        }
        for (.., queue) in self
            .queues
            .iter_mut()
            .skip(part)
            .step_by(ROUNDS_PER_WORKER_LOOK)
        {
            queue.poll(now);
        }
        self.publish(now, round, late);
    }

    /// Counts go out with every round, what is larger now and then.
    fn publish(&mut self, now: Duration, round: usize, late: bool) {
        let whole = round.is_multiple_of(ROUNDS_PER_FULL_REPORT);
        let mut seen = lock(&self.seen);
        seen.late += u64::from(late);
        for view in &mut self.mains {
            let seen = seen.mains.entry(view.key()).or_default();
            view.publish(seen);
            if whole {
                view.publish_rest(now, seen);
            }
        }
        if whole {
            seen.published = slot(now);
            for (view, _) in &self.workers {
                view.publish(seen.workers.entry(view.key()).or_default());
            }
            for (rank, id, queue) in &self.queues {
                seen.queues.insert((*rank, *id), queue.seen.clone());
            }
        }
    }
}

fn budget() -> f64 {
    let running = RUNNING.load(Ordering::Relaxed).max(1);
    BUDGET.min(BUDGET_OF_ALL / running as f64)
}

/// A xorshift generator: its only use is not to be periodic.
struct Jitter(u64);

impl Jitter {
    /// A duration from half to one and a half `period`.
    fn around(&mut self, period: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        period.mul_f64(0.5 + (self.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}
