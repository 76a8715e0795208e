//! One trainer's main thread, looked at: is it in the loader, and does it wait there?

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::blocked::Blocked;
use super::iterators::Iterators;
use super::python_view::PythonView;
use super::thread_view::{Look, ThreadView};
use super::{MainSeen, WatchedRank, count_activity};
use crate::sample::{MainTally, Wait};
use crate::source::python::{InLoader, Stacks};
use crate::source::shared_memory::SegmentClock;
use crate::units::ProcessKey;

/// Between two looks at the shared memory that the trainer holds, at least and at most.
const SEGMENTS_AFTER: Duration = Duration::from_millis(100);
const SEGMENTS_BY: Duration = Duration::from_millis(250);
/// Between two readings of the iterators' counters.
const ITERATORS_AFTER: Duration = Duration::from_millis(200);
/// Between two stacks that are only asked for the function that runs.
const STACK_AFTER: Duration = Duration::from_millis(200);
/// The unit of time that the states of the main thread are counted in.
const BEAT: Duration = Duration::from_millis(10);
/// Longer than this between two looks nothing is known of the time between: the machine slept.
const MOST_BEATS: u64 = 100;
/// Waits that are kept until they are taken: far more than end between two samples.
const WAITS: usize = 4096;

#[derive(Debug)]
pub(super) struct MainView {
    key: ProcessKey,
    thread: ThreadView,
    pin_thread: Option<ThreadView>,
    python: PythonView,
    /// The last stack's answer: holds until the next, where a look at the stack fails.
    in_loader: Option<InLoader>,
    stack_at: Duration,
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
    /// The beat that was counted last, and what was seen then.
    counted: Option<(u128, Seen)>,
    tally: MainTally,
    /// At the last stack it wrote a checkpoint, and for how long it was seen to in all; `None` without stacks.
    saves: bool,
    saving: Option<u64>,
    waits: Vec<Wait>,
    activity: BTreeMap<String, u64>,
    /// Functions of the thread that held the interpreter's lock while the main thread waited for it.
    gil_holders: BTreeMap<String, u64>,
    gil_holder_at: Duration,
    descriptors: PathBuf,
    /// By loader.
    segments: BTreeMap<u64, SegmentClock>,
    segments_at: Duration,
}

/// What a look saw.
#[derive(Debug, Clone, Copy)]
struct Seen {
    doing: Doing,
    /// Asleep until another thread of its own gives up the interpreter's lock.
    for_gil: bool,
}

/// What a look means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Waiting,
    Receiving,
    Loading,
    Running,
    Disk,
    Stopped,
    Other,
}

