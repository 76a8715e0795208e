//! The poller: polls all targets in turn, within its budget, and publishes the counts.
//!
//! Decides when to poll what; the views decide what a poll means.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::main_view::MainView;
use super::queue::QueueView;
use super::worker_view::WorkerView;
use super::{PollTargets, Seen, WatchedLoader, priority};
use crate::background::lock;
use crate::foreign;
use crate::sample::{PollTrace, slot};
use crate::source::clock::{Clock, thread_cpu};
use crate::source::file::{Failure, unreadable};
use crate::units::ProcessKey;

/// Time between two polls of a main thread, if the budget allows it. At first, a main thread that PyTorch's loader
/// feeds is polled once more in between, so that short waits are known sooner.
const PERIOD: Duration = Duration::from_millis(10);
/// Longest time between two polls of a main thread, if the budget does not allow [`PERIOD`].
const MAX_PERIOD: Duration = Duration::from_millis(60);
/// Share of one core that polling may cost for one job.
const BUDGET: f64 = 0.005;
/// The share during the first `AT_FIRST` of a job, for an early verdict.
const BUDGET_AT_FIRST: f64 = 0.03;
const AT_FIRST: Duration = Duration::from_secs(5);
/// Share of one core that polling may cost for all jobs that this process watches.
const BUDGET_OF_ALL: f64 = 0.02;
/// Number of running pollers.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// A worker or a queue is polled every this many rounds.
const ROUNDS_PER_WORKER_POLL: usize = 5;
/// Shortest time between two polls of the batch in work of one worker, and of any worker.
const BATCH_POLL_INTERVAL: Duration = Duration::from_millis(45);
const BATCH_POLL_INTERVAL_OF_ALL: Duration = Duration::from_millis(5);
/// Large data is reported every this many rounds.
const ROUNDS_PER_FULL_REPORT: usize = 10;

