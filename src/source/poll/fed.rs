//! What feeds a main thread apart from PyTorch's loaders, from its stacks.
//!
//! Does not count waits or time.

use std::time::Duration;

use super::beats::Doing;
use super::blocked::Blocked;
use crate::sample::WRITTEN_FILE;
use crate::source::python::{Asks, AsleepIn, InLoader, MainStack, Preparing, ThreadContext};

/// A loader that was not seen for this long no longer feeds the trainer, or never did, such as a validation loader.
const FORGET_AFTER: Duration = Duration::from_secs(30);
/// After this long without a stack that shows possible work on a batch, the thread is taken to do none.
const PREPARES_NO_MORE: Duration = Duration::from_secs(5);
/// Number of stacks that must have shown a loader.
const MIN_SIGHTINGS: u32 = 2;
/// A place in the training loop may be no more than where PyTorch's loader is entered. It is more if at least this many
/// stacks show it, and at least one for every `PART_AT_PLACE` stacks in that loader.
const AT_PLACE: u32 = 3;
const PART_AT_PLACE: u32 = 4;

#[derive(Debug, Default)]
pub(super) struct FeedEvidence {
    /// The last stack, without its function once that was counted; empty while there are no stacks.
    pub(super) last: MainStack,
    /// How the loader is known, when it was last seen, and in how many stacks.
    asks: Option<(Asks, Duration, u32)>,
    /// Whether a loader of PyTorch was seen.
    pytorch: bool,
    /// While it is open whether a place in the training loop feeds the thread besides a loader of PyTorch: number of
    /// stacks that showed the thread at that place, and in that loader.
    at_place: Option<(u32, u32)>,
    /// Whether a loader known by its name shares batches with other ranks.
    shares: bool,
    unclear: Option<Unclear>,
    /// Whether the thread was seen waiting for another one.
    waits_for_threads: bool,
    /// When a stack last showed possible work on a batch outside the loader.
    prepares: Option<Duration>,
    /// Number of stacks in a loader of PyTorch without workers in which something was handed over to the thread.
    handed_over: u32,
    /// Name of the known loader that handed it over; `None` if no known one did.
    pub(super) behind: Option<&'static str>,
}

/// Why the thread may have been asking for a batch at the last stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unclear {
    /// It was waiting for another thread, or for something that it reads, outside the place where it asks for batches.
    Waits,
    /// The place where it asks for batches is not known.
    PlaceUnknown,
    /// That place is not known, and the thread is at work without the framework.
    Works,
}

impl FeedEvidence {
    /// Records a stack. Returns how the loader is known when the stacks first show one: earlier polls may have been in
    /// it. A loader known by its name that is seen after PyTorch's is a separate one, such as a validation loader, and
    /// is not returned. A place in the training loop may be where PyTorch's loaders (`by_pytorch`) are asked for
    /// batches; it counts only if more than that is done there.
    pub(super) fn stack(
        &mut self,
        now: Duration,
        stack: MainStack,
        blocked: Blocked,
        by_pytorch: bool,
    ) -> Option<Asks> {
        let nothing_met = self.asks.is_none() && !self.is_ahead();
        let pytorch = self.pytorch;
        self.last = stack;
        self.take_loader(now);
        let stack = &self.last;
        let outside = stack.loader == InLoader::Outside && stack.not_data.is_none();
        self.waits_for_threads |= stack.for_thread;
        if stack.prepares.is_some() {
            self.prepares = Some(now);
        }
        self.unclear = if outside && (stack.for_thread || reads(blocked)) {
            Some(Unclear::Waits)
        } else {
            let works = blocked == Blocked::Running && stack.without_framework;
            let place = if works {
                Unclear::Works
            } else {
                Unclear::PlaceUnknown
            };
            stack.unclear.then_some(place)
        };
        let first = nothing_met && self.asks.is_some();
        let at_place = stack.asks == Some(Asks::Site);
        let beside = pytorch || (at_place && by_pytorch);
        if first && at_place && beside {
            self.at_place = Some((0, 0));
        }
        let shown = (first && !beside) || self.is_more_than_pytorch();
        self.last.asks.filter(|_| shown)
    }

