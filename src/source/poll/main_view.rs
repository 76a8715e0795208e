//! One trainer's main thread, polled: whether it is in the loader, and whether it waits there.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::beats::{Beat, Beats, Doing, ThreadState};
use super::blocked::{Blocked, SystemCall};
use super::fed::{FeedEvidence, asking};
use super::gil_wait::GilWait;
use super::iterators::Iterators;
use super::loader_threads::LoaderThreads;
use super::object_queue::ObjectQueue;
use super::paced::odd_pause;
use super::python_view::PythonView;
use super::segments::{MIN_INTERVAL, MIN_INTERVAL_AFTER_WAIT, Segments};
use super::thread_view::{Polled, ThreadView};
use super::trainer_thread::TrainerThread;
use super::visible_waits::VisibleWaits;
use super::waits::TrainerWaits;
use super::{MainSeen, SLOTS, WatchedRank, count_activity};
use crate::sample::PollTrace;
use crate::source::python::{Asks, InLoader, Stacks};
use crate::units::ProcessKey;

/// Mean time between two stacks that are only read for the function that runs.
const STACK_AFTER: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct MainView {
    pub(super) key: ProcessKey,
    proc_root: PathBuf,
    /// The main thread, or the thread that trains instead of it.
    thread: ThreadView,
    trainer: TrainerThread,
    /// Whether `thread` is not the main thread.
    beside: bool,
    pin_thread: Option<ThreadView>,
    python: PythonView,
    /// How the last stack showed the loader in use; kept if reading the next stack fails.
    in_loader: Option<InLoader>,
    /// When a stack last showed it in a timer inside the loader, where a sampler may sleep; `None` = never.
    slept_inside: Option<Duration>,
    stack_at: Duration,
    /// Number of times it had been put on a CPU when its newest stack was read; `None` if it was not asleep then.
    asleep_at_stack: Option<u64>,
    iterators: Iterators,
    visible: VisibleWaits,
    has_workers: bool,
    accelerated: bool,
    /// Number of times it had been put on a CPU when it was last seen to wait; `None` once it has run since.
    run_before_wait: Option<u64>,
    pub(super) beats: Beats,
    fed: FeedEvidence,
    queue: ObjectQueue,
    threads: LoaderThreads,
    waits: TrainerWaits,
    polls: PollTrace,
    activity: BTreeMap<String, u64>,
    gil: GilWait,
    segments: Segments,
}

impl MainView {
    pub(super) fn open(proc_root: &Path, rank: &WatchedRank) -> io::Result<Self> {
        let mut view = Self {
            key: rank.key,
            proc_root: proc_root.to_owned(),
            thread: ThreadView::open(proc_root, rank.key.pid, rank.key.pid)?,
            trainer: TrainerThread::default(),
            beside: false,
            pin_thread: None,
            python: PythonView::new(proc_root, rank.key.pid),
            in_loader: None,
            slept_inside: None,
            stack_at: Duration::ZERO,
            asleep_at_stack: None,
            iterators: Iterators::default(),
            visible: VisibleWaits::of(&proc_root.join(rank.key.pid.to_string())),
            has_workers: false,
            accelerated: true,
            run_before_wait: None,
            beats: Beats::default(),
            fed: FeedEvidence::default(),
            queue: ObjectQueue::default(),
            threads: LoaderThreads::new(proc_root.to_owned(), rank.key.pid),
            waits: TrainerWaits::default(),
            polls: PollTrace::default(),
            activity: BTreeMap::new(),
            gil: GilWait::default(),
            segments: Segments::of(&proc_root.join(rank.key.pid.to_string())),
        };
        view.follow(proc_root, rank);
        Ok(view)
    }

    pub(super) fn stacks(&self) -> Option<&Stacks> {
        self.python.attached()
    }

    pub(super) fn follow(&mut self, proc_root: &Path, rank: &WatchedRank) {
        // The built-in job takes its name only after its start.
        if rank.builtin {
            self.python.refuse();
        }
        let pipes = rank.loaders.iter().filter_map(|loader| loader.pipe);
        self.visible.follow(pipes);
        self.accelerated = rank.accelerated;
        self.has_workers = rank.loaders.iter().any(|loader| !loader.workers.is_empty());
        self.pin_thread = rank
            .pin_thread
            .and_then(|thread| ThreadView::open(proc_root, rank.key.pid, thread).ok());
        self.segments.follow(&rank.loaders);
        self.iterators.follow(&rank.loaders);
    }

