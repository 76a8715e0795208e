//! One loader worker, polled: has it something to do, and what does it do?

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::beyond::{Beyond, beyond};
use super::blocked::Blocked;
use super::loads::LoadTally;
use super::python_view::PythonView;
use super::thread_view::{Polled, ThreadView};
use super::{SLOTS, WorkerSeen, count_activity};
use crate::sample::{WorkerNow, WorkerTally};
use crate::source::clock::Clock;
use crate::source::python::{Stacks, WorkerLoop, WorkerPhase};
use crate::units::ProcessKey;

/// Between two stacks of any workers, at least: the share of the budget that they may take.
const STACKS_APART: Duration = Duration::from_millis(80);
/// Between two stacks of the same worker, at least.
const STACK_PAUSE: Duration = Duration::from_millis(400);
/// What goes on elsewhere for a worker that sleeps is polled again after this.
const BEYOND_PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct WorkerView {
    key: ProcessKey,
    proc_root: PathBuf,
    /// Whom it waits for, where that was looked for last, and what it was blocked in then.
    beyond: Option<(Duration, Blocked, Option<Beyond>)>,
    /// Of the built-in job: waits for nothing but requests.
    builtin: bool,
    thread: ThreadView,
    python: PythonView,
    stack_at: Option<Duration>,
    phase: WorkerPhase,
    /// The descriptor that it polls for its next index, once a stack has shown that.
    index_fd: Option<i32>,
    /// Where the batch in work can be seen; `None` until the next stack shows it.
    in_loop: Option<WorkerLoop>,
    /// `None` where that was never seen.
    loads: Option<LoadTally>,
    /// When the batch in work was last polled.
    batch_at: Duration,
    /// All but its loads.
    seen: WorkerSeen,
}

impl WorkerView {
    pub(super) fn open(proc_root: &Path, key: ProcessKey, builtin: bool) -> io::Result<Self> {
        let mut python = PythonView::new(proc_root, key.pid);
        if builtin {
            python.refuse();
        }
        Ok(Self {
            key,
            proc_root: proc_root.to_owned(),
            beyond: None,
            builtin,
            thread: ThreadView::open(proc_root, key.pid, key.pid)?,
            python,
            stack_at: None,
            phase: WorkerPhase::default(),
            index_fd: None,
            in_loop: None,
            loads: None,
            batch_at: Duration::ZERO,
            seen: WorkerSeen::default(),
        })
    }

    pub(super) fn key(&self) -> ProcessKey {
        self.key
    }

    /// Hands out what was counted so far.
    pub(super) fn publish(&self, seen: &mut WorkerSeen) {
        seen.clone_from(&self.seen);
        seen.loads = self.loads.as_ref().map(LoadTally::loads);
    }

    /// `trainer` are the stacks of the process that it was forked from; `stack_at` is when a stack of
    /// any worker was last polled.
    pub(super) fn poll(&mut self, clock: Clock, trainer: Option<&Stacks>, stack_at: &mut Duration) {
        let now = clock.since_start();
        let Ok(poll) = self.thread.poll() else {
            self.seen.tally.now = WorkerNow::Gone;
            self.seen.polls.see(now, WorkerNow::Gone, SLOTS);
            return;
        };
        let idle = self.is_idle(poll);
        self.poll_batch(now, clock, idle);
        let turn = now.saturating_sub(*stack_at) >= STACKS_APART && self.is_due(now);
        // What it polls must be learnt once: that does not wait for its turn.
        if self.thread.attachable() && (idle.is_none() || (idle == Some(false) && turn)) {
            *stack_at = now;
            self.poll_stack(now, poll, trainer);
        }
        let idle = match (idle, self.stack_at) {
            (Some(idle), _) => idle,
            (None, Some(at)) if at == now => self.phase == WorkerPhase::Idle,
            // Nothing tells what it polls for: not counted.
            _ => return,
        };
        let blocked = if idle || self.builtin {
            poll.blocked
        } else {
            self.works_in(now, poll.blocked)
        };
        count(&mut self.seen.tally, blocked, idle);
        if self.phase == WorkerPhase::Starting && self.stack_at.is_some() && !idle {
            self.seen.tally.now = WorkerNow::Starting;
        }
        self.seen.polls.see(now, self.seen.tally.now, SLOTS);
    }

    /// What holds it up: where it sleeps, what goes on elsewhere for it.
    fn works_in(&mut self, now: Duration, blocked: Blocked) -> Blocked {
        let is_old = |at: Duration| now.saturating_sub(at) >= BEYOND_PAUSE;
        if self
            .beyond
            .as_ref()
            .is_none_or(|(at, known, _)| *known != blocked || is_old(*at))
        {
            let found = beyond(&self.proc_root, self.key.pid, blocked);
            self.beyond = Some((now, blocked, found));
        }
        let found = self.beyond.as_ref().and_then(|(.., found)| found.as_ref());
        found.map_or(blocked, |found| found.blocked)
    }