    /// Counts the last stack. Returns whether the thread has been at the place in the loop for more than to enter
    /// PyTorch's loader.
    fn is_more_than_pytorch(&mut self) -> bool {
        let Some((at_place, in_loader)) = self.at_place.as_mut() else {
            return false;
        };
        match self.last.asks {
            Some(Asks::Site) => *at_place += 1,
            _ => *in_loader += u32::from(self.last.loader != InLoader::Outside),
        }
        let more = *at_place >= AT_PLACE && PART_AT_PLACE * *at_place >= *in_loader;
        if more {
            self.at_place = None;
        }
        more
    }

    /// Forgets the last stack, because stacks can no longer be read.
    pub(super) fn lose_stack(&mut self) {
        self.last = MainStack::default();
    }

    /// Records what the last stack shows of the loader.
    fn take_loader(&mut self, now: Duration) {
        let stack = &self.last;
        if stack.loader == InLoader::Loading {
            self.handed_over = self.handed_over.saturating_add(u32::from(stack.hands_over));
            self.behind = stack.behind.or(self.behind);
        }
        self.shares |= stack.dispatched && matches!(stack.asks, Some(Asks::Loader(_)));
        let Some(asks) = stack.asks else {
            self.pytorch |= stack.loader != InLoader::Outside;
            return;
        };
        self.asks = match self.asks {
            Some((known, _, met)) if known == asks => Some((asks, now, met.saturating_add(1))),
            // The place in the loop is also seen when a loader has more functions than are known here.
            Some((known @ Asks::Loader(_), at, met)) if asks == Asks::Site => {
                Some((known, at, met))
            }
            _ => Some((asks, now, 1)),
        };
    }

    /// Returns what a main thread in a loader of PyTorch without workers does: other threads or processes may feed the
    /// dataset.
    pub(super) fn loading(&self, blocked: Blocked) -> Doing {
        if self.last.hands_over {
            asking(blocked, true)
        } else {
            Doing::Loading
        }
    }

    /// Whether stacks showed more than steps and PyTorch's loader: another loader, possible work on batches not long
    /// ago, or, in the last stack, anything else, such as the writing of a log, which may be over by now.
    pub(super) fn shows_more(&self, now: Duration) -> bool {
        let last = &self.last;
        self.is_seen()
            || last.not_data.is_some()
            || last.device.is_some()
            || self.is_unclear()
            || last.saves
            || last.in_generator
            || (self.prepares).is_some_and(|at| now.saturating_sub(at) < PREPARES_NO_MORE)
            || last.for_thread
            || last.dispatched
    }

    /// Whether a loader other than PyTorch's was ever seen.
    pub(super) fn is_seen(&self) -> bool {
        self.asks.is_some()
    }

    /// Returns how the loader is known; `None` if only PyTorch's loaders were seen.
    pub(super) fn seen(&self, now: Duration) -> Option<Asks> {
        let lately = |at: Duration| now.saturating_sub(at) < FORGET_AFTER;
        let met = self
            .asks
            .filter(|(_, at, met)| *met >= MIN_SIGHTINGS && lately(*at));
        met.map(|(asks, ..)| asks)
    }

    /// Whether the main thread may have been in a loader although the last stack shows it outside. If batches are ready
    /// in a queue, it is not waiting for that queue, but perhaps for another. The existence of workers does not show
    /// that the main thread takes their batches.
    pub(super) fn is_unclear(&self) -> bool {
        let known = matches!(self.asks, Some((Asks::Loader(_), ..)));
        let unclear = match self.unclear {
            None => false,
            Some(Unclear::Waits) => true,
            Some(Unclear::PlaceUnknown) => !self.is_ahead(),
            // A queue whose batches nothing counts may be one that the thread takes other things from.
            Some(Unclear::Works) => {
                !self.is_ahead() || self.last.queue.is_some_and(|queue| queue.taken.is_none())
            }
        };
        unclear && !self.pytorch && !known
    }