pub(super) struct Poller {
    proc_root: PathBuf,
    clock: Clock,
    /// Set by the sampler, taken before the next round.
    new_targets: Arc<Mutex<Option<PollTargets>>>,
    seen: Arc<Mutex<Seen>>,
    mains: Vec<MainView>,
    /// Each with its trainer and the loader's number.
    workers: Vec<(WorkerView, (ProcessKey, u64))>,
    /// The polls of workers that have just ended, by loader and number; those of their successors are appended.
    ended: Vec<((ProcessKey, u64), u32, PollTrace)>,
    /// Each with its trainer and the loader's number.
    queues: Vec<(ProcessKey, u64, QueueView)>,
    /// When a stack of any worker was last polled.
    worker_stack_at: Duration,
    frozen: bool,
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
            ended: Vec::new(),
            queues: Vec::new(),
            worker_stack_at: Duration::ZERO,
            frozen: false,
        }
    }

    /// Polls until `stopped` is closed.
    pub(super) fn run(self, stopped: &mpsc::Receiver<()>) {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        self.poll(stopped);
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }

    fn poll(mut self, stopped: &mpsc::Receiver<()>) {
        priority::raise();
        let mut period = PERIOD;
        let mut round = 0_usize;
        let mut between = false;
        // Two pipetops that watch the same job do not poll it at the same moments.
        let mut jitter = Jitter(0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id()));
        let mut due = self.clock.since_start();
        let mut budget_since = (due, thread_cpu());
        let mut first = due;
        loop {
            let now = self.clock.since_start();
            let late = now.saturating_sub(due) > period;
            match stopped.recv_timeout(due.saturating_sub(now)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            let targets = lock(&self.new_targets).take();
            if let Some(targets) = targets {
                if self.mains.is_empty() {
                    first = self.clock.since_start();
                }
                self.follow(&targets);
            }
            let mut poll = || {
                if between {
                    self.poll_between(due);
                } else {
                    self.round(round, due, late);
                }
            };
            if cfg!(debug_assertions) {
                poll();
            } else if foreign::call(poll).is_none() {
                // One odd moment of a job must not end the polls. A debug build panics here, so that tests show the
                // fault.
                tracing::error!("a round of polls was lost to a panic");
            }
            round = round.wrapping_add(usize::from(!between));
            let now = self.clock.since_start();
            let before = between;
            let at_first = now.saturating_sub(first) < AT_FIRST;
            between = !before && at_first && period == PERIOD;
            // Random, so that polls are not in step with anything periodic in the job.
            let pause = if between || before {
                period / 2
            } else {
                period
            };
            due = now.max(due + jitter.around(pause));
            if now.saturating_sub(budget_since.0) > Duration::from_secs(1) {
                let wall = now.saturating_sub(budget_since.0).as_secs_f64();
                let cost = thread_cpu().saturating_sub(budget_since.1).as_secs_f64() / wall;
                // Attaching, at first, is a cost that does not recur.
                if budget_since.0 > first {
                    period = period
                        .mul_f64((cost / budget(now.saturating_sub(first))).clamp(0.5, 2.0))
                        .clamp(PERIOD, MAX_PERIOD);
                }
                budget_since = (now, thread_cpu());
            }
        }
    }

    /// Opens new targets and drops those that are gone.
    fn follow(&mut self, targets: &PollTargets) {
        self.frozen = targets.frozen;
        self.mains
            .retain(|view| targets.ranks.iter().any(|rank| rank.key == view.key));
        let everyone = || {
            let loaders = targets.ranks.iter().flat_map(|rank| &rank.loaders);
            loaders.flat_map(|loader| &loader.workers)
        };
        let stays = |view: &WorkerView| everyone().any(|key| *key == view.key);
        let ended = self.workers.extract_if(.., |(view, _)| !stays(view));
        let ended: Vec<_> = ended
            .filter_map(|(view, loader)| view.last_seen().map(|(id, polls)| (loader, id, polls)))
            .collect();
        self.ended.retain(|(loader, id, _)| {
            let newer = |(other, number, _): &_| (other, number) == (loader, id);
            !ended.iter().any(newer) && targets.ranks.iter().any(|rank| rank.key == loader.0)
        });
        self.ended.extend(ended);
        let mut gap = None;
        let mut unopened = |key: ProcessKey, error: &io::Error| {
            // Other errors say that it has ended, or that it may not be read.
            if Failure::of(error) == Failure::NoResources {
                let path = self.proc_root.join(key.pid.to_string());
                gap.get_or_insert_with(|| unreadable("job", &path, error));
            }
        };
        for rank in &targets.ranks {
            match self.mains.iter_mut().find(|view| view.key == rank.key) {
                Some(view) => view.follow(&self.proc_root, rank),
                None => match MainView::open(&self.proc_root, rank) {
                    Ok(view) => self.mains.push(view),
                    Err(error) => unopened(rank.key, &error),
                },
            }
            let workers = rank.loaders.iter().flat_map(|loader| {
                let workers = loader.workers.iter();
                workers.map(|worker| (worker, (rank.key, loader.id)))
            });
            for (worker, loader) in workers {
                if self.workers.iter().any(|(view, _)| view.key == *worker) {
                    continue;
                }
                match WorkerView::open(&self.proc_root, *worker, rank.builtin) {
                    Ok(view) => self.workers.push((view, loader)),
                    Err(error) => unopened(*worker, &error),
                }
            }
        }
        for rank in &targets.ranks {
            for loader in &rank.loaders {
                self.follow_queue(rank.key, loader);
            }
        }
        let mut seen = lock(&self.seen);
        seen.gap = gap;
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
            (Some(at), Some(pipe)) if self.queues[at].2.inode == pipe.inode => {}
            (at, Some(pipe)) => {
                let mut view = QueueView::new(&self.proc_root, rank.pid, pipe, &loader.workers);
                if let Some(at) = at {
                    let old = self.queues.remove(at).2;
                    // New workers have a new pipe, and the counts continue. If the workers are the same, the old pipe
                    // was the wrong one.
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

    /// Polls once more the main threads that PyTorch's loader feeds. What feeds the others is learned from a number of
    /// stacks, so their pace stays the same.
    fn poll_between(&mut self, due: Duration) {
        let now = self.clock.since_start();
        for view in &mut self.mains {
            if view.by_pytorch() {
                view.poll(now, now.saturating_sub(due), self.frozen);
            }
        }
    }

    fn round(&mut self, round: usize, due: Duration, late: bool) {
        let now = self.clock.since_start();
        let delay = now.saturating_sub(due);
        let part = round % ROUNDS_PER_WORKER_POLL;
        for view in &mut self.mains {
            view.poll(now, delay, self.frozen);
        }
        for (worker, (trainer, _)) in self
            .workers
            .iter_mut()
            .skip(part)
            .step_by(ROUNDS_PER_WORKER_POLL)
        {
            let trainer = self.mains.iter().find(|view| view.key == *trainer);
            worker.poll(
                self.clock,
                self.frozen,
                trainer.and_then(MainView::stacks),
                &mut self.worker_stack_at,
            );
        }
        let workers = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
        let pause = BATCH_POLL_INTERVAL_OF_ALL
            .saturating_mul(workers)
            .max(BATCH_POLL_INTERVAL);
        for (worker, _) in &mut self.workers {
            worker.poll_batch_after(pause, self.clock);
        }
        for (trainer, _, queue) in self
            .queues
            .iter_mut()
            .skip(part)
            .step_by(ROUNDS_PER_WORKER_POLL)
        {
            // A stopped trainer takes nothing from its queue, and lacks nothing if that is empty.
            let trainer = self.mains.iter().find(|view| view.key == *trainer);
            if !trainer.is_some_and(|view| view.beats.is_stopped()) {
                queue.poll(now);
            }
        }
        self.publish(now, round, late);
    }

    /// Publishes counts every round, larger data less often.
    fn publish(&mut self, now: Duration, round: usize, late: bool) {
        let whole = round.is_multiple_of(ROUNDS_PER_FULL_REPORT);
        let mut seen = lock(&self.seen);
        seen.late += u64::from(late);
        for view in &mut self.mains {
            let seen = seen.mains.entry(view.key).or_default();
            view.publish(seen);
            if whole {
                view.publish_rest(now, seen);
            }
        }
        if whole {
            seen.published = slot(now);
            for (view, loader) in &mut self.workers {
                let id = view.id();
                let succeeds =
                    |(of, ended, _): &mut (_, u32, _)| of == loader && id == Some(*ended);
                for (.., polls) in self.ended.extract_if(.., succeeds) {
                    view.succeed(polls);
                }
                view.publish(seen.workers.entry(view.key).or_default());
            }
            for (rank, id, queue) in &self.queues {
                seen.queues.insert((*rank, *id), queue.seen.clone());
            }
        }
    }
}

fn budget(polled_for: Duration) -> f64 {
    let running = RUNNING.load(Ordering::Relaxed).max(1);
    let own = if polled_for < AT_FIRST {
        BUDGET_AT_FIRST
    } else {
        BUDGET
    };
    // A poll takes several times as long in a debug build, and its tests need as many polls.
    let slower = if cfg!(debug_assertions) { 2.0 } else { 1.0 };
    slower * own.min(BUDGET_OF_ALL / running as f64)
}

/// A xorshift generator; it only has to avoid periodicity.
struct Jitter(u64);

impl Jitter {
    /// Returns a duration from half to one and a half of `period`.
    fn around(&mut self, period: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        period.mul_f64(0.5 + (self.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}