    /// The command that it waits for.
    fn command(&self, blocked: Blocked) -> Option<String> {
        let (_, at, found) = self.beyond.as_ref()?;
        let command = found
            .as_ref()?
            .command
            .as_ref()
            .filter(|_| *at == blocked)?;
        Some(format!("{command} (command)"))
    }

    /// Polls nothing but the batch in work, where the last poll at it lies so far back: a load is known as well as
    /// the polls at its ends lie close together, and this is the cheapest of them.
    pub(super) fn poll_batch_after(&mut self, pause: Duration, clock: Clock) {
        if self.in_loop.is_none() {
            return;
        }
        let now = clock.since_start();
        if now.saturating_sub(self.batch_at) >= pause {
            self.poll_batch(now, clock, None);
        }
    }

    /// Sees which batch is in work; `from` is when this poll began. Costs nothing while the worker is idle, and two
    /// small reads while it is not.
    fn poll_batch(&mut self, from: Duration, clock: Clock, idle: Option<bool>) {
        let (Some(in_loop), Some(loads)) = (self.in_loop, self.loads.as_mut()) else {
            return;
        };
        self.batch_at = from;
        let work = if idle == Some(true) {
            Ok(None)
        } else {
            in_loop.batch(loads.work())
        };
        match work {
            Ok(work) => loads.poll(from, clock.since_start(), work),
            Err(_) => self.in_loop = None,
        }
    }

    /// Waits for its next index. `None` where only a stack can tell.
    fn is_idle(&self, poll: Polled) -> Option<bool> {
        match (poll.blocked, poll.polled) {
            (blocked, _) if self.builtin => Some(blocked == Blocked::PipeRead),
            (Blocked::Poll, Some(fd)) => self.index_fd.map(|index| index == fd),
            // A stranger's eyes: whoever polls is taken to wait for work.
            (Blocked::Poll | Blocked::PipeRead, None) if !self.thread.attachable() => Some(true),
            (Blocked::Poll | Blocked::PipeRead, None) => None,
            _ => Some(false),
        }
    }

    fn is_due(&self, now: Duration) -> bool {
        self.stack_at
            .is_none_or(|at| now.saturating_sub(at) >= STACK_PAUSE)
    }

    fn poll_stack(&mut self, now: Duration, poll: Polled, trainer: Option<&Stacks>) {
        if self
            .stack_at
            .is_some_and(|at| now.saturating_sub(at) < STACK_PAUSE)
        {
            return;
        }
        let Some(stack) = self
            .python
            .stacks(now, trainer)
            .and_then(|stacks| stacks.worker().ok())
        else {
            return;
        };
        self.stack_at = Some(now);
        self.phase = stack.phase;
        self.in_loop = stack.in_loop;
        if self.in_loop.is_some() {
            self.loads.get_or_insert_with(LoadTally::new);
        }
        if stack.phase == WorkerPhase::Idle && poll.polled.is_some() {
            self.index_fd = poll.polled;
        }
        let command = self.command(poll.blocked);
        let seen = &mut self.seen;
        seen.id = stack.worker_id.or(seen.id);
        seen.num_workers = stack.num_workers.or(seen.num_workers);
        seen.persistent_workers = stack.persistent_workers.or(seen.persistent_workers);
        seen.batch_size = stack.batch_size.or(seen.batch_size);
        if let Some(function) = stack.function {
            let function = command.unwrap_or(function);
            count_activity(&mut seen.activity, function);
        }
    }
}

pub(super) fn count(tally: &mut WorkerTally, blocked: Blocked, idle: bool) {
    tally.polls += 1;
    let (count, now) = match blocked {
        _ if idle => (&mut tally.idle, WorkerNow::Idle),
        Blocked::Running => (&mut tally.cpu, WorkerNow::Cpu),
        Blocked::Disk => (&mut tally.disk, WorkerNow::Read),
        Blocked::Network | Blocked::Poll => (&mut tally.network, WorkerNow::Network),
        Blocked::PipeWrite | Blocked::Unix => (&mut tally.handover, WorkerNow::Handover),
        Blocked::Stopped => (&mut tally.other, WorkerNow::Stopped),
        Blocked::PipeRead | Blocked::Lock | Blocked::Timer | Blocked::Other => {
            (&mut tally.other, WorkerNow::Sleep)
        }
    };
    *count += 1;
    tally.now = now;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_look_is_counted_once() {
        let mut tally = WorkerTally::default();
        let places = [
            Blocked::Running,
            Blocked::Poll,
            Blocked::PipeRead,
            Blocked::PipeWrite,
            Blocked::Unix,
            Blocked::Disk,
            Blocked::Network,
            Blocked::Lock,
            Blocked::Timer,
            Blocked::Stopped,
            Blocked::Other,
        ];
        for blocked in places {
            count(&mut tally, blocked, false);
            count(&mut tally, blocked, true);
        }
        let parts = [
            tally.idle,
            tally.cpu,
            tally.disk,
            tally.network,
            tally.handover,
            tally.other,
        ];
        assert_eq!(parts.iter().sum::<u64>(), tally.polls);
        assert_eq!(tally.idle, places.len() as u64);
    }
}