    /// Whether the thread may be working on a batch outside the loader, or sleeping until there is one. The last stack must
    /// show possible work on one, and the thread must be running, reading or waiting for another thread, to which it may have
    /// handed the batch: most sleeps may be a step. `stands`: no batch has come for so long that any unknown work may be
    /// on the next epoch's data.
    pub(super) fn prepares(&self, blocked: Blocked, stands: bool) -> bool {
        let works = blocked == Blocked::Running || reads(blocked) || self.last.for_thread;
        let prepares = match self.last.prepares {
            Some(Preparing::Works) => works,
            Some(Preparing::WorksOrSleeps) => works || blocked == Blocked::Timer,
            None => false,
        };
        (prepares && !self.last.saves) || (stands && self.is_unknown_work())
    }

    /// Whether the last stack shows neither work on a model nor anything else that is known.
    fn is_unknown_work(&self) -> bool {
        let last = &self.last;
        last.loader == InLoader::Outside
            && !(last.trains || last.layer || last.saves || last.not_data.is_some())
            && last.device.is_none()
    }

    /// Whether another thread may take batches from PyTorch's loader and hand them over: the main thread was seen
    /// waiting for another thread, and never in the loader.
    pub(super) fn may_get_from_thread(&self) -> bool {
        self.waits_for_threads && !self.pytorch
    }

    /// Whether it may be waiting for a batch that another thread takes from PyTorch's loader.
    pub(super) fn may_wait_for_thread(&self) -> bool {
        self.last.for_thread && self.may_get_from_thread() && self.is_unclear()
    }

    /// Whether the thread is asleep until something else acts. False if it waits for another thread in the standard
    /// library: that thread may make the step.
    pub(super) fn is_blocked(&self, blocked: Blocked) -> bool {
        !self.last.for_thread && blocked.is_for_others()
    }

    /// Returns what it waits for in an event loop, in which it does not train itself. `None` unless a loader of PyTorch
    /// feeds it (`by_pytorch`): otherwise it may be waiting for a batch of another loader.
    pub(super) fn idle(&self, by_pytorch: bool, blocked: Blocked) -> Option<&'static str> {
        self.last
            .idles
            .filter(|_| by_pytorch && blocked.is_for_others())
    }

    /// Returns what it waits for outside a loader, if that is not a batch, by its stack and by what it is blocked in.
    /// While it waits for the interpreter's lock (`for_gil`), its function written in C has ended or not begun, so that
    /// does not count.
    pub(super) fn not_data(
        &self,
        blocked: Blocked,
        idle: Option<&'static str>,
        for_gil: bool,
        writes: impl Fn() -> bool,
    ) -> Option<&'static str> {
        let device = self.last.device.filter(|_| !for_gil);
        (self.last.not_data.or_else(|| not_data(blocked, writes)))
            .or(idle)
            .or(device)
    }

    /// Returns what is known of the main thread apart from its stack. `yields`: whether an iterator of PyTorch's loader
    /// has yielded batches. `at_gil`: whether it may be waiting for the interpreter's lock.
    pub(super) fn context(
        &self,
        yields: bool,
        blocked: Blocked,
        accelerated: bool,
        at_gil: impl FnOnce() -> bool,
    ) -> ThreadContext {
        ThreadContext {
            reads: self.reads_for_itself(yields),
            asleep: match blocked {
                Blocked::PipeRead | Blocked::Unix => AsleepIn::Receiving,
                Blocked::Timer => AsleepIn::Sleeping,
                other if reads(other) => AsleepIn::Reading,
                Blocked::Lock if !at_gil() => AsleepIn::Lock,
                _ => AsleepIn::Other,
            },
            accelerated,
        }
    }

    /// Whether it takes batches from a loader of its own, as `yields` says or as was seen, and shares none with other
    /// ranks.
    fn reads_for_itself(&self, yields: bool) -> bool {
        !self.shares && (yields || self.pytorch || self.is_ahead())
    }

    /// Whether the queue that feeds it is filled ahead of time, so that it does not wait for it.
    fn is_ahead(&self) -> bool {
        self.last.queue.is_some_and(|queue| queue.ahead)
    }

    /// Whether a loader of PyTorch without workers takes its batches from other threads or processes.
    pub(super) fn is_handed_over(&self) -> bool {
        self.handed_over >= MIN_SIGHTINGS
    }

    /// Whether a loader of PyTorch was seen.
    pub(super) fn is_pytorch(&self) -> bool {
        self.pytorch
    }
}

