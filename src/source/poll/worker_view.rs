//! One loader worker, polled: whether it has work, and what it does.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::blocked::{Blocked, SystemCall};
use super::loads::LoadTally;
use super::python_view::PythonView;
use super::thread_view::{Polled, ThreadView};
use super::waits_on::{WaitSearch, waits_on};
use super::{SLOTS, WorkerSeen, count_activity};
use crate::sample::{PollTrace, WorkerNow, WorkerTally};
use crate::source::clock::Clock;
use crate::source::python::{ModelUse, Stacks, WorkerLoop, WorkerPhase};
use crate::units::ProcessKey;

/// Shortest time between two stacks of any workers: limits their part of the budget.
const STACK_INTERVAL: Duration = Duration::from_millis(80);
/// Shortest time between two stacks of the same worker.
const STACK_PAUSE: Duration = Duration::from_millis(400);

#[derive(Debug)]
pub(super) struct WorkerView {
    pub(super) key: ProcessKey,
    proc_root: PathBuf,
    /// What it waits for when it sleeps.
    waits_on: WaitSearch,
    /// Whether it belongs to the built-in job: such a worker only ever waits for requests.
    builtin: bool,
    thread: ThreadView,
    python: PythonView,
    stack_at: Option<Duration>,
    phase: WorkerPhase,
    model: ModelUse,
    /// Whether it was idle when a stack was last read, for each state that it was blocked in. Polls without a stack
    /// count by this: stacks are too rare to be the only polls that count, and a worker without work may sleep in the
    /// same way all the time.
    last_idle: BTreeMap<Blocked, bool>,
    /// The descriptor that it polls for its next index, once a stack has shown it.
    index_fd: Option<i32>,
    /// Where in its memory the number of the batch in work is; `None` until a stack shows it.
    in_loop: Option<WorkerLoop>,
    /// `None` until a stack has shown where the number of the batch in work is.
    loads: Option<LoadTally>,
    /// Time of the last poll of the batch in work.
    batch_at: Duration,
    /// All counts except its loads.
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
            waits_on: WaitSearch::default(),
            builtin,
            thread: ThreadView::open(proc_root, key.pid, key.pid)?,
            python,
            stack_at: None,
            phase: WorkerPhase::default(),
            model: ModelUse::default(),
            last_idle: BTreeMap::new(),
            index_fd: None,
            in_loop: None,
            loads: None,
            batch_at: Duration::ZERO,
            seen: WorkerSeen::default(),
        })
    }

    /// Copies the counts so far into `seen`.
    pub(super) fn publish(&self, seen: &mut WorkerSeen) {
        seen.clone_from(&self.seen);
        seen.loads = self.loads.as_ref().map(LoadTally::loads);
    }

    /// Returns its number and what was seen of it while it lived. `None` if its number is unknown.
    pub(super) fn last_seen(mut self) -> Option<(u32, PollTrace)> {
        self.seen.polls.cut_end(WorkerNow::Gone);
        Some((self.seen.id?, self.seen.polls))
    }

    /// Returns its number in the loader; `None` until a stack has shown it.
    pub(super) fn id(&self) -> Option<u32> {
        self.seen.id
    }

    /// Puts the polls of the worker that it replaces before its own.
    pub(super) fn succeed(&mut self, mut polls: PollTrace) {
        polls.append(&self.seen.polls, SLOTS);
        self.seen.polls = polls;
    }

    /// Polls the worker. `frozen`: whether its control group is known to be frozen. `trainer`: the stacks of the
    /// process that it was forked from. `stack_at`: when a stack of any worker was last polled.
    pub(super) fn poll(
        &mut self,
        clock: Clock,
        frozen: bool,
        trainer: Option<&Stacks>,
        stack_at: &mut Duration,
    ) {
        let now = clock.since_start();
        let Ok(poll) = self.thread.poll_unless_frozen(frozen) else {
            self.seen.tally.now = WorkerNow::Gone;
            self.seen.polls.record(now, WorkerNow::Gone, SLOTS);
            return;
        };
        if poll.blocked == Blocked::Stopped {
            // While it is stopped, what its stack shows takes no time.
            count(&mut self.seen.tally, Blocked::Stopped, false);
            self.seen.polls.record(now, WorkerNow::Stopped, SLOTS);
            return;
        }
        let idle = self.is_idle(poll);
        self.poll_batch(now, clock, idle);
        let turn = now.saturating_sub(*stack_at) >= STACK_INTERVAL;
        let due = self.thread.attachable() && self.is_due(now);
        // The descriptor that it polls must be learnt once, even outside its turn.
        if due && (idle.is_none() || (idle == Some(false) && turn)) {
            *stack_at = now;
            self.poll_stack(now, poll, trainer);
        }
        let idle = match (idle, self.stack_at) {
            (Some(idle), _) => idle,
            (None, Some(at)) if at == now => {
                let idle = self.phase == WorkerPhase::Idle;
                self.last_idle.insert(poll.blocked, idle);
                idle
            }
            (None, _) => match self.last_idle.get(&poll.blocked) {
                Some(idle) => *idle,
                // Not counted: it is unknown what it waits for.
                None => return,
            },
        };
        let locked = !idle && self.is_locked(poll.blocked);
        let blocked = if idle || self.builtin || locked {
            poll.blocked
        } else {
            let search = || waits_on(&self.proc_root, self.key.pid, poll.blocked, poll.polled);
            self.waits_on.held_up_by(now, poll.blocked, search)
        };
        count(&mut self.seen.tally, blocked, idle);
        if !idle {
            count_model(&mut self.seen.tally, self.model);
        }
        self.seen.tally.locked += u64::from(locked);
        let command = blocked == Blocked::Running && self.waits_on.command(poll.blocked).is_some();
        self.seen.tally.commands += u64::from(command && !idle);
        let slow = matches!(poll.blocked, Blocked::Disk | Blocked::Network);
        if slow && !idle && self.is_in(SystemCall::is_about_files) {
            self.seen.tally.about_files += 1;
        }
        if self.phase == WorkerPhase::Starting && self.stack_at.is_some() && !idle {
            self.seen.tally.now = WorkerNow::Starting;
        }
        self.seen.polls.record(now, self.seen.tally.now, SLOTS);
    }

    /// Whether it waits for a lock that another process holds. In a worker that is not PyTorch's, a shared futex does
    /// not show that: it may be the semaphore of a queue that has no room or no work.
    fn is_locked(&self, blocked: Blocked) -> bool {
        match blocked {
            Blocked::FileLock => true,
            Blocked::Lock => {
                let busy = self.in_loop.is_some() && self.phase == WorkerPhase::Busy;
                busy && self.is_in(SystemCall::is_shared_futex)
            }
            _ => false,
        }
    }

    /// Whether it sleeps in such a system call. False if that cannot be seen.
    fn is_in(&self, is_such: fn(SystemCall) -> bool) -> bool {
        self.thread.call().is_some_and(is_such)
    }

    /// Polls only the batch in work, if the last poll of it was at least `pause` ago. The closer the polls are to the
    /// ends of a load, the more exact is its time, and no other poll is as cheap.
    pub(super) fn poll_batch_after(&mut self, pause: Duration, clock: Clock) {
        if self.in_loop.is_none() {
            return;
        }
        let now = clock.since_start();
        if now.saturating_sub(self.batch_at) >= pause {
            self.poll_batch(now, clock, None);
        }
    }

    /// Reads which batch is in work. `from` is when this poll began. Costs nothing while the worker is idle, else two
    /// small reads.
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

    /// Whether it waits for its next index. `None` if only a stack can show that.
    fn is_idle(&self, poll: Polled) -> Option<bool> {
        match (poll.blocked, poll.polled) {
            (blocked, _) if self.builtin => Some(blocked == Blocked::PipeRead),
            (Blocked::Poll, Some(fd)) => self.index_fd.map(|index| index == fd),
            // Without its stack, a worker in `poll` is assumed to wait for work.
            (Blocked::Poll | Blocked::PipeRead, None) if !self.thread.attachable() => Some(true),
            (blocked, None) => reads_work(blocked, self.in_loop.is_some(), self.seen.elsewhere),
            _ => Some(false),
        }
    }

    fn is_due(&self, now: Duration) -> bool {
        self.stack_at
            .is_none_or(|at| now.saturating_sub(at) >= STACK_PAUSE)
    }

    fn poll_stack(&mut self, now: Duration, poll: Polled, trainer: Option<&Stacks>) {
        let Some(stack) = self
            .python
            .stacks(now, trainer)
            .and_then(|stacks| stacks.worker().ok())
        else {
            return;
        };
        self.stack_at = Some(now);
        (self.phase, self.model) = (stack.phase, stack.model);
        self.in_loop = stack.in_loop;
        self.seen.elsewhere = stack.elsewhere;
        if self.in_loop.is_some() {
            self.loads.get_or_insert_default();
        }
        if stack.phase == WorkerPhase::Idle && poll.polled.is_some() {
            self.index_fd = poll.polled;
        }
        let command = self.waits_on.command(poll.blocked);
        let command = command.map(|name| format!("{name} (command)"));
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

/// Whether a worker that is `blocked`, on an unknown descriptor, waits for its next index. `None` if only a stack can
/// show that. In PyTorch's loop (`in_loop`) it polls until there is one, so a pipe that it is reading is the dataset's,
/// such as a command's output. Workers outside that loop (`elsewhere`) may share a queue, and wait for its lock while
/// another one holds it.
fn reads_work(blocked: Blocked, in_loop: bool, elsewhere: bool) -> Option<bool> {
    match blocked {
        Blocked::Poll => None,
        Blocked::PipeRead => in_loop.then_some(false),
        Blocked::Lock if elsewhere => None,
        _ => Some(false),
    }
}

pub(super) fn count_model(tally: &mut WorkerTally, model: ModelUse) {
    match model {
        ModelUse::Nothing => {}
        ModelUse::Infers => tally.infers += 1,
        ModelUse::Trains => tally.trains += 1,
    }
}

pub(super) fn count(tally: &mut WorkerTally, blocked: Blocked, idle: bool) {
    tally.polls += 1;
    let (count, now) = match blocked {
        Blocked::Stopped => (&mut tally.stopped, WorkerNow::Stopped),
        _ if idle => (&mut tally.idle, WorkerNow::Idle),
        Blocked::Running => (&mut tally.cpu, WorkerNow::Cpu),
        Blocked::Disk => (&mut tally.disk, WorkerNow::Read),
        Blocked::Network | Blocked::Poll => (&mut tally.network, WorkerNow::Network),
        Blocked::PipeWrite | Blocked::Unix => (&mut tally.handover, WorkerNow::Handover),
        Blocked::PipeRead | Blocked::Lock | Blocked::FileLock | Blocked::Timer | Blocked::Other => {
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
    fn a_worker_of_pytorch_that_reads_a_pipe_is_busy() {
        assert_eq!(reads_work(Blocked::PipeRead, true, false), Some(false));
        assert_eq!(reads_work(Blocked::PipeRead, false, false), None);
        assert_eq!(reads_work(Blocked::Poll, true, false), None);
        assert_eq!(reads_work(Blocked::Lock, true, false), Some(false));
        assert_eq!(reads_work(Blocked::Lock, false, true), None);
        assert_eq!(reads_work(Blocked::Running, false, true), Some(false));
    }

    #[test]
    fn every_poll_is_counted_once() {
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
            Blocked::FileLock,
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
            tally.stopped,
        ];
        assert_eq!(parts.iter().sum::<u64>(), tally.polls);
        assert_eq!((tally.idle, tally.stopped), (places.len() as u64 - 1, 2));
    }
}