    /// Polls the thread. `delay`: how long after it was due the poll begins. `frozen`: whether its control group is
    /// known to be frozen.
    pub(super) fn poll(&mut self, now: Duration, delay: Duration, frozen: bool) {
        // Read before the poll: if the count is still the same later, a thread that this poll finds asleep has slept
        // ever since.
        let (thread, scheduled) = (self.thread.thread, self.thread.scheduled());
        let Ok(poll) = self.thread.poll_unless_frozen(frozen) else {
            return self.switch_back_to_main();
        };
        let times = scheduled.map(|scheduled| scheduled.times);
        let for_gil = (self.gil).poll(&self.thread, poll, times, &self.python);
        if for_gil.is_some() {
            self.beats.tally.gil.get_or_insert_default();
        }
        let for_gil = for_gil == Some(true);
        let doing = self.doing(now, poll, times, for_gil);
        let inside = doing.is_in_loader();
        self.iterators.count_wait(inside, poll.polled);
        let by_pytorch = self.by_pytorch();
        if by_pytorch && !self.fed.may_get_from_thread() {
            self.beats.drop_unclear();
        }
        let idle = (self.fed.idle(by_pytorch, poll.blocked)).filter(|_| !inside);
        let stands = by_pytorch && !self.waits.is_open() && self.iterators.stand_still();
        let prepares = self.fed.prepares(poll.blocked, stands);
        let writes = || !inside && self.thread.call().is_some_and(SystemCall::is_writing);
        let beat = Beat {
            doing,
            thread: match poll.blocked {
                Blocked::Running => ThreadState::Ready,
                _ => ThreadState::Asleep,
            },
            for_gil,
            // Without workers and without a stack, any of this could be loading. A thread idle in an event loop makes
            // no step.
            unseen: idle.is_some() || (self.in_loader.is_none() && !self.has_workers),
            unclear: if self.thread.attachable() {
                !by_pytorch && self.fed.is_unclear() || self.fed.may_wait_for_thread()
            } else {
                // Without stacks: another thread may take what the workers load, or the main thread may be receiving a
                // batch.
                let perhaps = [Blocked::Lock, Blocked::Unix, Blocked::PipeRead];
                perhaps.contains(&poll.blocked) && self.has_workers
            },
            in_generator: self.fed.last.in_generator,
            prepares,
            saves: self.fed.last.saves && !inside,
            not_data: self.fed.not_data(poll.blocked, idle, for_gil, writes),
            blocked: !self.accelerated && !for_gil && self.fed.is_blocked(poll.blocked),
            dispatched: self.fed.last.dispatched,
            pinning: self.is_at_pin_thread(poll) == Some(true),
            network: poll.blocked == Blocked::Network,
            in_loop: self.in_loader == Some(InLoader::Asking),
            computing: self.fed.last.trains || self.fed.last.layer,
            delay,
        };
        self.beats.count(now, beat);
        self.iterators
            .spend(now, &self.beats.tally, self.fed.last.trains && !inside);
        self.beats
            .ready(now, thread, scheduled.map(|counted| counted.ready));
        if let Some(seen) = beat.now() {
            self.polls.record(now, seen, SLOTS);
        }
        let wait_ended = (self.waits).follow(now, inside, poll.polled, &mut self.iterators);
        // After a wait, the trainer holds the batch that it waited for.
        self.segments.poll(
            now,
            if wait_ended {
                MIN_INTERVAL_AFTER_WAIT
            } else {
                MIN_INTERVAL
            },
        );
        self.iterators.read_if_due(now);
    }

    /// Whether a loader of PyTorch feeds the thread.
    pub(super) fn by_pytorch(&self) -> bool {
        self.fed.is_pytorch() || self.iterators.has_any()
    }

    fn doing(&mut self, now: Duration, poll: Polled, times: Option<u64>, for_gil: bool) -> Doing {
        if poll.blocked == Blocked::Stopped {
            return Doing::Stopped;
        }
        let about_to_run = poll.is_about_to_run(self.run_before_wait, times);
        let at_queue = !for_gil && self.is_waiting(poll);
        let waits = at_queue || (!for_gil && about_to_run);
        // It may have gone on to its own loader since the last stack.
        self.fed.last.dispatched &= !at_queue;
        self.run_before_wait = times.filter(|_| waits);
        if self.thread.attachable() && self.needs_stack(now, poll, waits) {
            self.poll_stack(now, poll, times, for_gil);
            self.check_lock(poll, times);
        }
        if for_gil {
            self.gil.poll_holder(now, &mut self.python);
        }
        match (self.in_loader, poll.blocked) {
            _ if waits => Doing::Waiting,
            (Some(InLoader::Waiting), _) => Doing::Waiting,
            (Some(InLoader::Starting), _) => Doing::Starting,
            (Some(InLoader::Receiving), _) => Doing::Receiving,
            (Some(InLoader::Loading), blocked) => self.fed.loading(blocked),
            (Some(InLoader::Asking), blocked) => asking(blocked, self.fed.last.hands_over),
            (_, Blocked::Running) => Doing::Running,
            (_, Blocked::Disk) => Doing::Disk,
            _ => Doing::Other,
        }
    }