/// Returns what a main thread outside a loader waits for, judged only by what it is blocked in: the reader of its
/// output, another process that holds a lock, or a file that it writes.
fn not_data(blocked: Blocked, writes: impl Fn() -> bool) -> Option<&'static str> {
    match blocked {
        Blocked::PipeWrite => Some("logging"),
        Blocked::FileLock => Some("a file lock"),
        Blocked::Disk | Blocked::Network if writes() => Some(WRITTEN_FILE),
        _ => None,
    }
}

/// Whether a thread that is blocked like this waits for something that it reads, perhaps a batch.
fn reads(blocked: Blocked) -> bool {
    matches!(
        blocked,
        Blocked::Poll | Blocked::PipeRead | Blocked::Unix | Blocked::Network | Blocked::Disk
    )
}

/// Returns what a main thread that asks for a batch does: what it is blocked in shows whether it waits for another
/// thread or loads the batch itself. If the standard library hands the batch over (`hands_over`), the thread loads
/// nothing: it reads and unpacks the batch, or sleeps until there is one.
pub(super) fn asking(blocked: Blocked, hands_over: bool) -> Doing {
    match blocked {
        Blocked::Running | Blocked::Disk if hands_over => Doing::Receiving,
        Blocked::Network | Blocked::Timer if hands_over => Doing::Waiting,
        Blocked::Running | Blocked::Disk | Blocked::Network | Blocked::Timer => Doing::Loading,
        _ => Doing::Waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loaders::Names;
    use crate::sample::{CELLS, COMMUNICATION, COPIES, SYNCHRONIZE};
    use crate::source::python::QueueState;

    fn after(stack: &MainStack, blocked: Blocked) -> bool {
        let mut fed = FeedEvidence::default();
        fed.stack(Duration::ZERO, stack.clone(), blocked, false);
        fed.is_unclear()
    }

    #[test]
    fn batches_that_nothing_counts_do_not_explain_work_without_the_framework() {
        let ahead = |taken, without_framework| MainStack {
            unclear: true,
            without_framework,
            queue: Some(QueueState {
                taken,
                ready: Some(2),
                capacity: Some(4),
                ahead: true,
            }),
            ..MainStack::default()
        };
        for (taken, works, unclear) in [
            (Some(5), true, false),
            (None, false, false),
            (None, true, true),
        ] {
            let stack = ahead(taken, works);
            assert_eq!(after(&stack, Blocked::Running), unclear, "{stack:?}");
            assert!(!after(&stack, Blocked::Timer), "a sleep may be a step");
        }
    }

    #[test]
    fn a_sleep_before_the_model_is_no_work_on_a_batch() {
        let mut fed = FeedEvidence::default();
        let stack = MainStack {
            prepares: Some(Preparing::Works),
            ..MainStack::default()
        };
        fed.stack(Duration::ZERO, stack, Blocked::Running, true);
        assert!(fed.prepares(Blocked::Running, false) && fed.prepares(Blocked::Disk, false));
        assert!(!fed.prepares(Blocked::Timer, false) && !fed.prepares(Blocked::Lock, false));
        let stack = MainStack {
            prepares: Some(Preparing::WorksOrSleeps),
            ..MainStack::default()
        };
        fed.stack(Duration::ZERO, stack, Blocked::Timer, true);
        assert!(fed.prepares(Blocked::Timer, false) && !fed.prepares(Blocked::Lock, false));
        let stack = MainStack {
            prepares: Some(Preparing::Works),
            for_thread: true,
            ..MainStack::default()
        };
        fed.stack(Duration::ZERO, stack, Blocked::Lock, true);
        assert!(fed.prepares(Blocked::Lock, false));
        // It may soon work on a batch again, without a stack in between.
        fed.stack(Duration::ZERO, MainStack::default(), Blocked::Timer, true);
        assert!(fed.shows_more(Duration::from_secs(1)));
        assert!(!fed.shows_more(Duration::from_secs(9)));
    }

    #[test]
    fn what_shows_no_model_is_unknown_work() {
        let is_unknown = |stack: MainStack| {
            let mut fed = FeedEvidence::default();
            fed.stack(Duration::ZERO, stack, Blocked::Running, true);
            assert!(!fed.prepares(Blocked::Running, false));
            fed.prepares(Blocked::Running, true)
        };
        let other = MainStack::default();
        assert!(is_unknown(other.clone()));
        for (saves, not_data, trains, layer) in [
            (true, None, false, false),
            (false, Some("logging"), false, false),
            (false, None, true, false),
            (false, None, false, true),
        ] {
            assert!(!is_unknown(MainStack {
                saves,
                not_data,
                trains,
                layer,
                ..other.clone()
            }));
        }
        let in_loader = InLoader::Loading;
        assert!(!is_unknown(MainStack {
            loader: in_loader,
            ..other
        }));
    }

    #[test]
    fn a_wait_may_be_for_a_batch_wherever_no_loader_is_known() {
        let step = MainStack::default();
        assert!(!after(&step, Blocked::Timer));
        assert!(after(&step, Blocked::PipeRead));
        let for_thread = MainStack {
            for_thread: true,
            ..MainStack::default()
        };
        assert!(after(&for_thread, Blocked::Lock));
        let pytorch = MainStack {
            loader: InLoader::Waiting,
            ..MainStack::default()
        };
        let mut fed = FeedEvidence::default();
        fed.stack(Duration::ZERO, for_thread.clone(), Blocked::Lock, true);
        assert!(fed.may_wait_for_thread());
        fed.stack(Duration::ZERO, step.clone(), Blocked::Timer, true);
        assert!(fed.may_get_from_thread() && !fed.may_wait_for_thread());
        fed.stack(Duration::ZERO, pytorch, Blocked::Poll, false);
        fed.stack(Duration::ZERO, for_thread.clone(), Blocked::Lock, false);
        assert!(!fed.is_unclear() && !fed.may_wait_for_thread() && !fed.may_get_from_thread());
        assert!(!fed.is_blocked(Blocked::Lock));
        fed.stack(Duration::ZERO, step, Blocked::Lock, false);
        assert!(fed.is_blocked(Blocked::Lock) && !fed.is_blocked(Blocked::Timer));
        let communicates = MainStack {
            not_data: Some("communication"),
            ..for_thread
        };
        assert!(!after(&communicates, Blocked::Lock));
    }

    #[test]
    fn what_is_written_is_no_data() {
        let waits = |blocked, writes| not_data(blocked, || writes);
        assert_eq!(waits(Blocked::Disk, true), Some(WRITTEN_FILE));
        assert_eq!(waits(Blocked::Disk, false), None);
        assert_eq!(waits(Blocked::Lock, true), None);
        assert_eq!(waits(Blocked::PipeWrite, true), Some("logging"));
    }

    #[test]
    fn what_the_verdict_looks_for_has_the_name_that_stacks_give_it() {
        let call = |name| Names::known().device_call(name);
        assert_eq!(call("item"), Some(SYNCHRONIZE));
        assert_eq!(call("to"), Some(COPIES));
        let frame = |name, file| Names::known().meaning(name, file).not_data;
        assert_eq!(frame("synchronize", "torch/cuda/a.py"), Some(SYNCHRONIZE));
        let file = "torch/distributed/distributed_c10d.py";
        assert_eq!(frame("all_reduce", file), Some(COMMUNICATION));
    }

    #[test]
    fn what_the_device_does_is_forgotten_without_stacks() {
        let waits = MainStack {
            device: Some(SYNCHRONIZE),
            ..MainStack::default()
        };
        let mut fed = FeedEvidence::default();
        fed.stack(Duration::ZERO, waits, Blocked::Running, true);
        let means =
            |fed: &FeedEvidence, for_gil| fed.not_data(Blocked::Running, None, for_gil, || false);
        assert_eq!(means(&fed, false), Some(SYNCHRONIZE));
        assert_eq!(means(&fed, true), None);
        // By the next poll, it may be over.
        assert!(fed.shows_more(Duration::ZERO));
        fed.lose_stack();
        assert!(means(&fed, false).is_none() && !fed.shows_more(Duration::ZERO));
    }

    #[test]
    fn where_pytorchs_loader_is_entered_is_no_other_loader() {
        let at_place = MainStack {
            loader: InLoader::Asking,
            asks: Some(Asks::Site),
            ..MainStack::default()
        };
        let in_loader = MainStack {
            loader: InLoader::Loading,
            ..MainStack::default()
        };
        let mut fed = FeedEvidence::default();
        let mut begins = |stack: &MainStack, by_pytorch| {
            fed.stack(Duration::ZERO, stack.clone(), Blocked::Running, by_pytorch)
        };
        // Between two batches, now and then.
        for _ in 0..50 {
            assert_eq!(begins(&at_place, true), None);
            for _ in 0..20 {
                assert_eq!(begins(&in_loader, true), None);
            }
        }
        // The program also puts batches together at that place.
        let mut fed = FeedEvidence::default();
        let mut begins =
            |stack: &MainStack| fed.stack(Duration::ZERO, stack.clone(), Blocked::Running, true);
        let stacks = [&in_loader, &at_place, &at_place, &in_loader, &at_place];
        let shown = [None, None, None, None, Some(Asks::Site)];
        assert_eq!(stacks.map(&mut begins), shown);
        assert_eq!(begins(&at_place), None);
        // Without a loader of PyTorch, that place is what feeds the thread.
        let mut fed = FeedEvidence::default();
        let shown = fed.stack(Duration::ZERO, at_place, Blocked::Running, false);
        assert_eq!(shown, Some(Asks::Site));
    }

    #[test]
    fn a_batch_that_is_handed_over_is_not_loaded() {
        assert_eq!(asking(Blocked::Running, false), Doing::Loading);
        assert_eq!(asking(Blocked::Running, true), Doing::Receiving);
        assert_eq!(asking(Blocked::Timer, false), Doing::Loading);
        assert_eq!(asking(Blocked::Timer, true), Doing::Waiting);
        assert_eq!(asking(Blocked::PipeRead, false), Doing::Waiting);
    }

    #[test]
    fn a_dataset_may_take_its_batches_from_other_threads() {
        let loads = |hands_over| MainStack {
            loader: InLoader::Loading,
            hands_over,
            ..MainStack::default()
        };
        let mut fed = FeedEvidence::default();
        for hands_over in [true, false, true] {
            assert!(!fed.is_handed_over());
            fed.stack(Duration::ZERO, loads(hands_over), Blocked::Lock, true);
        }
        assert!(fed.is_handed_over());
    }

    #[test]
    fn where_batches_are_ready_in_a_queue_the_rest_is_a_step() {
        let unclear = MainStack {
            unclear: true,
            ..MainStack::default()
        };
        assert!(after(&unclear, Blocked::Timer));
        let queue = QueueState {
            taken: Some(5),
            ready: Some(2),
            capacity: None,
            ahead: true,
        };
        let ready = MainStack {
            queue: Some(queue),
            ..unclear
        };
        assert!(!after(&ready, Blocked::Timer));
        assert!(after(&ready, Blocked::Network));
    }

    #[test]
    fn nothing_trains_while_an_event_loop_waits() {
        let mut fed = FeedEvidence::default();
        let kernel = MainStack {
            idles: Some(CELLS),
            ..MainStack::default()
        };
        fed.stack(Duration::ZERO, kernel, Blocked::Network, false);
        // `select`, `poll` or `epoll_wait`.
        for blocked in [Blocked::Network, Blocked::Poll] {
            assert_eq!(fed.idle(true, blocked), Some(CELLS));
        }
        assert_eq!(fed.idle(true, Blocked::Running), None);
        // It may be waiting for a batch of another loader.
        assert_eq!(fed.idle(false, Blocked::Network), None);
        fed.stack(
            Duration::ZERO,
            MainStack::default(),
            Blocked::Network,
            false,
        );
        assert_eq!(fed.idle(true, Blocked::Network), None);
    }

    #[test]
    fn a_rank_that_shares_its_batches_does_not_read_for_itself() {
        let mut fed = FeedEvidence::default();
        assert!(!fed.reads_for_itself(false) && fed.reads_for_itself(true));
        let named = MainStack {
            asks: Some(Asks::Loader("Accelerate's dispatcher")),
            dispatched: true,
            ..MainStack::default()
        };
        fed.stack(Duration::ZERO, named, Blocked::Lock, false);
        assert!(!fed.reads_for_itself(true));
    }
}
