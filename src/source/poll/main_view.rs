//! One trainer's main thread, polled: is it in the loader, and does it wait there?

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::beats::{Beat, Beats, Doing, ThreadState};
use super::blocked::Blocked;
use super::fed::{Fed, asking, not_data};
use super::iterators::Iterators;
use super::loader_threads::LoaderThreads;
use super::object_queue::ObjectQueue;
use super::python_view::PythonView;
use super::segments::{AFTER_A_WAIT, AT_LEAST_BY, Segments};
use super::thread_view::{Polled, ThreadView};
use super::trainer_thread::TrainerThread;
use super::{MainSeen, SLOTS, WatchedRank, count_activity};
use crate::sample::{PollTrace, Tail, Wait};
use crate::source::python::{Asks, InLoader, Stacks};
use crate::units::ProcessKey;

/// Between two readings of the iterators' counters.
const ITERATORS_AFTER: Duration = Duration::from_millis(200);
/// Between two stacks that are only read for the function that runs.
const STACK_AFTER: Duration = Duration::from_millis(200);
/// Waits that are kept until they are taken: more than end between two samples.
const WAITS: usize = 4096;

#[derive(Debug)]
pub(super) struct MainView {
    key: ProcessKey,
    proc_root: PathBuf,
    /// The main thread, or the one that trains in its place.
    thread: ThreadView,
    trainer: TrainerThread,
    /// A thread beside the main one is polled.
    beside: bool,
    pin_thread: Option<ThreadView>,
    python: PythonView,
    /// The last stack's answer: holds until the next, where a poll at the stack fails.
    in_loader: Option<InLoader>,
    stack_at: Duration,
    /// How often the thread had been put on a CPU when its newest stack was read, while it slept.
    asleep_at_stack: Option<u64>,
    iterators: Iterators,
    iterators_at: Duration,
    /// The trainer's descriptors of result pipes.
    result_fds: Vec<i32>,
    /// Descriptors that it polled while its stack was waiting for a batch.
    polled: Vec<i32>,
    has_workers: bool,
    /// How often it had been put on a CPU when it was last seen to wait; `None` once it has run since.
    run_before_wait: Option<u64>,
    /// The same of a wait for the interpreter's lock.
    run_before_gil: Option<u64>,
    /// Since when it waits, and the batches that it had taken by then.
    waiting: Option<(Duration, Option<u64>)>,
    beats: Beats,
    /// At the last stack it wrote a checkpoint.
    saves: bool,
    fed: Fed,
    queue: ObjectQueue,
    threads: LoaderThreads,
    waits: Tail<Wait>,
    polls: PollTrace,
    activity: BTreeMap<String, u64>,
    /// Functions of the thread that held the interpreter's lock while the main thread waited for it.
    gil_holders: BTreeMap<String, u64>,
    gil_holder_at: Duration,
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
            stack_at: Duration::ZERO,
            asleep_at_stack: None,
            iterators: Iterators::default(),
            iterators_at: Duration::ZERO,
            result_fds: Vec::new(),
            polled: Vec::new(),
            has_workers: false,
            run_before_wait: None,
            run_before_gil: None,
            waiting: None,
            beats: Beats::default(),
            saves: false,
            fed: Fed::default(),
            queue: ObjectQueue::default(),
            threads: LoaderThreads::new(proc_root.to_owned(), rank.key.pid),
            waits: Tail::default(),
            polls: PollTrace::default(),
            activity: BTreeMap::new(),
            gil_holders: BTreeMap::new(),
            gil_holder_at: Duration::ZERO,
            segments: Segments::of(&proc_root.join(rank.key.pid.to_string())),
        };
        view.follow(proc_root, rank);
        Ok(view)
    }

    pub(super) fn key(&self) -> ProcessKey {
        self.key
    }

    pub(super) fn stacks(&self) -> Option<&Stacks> {
        self.python.attached()
    }

    pub(super) fn follow(&mut self, proc_root: &Path, rank: &WatchedRank) {
        // It takes its name only after its start.
        if rank.builtin {
            self.python.refuse();
        }
        let pipes = rank.loaders.iter().filter_map(|loader| loader.pipe);
        self.result_fds = pipes.map(|pipe| pipe.fd).collect();
        self.has_workers = rank.loaders.iter().any(|loader| !loader.workers.is_empty());
        self.pin_thread = rank
            .pin_thread
            .and_then(|thread| ThreadView::open(proc_root, rank.key.pid, thread).ok());
        self.segments.follow(&rank.loaders);
        self.iterators.follow(&rank.loaders);
    }

    pub(super) fn poll(&mut self, now: Duration) {
        // Before the poll: who sleeps then has slept since, as long as this does not change.
        let scheduled = self.thread.scheduled();
        let Ok(poll) = self.thread.poll() else {
            return self.poll_main_again();
        };
        let times = scheduled.map(|scheduled| scheduled.times);
        let for_gil = self.waits_for_gil(poll, times);
        self.run_before_gil = times.filter(|_| for_gil);
        let doing = self.doing(now, poll, times, for_gil);
        let inside = doing.is_in_loader();
        if self.by_pytorch() {
            self.beats.clear();
        }
        let beat = Beat {
            doing,
            thread: match poll.blocked {
                Blocked::Running => ThreadState::Ready,
                _ => ThreadState::Asleep,
            },
            for_gil,
            // Without workers and without a stack, all of this could be loading.
            unseen: self.in_loader.is_none() && !self.has_workers,
            unclear: if self.thread.attachable() {
                !self.by_pytorch() && self.fed.is_unclear(self.has_workers)
            } else {
                // Without stacks: another thread may take what the workers load.
                poll.blocked == Blocked::Lock && self.has_workers
            },
            saves: self.saves && !inside,
            not_data: self.fed.not_data.or_else(|| not_data(poll.blocked)),
            dispatched: self.fed.dispatched,
        };
        self.beats.count(now, beat);
        self.beats.ready(scheduled.map(|scheduled| scheduled.ready));
        if let Some(seen) = beat.now() {
            self.polls.see(now, seen, SLOTS);
        }
        self.follow_wait(now, inside, poll.polled);
        if now.saturating_sub(self.iterators_at) >= ITERATORS_AFTER {
            self.iterators_at = now;
            self.iterators.read();
        }
    }

    /// A loader of PyTorch's feeds it.
    fn by_pytorch(&self) -> bool {
        self.fed.is_pytorch() || self.iterators.knows_any()
    }

    fn doing(&mut self, now: Duration, poll: Polled, times: Option<u64>, for_gil: bool) -> Doing {
        if poll.blocked == Blocked::Stopped {
            return Doing::Stopped;
        }
        let about_to_run = poll.is_about_to_run(self.run_before_wait, times);
        let at_queue = !for_gil && self.is_waiting(poll);
        let waits = at_queue || (!for_gil && about_to_run);
        // It goes on to its own loader without a stack between.
        self.fed.dispatched &= !at_queue;
        self.run_before_wait = times.filter(|_| waits);
        if self.thread.attachable() && self.needs_stack(now, poll, waits) {
            self.poll_stack(now, poll, times);
        }
        if for_gil {
            self.poll_gil_holder(now);
        }
        let in_loader = self.in_loader.filter(|_| !waits);
        match (in_loader, poll.blocked) {
            _ if waits => Doing::Waiting,
            (Some(InLoader::Waiting | InLoader::Starting), _) => Doing::Waiting,
            (Some(InLoader::Receiving), _) => Doing::Receiving,
            (Some(InLoader::Loading), _) => Doing::Loading,
            (Some(InLoader::Asking), blocked) => asking(blocked),
            (None, Blocked::Unix | Blocked::PipeRead) if self.has_workers => Doing::Receiving,
            (_, Blocked::Running) => Doing::Running,
            (_, Blocked::Disk) => Doing::Disk,
            _ => Doing::Other,
        }
    }

    /// A wait that is plain to see needs no stack but the one that shows whose queue it is. With PyTorch's workers alone,
    /// a trainer in a timer is outside the loader.
    fn needs_stack(&mut self, now: Duration, poll: Polled, waits: bool) -> bool {
        if waits {
            return self.iterators.batches(poll.polled).is_none();
        }
        let old = now.saturating_sub(self.stack_at) >= STACK_AFTER;
        let queue = self.queue.is_known() && !self.iterators.knows_any();
        let other = self.fed.is_met() || queue;
        if self.has_workers && poll.blocked == Blocked::Timer && !old && !other {
            self.in_loader = Some(InLoader::Outside);
            return false;
        }
        self.stack_at = now;
        true
    }

    /// Asleep until another thread gives up the interpreter's lock, by the futex that it sleeps on; or woken from
    /// that, as it is every 5 ms, and not on a CPU since. Locks of PyTorch, the driver and queues are others.
    fn waits_for_gil(&mut self, poll: Polled, times: Option<u64>) -> bool {
        let Some(stacks) = self.python.attached().filter(|stacks| stacks.knows_gil()) else {
            return false;
        };
        self.beats.tally.gil.get_or_insert_default();
        let futex = || self.thread.futex();
        match poll.blocked {
            Blocked::Lock => futex().is_some_and(|futex| stacks.waits_for_gil(futex)),
            _ => poll.is_about_to_run(self.run_before_gil, times),
        }
    }

    /// Who holds the lock that the main thread waits for.
    fn poll_gil_holder(&mut self, now: Duration) {
        if now.saturating_sub(self.gil_holder_at) < STACK_AFTER {
            return;
        }
        self.gil_holder_at = now;
        let stacks = self.python.stacks(now, None);
        if let Some(Ok(Some(function))) = stacks.map(Stacks::gil_holder) {
            count_activity(&mut self.gil_holders, function);
        }
    }

    /// Blocked until the loader hands over a batch. Without pinning the main thread polls the result
    /// pipe; with it, it waits for the pinning thread, which polls the pipe.
    fn is_waiting(&self, poll: Polled) -> bool {
        match (poll.blocked, poll.polled, &self.pin_thread) {
            (Blocked::Lock, _, Some(pin)) => {
                pin.poll().is_ok_and(|pin| pin.blocked == Blocked::Poll)
            }
            (Blocked::Poll, Some(fd), _) => {
                self.result_fds.contains(&fd) || self.polled.contains(&fd)
            }
            // A stranger's eyes: who has workers and polls is taken to wait for them.
            (Blocked::Poll, None, None) => self.has_workers && !self.thread.attachable(),
            _ => false,
        }
    }

    fn poll_stack(&mut self, now: Duration, poll: Polled, times: Option<u64>) {
        let Some(stacks) = self.python.stacks(now, None) else {
            self.in_loader = None;
            self.saves = false;
            return;
        };
        let asleep = times.filter(|_| poll.blocked != Blocked::Running);
        let reads = self.fed.reads_for_itself(self.iterators.yields());
        let unmoved = asleep.is_some() && asleep == self.asleep_at_stack;
        let unmoved = if unmoved {
            stacks.main_thread_unmoved(reads)
        } else {
            None
        };
        self.asleep_at_stack = None;
        // Torn: what was seen last holds.
        let Some(stack) = unmoved.or_else(|| stacks.main_thread(reads).ok()) else {
            return;
        };
        self.asleep_at_stack = asleep;
        self.in_loader = Some(stack.loader);
        self.saves = stack.saves;
        self.beats.saving = self.beats.saving.or(Some(0));
        self.beats.found(stack.loops_found);
        if self.fed.stack(now, &stack, poll.blocked) {
            self.beats.recognise(stack.asks == Some(Asks::Site));
        }
        if let (InLoader::Waiting, Some(fd)) = (stack.loader, poll.polled)
            && !stack.dispatched
            && !self.polled.contains(&fd)
        {
            self.polled.push(fd);
        }
        self.queue.poll(now, stack.queue);
        let knows = self.fed.is_pytorch() || self.fed.is_met() || self.iterators.knows_any();
        let open = |thread| ThreadView::open(&self.proc_root, self.key.pid, thread).ok();
        if !self.beside
            && let Some(found) = self.trainer.poll(now, &stack, stacks).filter(|_| !knows)
            && let Some(view) = self.threads.ours(found.thread).and_then(open)
        {
            stacks.follow(Some(found.state));
            return self.look_at_thread(view, true);
        }
        match stack.iterator {
            Some(address) => {
                let polled = poll.polled.filter(|fd| self.result_fds.contains(fd));
                self.iterators.met(stacks, address, polled);
            }
            None => self.iterators.search(now, stacks),
        }
        if !self.fed.is_pytorch() && !self.iterators.knows_any() {
            self.queue.search(now, stacks);
            if self.fed.is_met() || self.queue.is_known() {
                self.threads.poll(now, stacks);
            }
        }
        if let Some(function) = stack.function {
            count_activity(&mut self.activity, function);
        }
    }

    /// What was seen of another thread before says nothing of this one.
    fn look_at_thread(&mut self, view: ThreadView, beside: bool) {
        self.thread = view;
        self.beside = beside;
        self.in_loader = None;
        (
            self.asleep_at_stack,
            self.run_before_wait,
            self.run_before_gil,
        ) = (None, None, None);
        (self.fed, self.queue) = (Fed::default(), ObjectQueue::default());
        self.beats.recognise(false);
    }

    /// The thread that trained has ended.
    fn poll_main_again(&mut self) {
        let main = ThreadView::open(&self.proc_root, self.key.pid, self.key.pid);
        if let (Some(stacks), Ok(main)) = (self.python.attached_mut(), main)
            && self.beside
        {
            stacks.follow(None);
            self.trainer = TrainerThread::default();
            self.look_at_thread(main, false);
        }
    }

    fn follow_wait(&mut self, now: Duration, waiting: bool, polled: Option<i32>) {
        match (waiting, self.waiting) {
            (true, None) => {
                self.iterators.read();
                self.waiting = Some((now, self.iterators.batches(polled)));
            }
            (false, Some((from, batch))) => {
                self.waiting = None;
                let to = now;
                self.waits.push(Wait { from, to, batch }, WAITS);
                // The batch that it waited for is held now.
                self.segments.poll(now, AFTER_A_WAIT);
            }
            _ => self.segments.poll(now, AT_LEAST_BY),
        }
    }

    pub(super) fn publish(&mut self, seen: &mut MainSeen) {
        seen.tally = self.beats.tally;
        seen.recognised = self.beats.recognised;
        let waits = self.waits.newest.drain(..);
        waits.for_each(|wait| seen.waits.push(wait, WAITS));
    }

    /// What changes seldom or is large: not with every poll.
    pub(super) fn publish_rest(&self, now: Duration, seen: &mut MainSeen) {
        seen.polls.clone_from(&self.polls);
        seen.segments.clone_from(&self.segments.clocks);
        seen.iterators.clone_from(&self.iterators.seen);
        seen.passes = self.iterators.passes();
        seen.saving = self.beats.saving;
        seen.not_data.clone_from(&self.beats.not_data);
        seen.asks = self.fed.seen(now);
        seen.queue = self.queue.seen;
        seen.threads = self.threads.seen();
        seen.activity.clone_from(&self.activity);
        seen.gil_holders.clone_from(&self.gil_holders);
        seen.polled.clone_from(&self.polled);
        seen.python_error = self.python.error().cloned();
    }
}