impl MainView {
    pub(super) fn open(proc_root: &Path, rank: &WatchedRank) -> io::Result<Self> {
        let mut view = Self {
            key: rank.key,
            thread: ThreadView::open(proc_root, rank.key.pid, rank.key.pid)?,
            pin_thread: None,
            python: PythonView::new(proc_root, rank.key.pid),
            in_loader: None,
            stack_at: Duration::ZERO,
            iterators: Iterators::default(),
            iterators_at: Duration::ZERO,
            result_fds: Vec::new(),
            polled: Vec::new(),
            has_workers: false,
            run_before_wait: None,
            run_before_gil: None,
            waiting: None,
            counted: None,
            tally: MainTally::default(),
            saves: false,
            saving: None,
            waits: Vec::new(),
            activity: BTreeMap::new(),
            gil_holders: BTreeMap::new(),
            gil_holder_at: Duration::ZERO,
            descriptors: proc_root.join(format!("{}/fd", rank.key.pid)),
            segments: BTreeMap::new(),
            segments_at: Duration::ZERO,
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
        self.segments
            .retain(|id, _| rank.loaders.iter().any(|loader| loader.id == *id));
        for loader in &rank.loaders {
            let clock = self.segments.entry(loader.id).or_default();
            clock.follow(loader.workers.iter().map(|worker| worker.pid));
        }
        self.iterators.follow(&rank.loaders);
    }

    pub(super) fn look(&mut self, now: Duration) {
        let Ok(look) = self.thread.look() else { return };
        let for_gil = self.waits_for_gil(look);
        self.run_before_gil = if for_gil {
            self.thread.times_run()
        } else {
            None
        };
        let doing = self.doing(now, look, for_gil);
        self.count(now, Seen { doing, for_gil });
        let inside = matches!(doing, Doing::Waiting | Doing::Receiving | Doing::Loading);
        self.follow_wait(now, inside, look.polled);
        if now.saturating_sub(self.iterators_at) >= ITERATORS_AFTER {
            self.iterators_at = now;
            self.iterators.read();
        }
    }

    fn doing(&mut self, now: Duration, look: Look, for_gil: bool) -> Doing {
        if look.blocked == Blocked::Stopped {
            return Doing::Stopped;
        }
        let waits =
            !for_gil && (self.is_waiting(look) || self.is_about_to_run(look, self.run_before_wait));
        self.run_before_wait = if waits { self.thread.times_run() } else { None };
        if self.thread.attachable() && self.needs_stack(now, look, waits) {
            self.look_at_stack(now, look);
        }
        if for_gil {
            self.look_at_gil_holder(now);
        }
        let in_loader = self.in_loader.filter(|_| !waits);
        match (in_loader, look.blocked) {
            _ if waits => Doing::Waiting,
            (Some(InLoader::Waiting | InLoader::Starting), _) => Doing::Waiting,
            (Some(InLoader::Receiving), _) => Doing::Receiving,
            (Some(InLoader::Loading), _) => Doing::Loading,
            (None, Blocked::Unix | Blocked::PipeRead) if self.has_workers => Doing::Receiving,
            (_, Blocked::Running) => Doing::Running,
            (_, Blocked::Disk) => Doing::Disk,
            _ => Doing::Other,
        }
    }

    /// A wait that is plain to see needs no stack but the one that shows whose queue it is. With workers,
    /// a trainer in a timer is outside the loader; without, it may be loading, whatever it does.
    fn needs_stack(&mut self, now: Duration, look: Look, waits: bool) -> bool {
        if waits {
            return self.iterators.batches(look.polled).is_none();
        }
        let old = now.saturating_sub(self.stack_at) >= STACK_AFTER;
        if self.has_workers && look.blocked == Blocked::Timer && !old {
            self.in_loader = Some(InLoader::Outside);
            return false;
        }
        self.stack_at = now;
        true
    }

    /// Asleep until another thread gives up the interpreter's lock, by the futex that it sleeps on; or woken from
    /// that, as it is every 5 ms, and not on a CPU since. Locks of PyTorch, the driver and queues are others.
    fn waits_for_gil(&mut self, look: Look) -> bool {
        let Some(stacks) = self.python.attached().filter(|stacks| stacks.knows_gil()) else {
            return false;
        };
        self.tally.gil.get_or_insert_default();
        let futex = || self.thread.futex();
        match look.blocked {
            Blocked::Lock => futex().is_some_and(|futex| stacks.waits_for_gil(futex)),
            _ => self.is_about_to_run(look, self.run_before_gil),
        }
    }

    /// Who holds the lock that the main thread waits for.
    fn look_at_gil_holder(&mut self, now: Duration) {
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
    fn is_waiting(&self, look: Look) -> bool {
        match (look.blocked, look.polled, &self.pin_thread) {
            (Blocked::Lock, _, Some(pin)) => {
                pin.look().is_ok_and(|pin| pin.blocked == Blocked::Poll)
            }
            (Blocked::Poll, Some(fd), _) => {
                self.result_fds.contains(&fd) || self.polled.contains(&fd)
            }
            // A stranger's eyes: who has workers and polls is taken to wait for them.
            (Blocked::Poll, None, None) => self.has_workers && !self.thread.attachable(),
            _ => false,
        }
    }

    /// Woken from a wait, and since then not once on a CPU: where CPUs are short that is part of the wait.
    fn is_about_to_run(&self, look: Look, run_before: Option<u64>) -> bool {
        look.blocked == Blocked::Running
            && run_before.is_some()
            && run_before == self.thread.times_run()
    }

    fn look_at_stack(&mut self, now: Duration, look: Look) {
        let Some(stacks) = self.python.stacks(now, None) else {
            self.in_loader = None;
            self.saves = false;
            return;
        };
        // Torn: what was seen last holds.
        let Ok(stack) = stacks.main_thread() else {
            return;
        };
        self.in_loader = Some(stack.loader);
        self.saves = stack.saves;
        self.saving = self.saving.or(Some(0));
        if let (InLoader::Waiting, Some(fd)) = (stack.loader, look.polled)
            && !self.polled.contains(&fd)
        {
            self.polled.push(fd);
        }
        match stack.iterator {
            Some(address) => {
                let polled = look.polled.filter(|fd| self.result_fds.contains(fd));
                self.iterators.met(stacks, address, polled);
            }
            None => self.iterators.search(now, stacks),
        }
        if let Some(function) = stack.function {
            count_activity(&mut self.activity, function);
        }
    }

    /// Counts in beats of time, not in looks: looks come at uneven intervals, and later where the job
    /// keeps the CPUs busy, which is not independent of what the main thread does. Of the beats since
    /// the look before, half go to what was seen then, and half to what is seen now.
    fn count(&mut self, now: Duration, seen: Seen) {
        let beat = now.as_millis() / BEAT.as_millis();
        let (before, last) = self.counted.unwrap_or((beat.saturating_sub(1), seen));
        let beats = u64::try_from(beat.saturating_sub(before))
            .unwrap_or(u64::MAX)
            .min(MOST_BEATS);
        self.counted = Some((beat, seen));
        let inside = matches!(
            seen.doing,
            Doing::Waiting | Doing::Receiving | Doing::Loading
        );
        if let Some(saving) = self.saving.as_mut().filter(|_| self.saves && !inside) {
            *saving += beats;
        }
        self.add(last, beats / 2);
        self.add(seen, beats - beats / 2);
    }

    fn add(&mut self, Seen { doing, for_gil }: Seen, beats: u64) {
        let tally = &mut self.tally;
        tally.looks += beats;
        let count = match doing {
            Doing::Waiting => &mut tally.waiting,
            Doing::Receiving => &mut tally.receiving,
            Doing::Loading => &mut tally.loading,
            Doing::Running => &mut tally.running,
            Doing::Disk => &mut tally.disk,
            Doing::Stopped => &mut tally.stopped,
            Doing::Other => &mut tally.other,
        };
        *count += beats;
        let outside = matches!(doing, Doing::Running | Doing::Disk | Doing::Other);
        if for_gil {
            let gil = tally.gil.get_or_insert_default();
            *(if outside {
                &mut gil.outside
            } else {
                &mut gil.in_loader
            }) += beats;
        }
        // Without workers and without a stack, all of this could be loading.
        if outside && self.in_loader.is_none() && !self.has_workers {
            tally.unseen += beats;
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
                if self.waits.len() < WAITS {
                    self.waits.push(Wait {
                        from,
                        to: now,
                        batch,
                    });
                }
                // The batch that it waited for is held now.
                self.look_at_segments(now, SEGMENTS_AFTER);
            }
            _ => self.look_at_segments(now, SEGMENTS_BY),
        }
    }

    /// Sees which shared memory the trainer holds, if `pause` has passed since it was last asked.
    fn look_at_segments(&mut self, now: Duration, pause: Duration) {
        if !self.has_workers || now.saturating_sub(self.segments_at) < pause {
            return;
        }
        self.segments_at = now;
        let entries = std::fs::read_dir(&self.descriptors)
            .into_iter()
            .flatten()
            .flatten();
        let targets: Vec<PathBuf> = entries
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .collect();
        for clock in self.segments.values_mut() {
            clock.look(targets.iter().map(PathBuf::as_path));
        }
    }

    pub(super) fn publish(&mut self, seen: &mut MainSeen) {
        seen.tally = self.tally;
        let room = WAITS.saturating_sub(seen.waits.len());
        seen.waits.extend(self.waits.drain(..).take(room));
    }

    /// What changes seldom or is large: not with every look.
    pub(super) fn publish_rest(&self, seen: &mut MainSeen) {
        seen.segments.clone_from(&self.segments);
        seen.iterators.clone_from(&self.iterators.seen);
        seen.passes = self.iterators.passes();
        seen.saving = self.saving;
        seen.activity.clone_from(&self.activity);
        seen.gil_holders.clone_from(&self.gil_holders);
        seen.polled.clone_from(&self.polled);
        seen.python_error = self.python.error().cloned();
    }
}