    /// Compares a wait on a lock, which is visible without a stack, with the stack that was read in that wait: the thread
    /// has not run since before the poll. If that is outside the loader, waits on locks no longer count as waits for a
    /// batch.
    fn check_lock(&mut self, poll: Polled, times: Option<u64>) {
        let asleep = times.is_some() && self.asleep_at_stack == times;
        let outside = asleep && self.in_loader == Some(InLoader::Outside);
        let now = || self.thread.scheduled().map(|counted| counted.times);
        if outside && poll.blocked == Blocked::Lock && self.is_waiting(poll) && times == now() {
            self.visible.locks_elsewhere = true;
            self.beats.restart_counts(false);
        }
    }

    /// Whether a stack must be read. A wait that is visible without a stack needs one only to find whose queue it is
    /// and which thread trains; a wait on a lock needs one now and then, as it may be for something else. If PyTorch's
    /// loader with workers is the only one, a trainer in a timer is outside the loader, unless it was seen to sleep
    /// there.
    fn needs_stack(&mut self, now: Duration, poll: Polled, waits: bool) -> bool {
        if waits {
            let of_unknown = self.iterators.batches(poll.polled).is_none();
            let lock = poll.blocked == Blocked::Lock && self.visible.lock_is_due(now);
            return of_unknown || lock || (!self.beside && self.trainer.is_due(now));
        }
        let old = now.saturating_sub(self.stack_at) >= odd_pause(self.stack_at, STACK_AFTER);
        let queue = self.queue.known && !self.iterators.has_any();
        let inside = self.iterators.loads_in_main() || self.slept_inside.is_some();
        let other = self.fed.shows_more(now) || queue || inside;
        if self.has_workers && poll.blocked == Blocked::Timer && !old && !other {
            self.in_loader = Some(InLoader::Outside);
            return false;
        }
        self.stack_at = now;
        true
    }

    /// Whether it is blocked until the loader hands over a batch. Without pinning, it polls the result pipe.
    fn is_waiting(&self, poll: Polled) -> bool {
        match (poll.blocked, poll.polled) {
            (Blocked::Lock, _) => {
                !self.visible.locks_elsewhere && self.is_at_pin_thread(poll) == Some(false)
            }
            (Blocked::Poll, Some(fd)) => self.visible.is_polled_for_batches(fd),
            // Without its stack, a main thread with workers that is in `poll` is assumed to wait for them.
            (Blocked::Poll, None) if self.pin_thread.is_some() => false,
            (Blocked::Poll, None) => self.has_workers && !self.thread.attachable(),
            _ => false,
        }
    }

    /// Whether the pinning thread is working on a batch, rather than waiting for one, while the main thread waits for
    /// it. `None` if the main thread does not, or if that cannot be seen. PyTorch's loader waits with a time limit, to
    /// notice if the pinning thread has ended; `backward` on a GPU, which runs in another thread, waits without one.
    fn is_at_pin_thread(&self, poll: Polled) -> Option<bool> {
        let pin = self.pin_thread.as_ref()?;
        let may_be_timed = || self.thread.call().is_none_or(SystemCall::is_timed_futex);
        let waits = poll.blocked == Blocked::Lock && may_be_timed();
        Some(waits.then(|| pin.poll().ok())??.blocked != Blocked::Poll)
    }

    fn poll_stack(&mut self, now: Duration, poll: Polled, times: Option<u64>, for_gil: bool) {
        let Some(stacks) = self.python.stacks(now, None) else {
            self.in_loader = None;
            return self.fed.lose_stack();
        };
        let asleep = times.filter(|_| poll.blocked != Blocked::Running);
        let yields = self.iterators.yields();
        let at_gil = || for_gil || !stacks.has_gil();
        let context = (self.fed).context(yields, poll.blocked, self.accelerated, at_gil);
        let unmoved = self.asleep_at_stack.take() == asleep && asleep.is_some();
        let unmoved = unmoved.then(|| stacks.main_if_unchanged(context)).flatten();
        // After an inconsistent read the last result is kept.
        let Some(stack) = unmoved.or_else(|| stacks.main_thread(context).ok()) else {
            return;
        };
        self.asleep_at_stack = asleep;
        self.in_loader = Some(stack.loader);
        if poll.blocked == Blocked::Timer && stack.loader != InLoader::Outside {
            self.slept_inside = Some(now);
        }
        self.beats.record_stack(stack.loops_found);
        let by_pytorch = self.iterators.has_any();
        if let Some(asks) = self.fed.stack(now, stack, poll.blocked, by_pytorch) {
            self.beats.restart_counts(asks == Asks::Site);
        }
        let stack = &self.fed.last;
        if let (InLoader::Waiting, Some(fd)) = (stack.loader, poll.polled)
            && !stack.dispatched
        {
            self.visible.add(fd);
        }
        self.queue.poll(now, stack.queue);
        let knows = self.fed.is_pytorch() || self.fed.is_seen() || by_pytorch;
        let open = |thread| ThreadView::open(&self.proc_root, self.key.pid, thread).ok();
        if !self.beside
            && let Some(found) = self.trainer.poll(now, stack, poll.blocked, knows, stacks)
            && let Some(view) = self.threads.ours(found.thread).and_then(open)
        {
            stacks.follow(Some(found.state));
            return self.switch_thread(view, true);
        }
        if let Some(address) = stack.iterator {
            let polled = poll.polled.filter(|fd| self.visible.is_result_pipe(*fd));
            self.iterators.met(stacks, address, polled, stack.outer);
        }
        if stack.iterator.is_none() || !self.iterators.has_all() {
            self.iterators.search(now, stacks);
        }
        let handed_over = self.fed.is_handed_over();
        if handed_over || !(self.fed.is_pytorch() || self.iterators.has_any()) {
            self.queue.search(now, stacks);
            if handed_over || self.fed.is_seen() || self.queue.known {
                self.threads.poll(now, stacks);
            }
        }
        if let Some(function) = self.fed.last.function.take() {
            count_activity(&mut self.activity, function);
        }
    }

    /// Switches to another thread and clears the state of the previous one.
    fn switch_thread(&mut self, view: ThreadView, beside: bool) {
        (self.thread, self.beside) = (view, beside);
        (self.in_loader, self.asleep_at_stack) = (None, None);
        self.run_before_wait = None;
        self.gil.switch_thread();
        (self.fed, self.queue) = (FeedEvidence::default(), ObjectQueue::default());
        self.beats.switch_thread();
    }

    /// Returns to the main thread when the thread that trained has ended.
    fn switch_back_to_main(&mut self) {
        let main = ThreadView::open(&self.proc_root, self.key.pid, self.key.pid);
        if let (Some(stacks), Ok(main)) = (self.python.attached_mut(), main)
            && self.beside
        {
            stacks.follow(None);
            self.trainer = TrainerThread::default();
            self.switch_thread(main, false);
        }
    }

    pub(super) fn publish(&mut self, seen: &mut MainSeen) {
        seen.tally = self.beats.tally;
        seen.recognised = self.beats.recognised;
        self.waits.publish(seen);
        // Counts of batches that lag behind the time would make rates too low.
        seen.queue = self.queue.seen;
        seen.iterators.clone_from(&self.iterators.seen);
    }

    /// Publishes what seldom changes or is large; not called at every poll.
    pub(super) fn publish_rest(&self, now: Duration, seen: &mut MainSeen) {
        seen.polls.clone_from(&self.polls);
        seen.segments.clone_from(&self.segments.clocks);
        seen.passes = self.iterators.passes();
        (seen.saving, seen.handed_over) = (self.beats.saving, self.fed.is_handed_over());
        seen.behind = self.fed.behind;
        seen.not_data.clone_from(&self.beats.not_data);
        (seen.not_data_ready).clone_from(&self.beats.not_data_ready);
        seen.asks = self.fed.seen(now);
        seen.threads = self.threads.seen();
        seen.activity.clone_from(&self.activity);
        seen.gil_holders.clone_from(&self.gil.holders);
        seen.polled = self.iterators.pipes();
        seen.polled.extend(self.visible.polled());
        seen.python_error = self.python.error().cloned();
    }
}
