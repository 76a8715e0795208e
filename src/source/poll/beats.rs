//! How long the main thread was seen in each activity, in beats of time.
//!
//! Polls themselves are not counted: they come at uneven intervals, and late while the job keeps the CPUs busy, which
//! depends on what the main thread does. Does not depend on how the thread is polled.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sample::{BEAT, CELLS, MAX_GAP, MainTally, TrainerNow};
use crate::units::Pid;

/// A poll that begins this much after it was due is delayed: a main thread with short steps does something else by then.
const DELAYED: Duration = Duration::from_micros(500);

/// Result of one poll.
#[expect(clippy::struct_excessive_bools, reason = "each is so or not")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Beat {
    pub(super) doing: Doing,
    pub(super) thread: ThreadState,
    /// Asleep until another thread of the process releases the interpreter's lock.
    pub(super) for_gil: bool,
    /// The thread seems outside a loader, but may be in one that could not be seen.
    pub(super) unseen: bool,
    /// The thread seems outside a loader, but may be in one, unless PyTorch's loader turns out to feed it.
    pub(super) unclear: bool,
    /// The thread is in a generator and may be making a batch there, whichever loader feeds it.
    pub(super) in_generator: bool,
    /// The thread may be working on a batch outside the loader, before the model gets it or between epochs.
    pub(super) prepares: bool,
    pub(super) saves: bool,
    /// What it waits for outside a loader, if that is not a batch.
    pub(super) not_data: Option<&'static str>,
    /// If it waits for no batch: it is asleep, but neither in a timer nor in a wait that has a name, and has no
    /// accelerator.
    pub(super) blocked: bool,
    /// If it waits: for a batch that another rank sends.
    pub(super) dispatched: bool,
    /// If it waits: for a batch that the pinning thread is working on.
    pub(super) pinning: bool,
    /// Blocked on a network.
    pub(super) network: bool,
    /// In the training loop, where it asks for a batch, but not in PyTorch's loader.
    pub(super) in_loop: bool,
    /// The last stack showed a model or its training.
    pub(super) computing: bool,
    /// How long after it was due the poll began.
    pub(super) delay: Duration,
}

impl Beat {
    /// Returns what this means for steps and waits. `None` if it is unknown whether the loader is in use.
    pub(super) fn now(self) -> Option<TrainerNow> {
        match self.doing {
            Doing::Stopped => Some(TrainerNow::Stopped),
            doing if doing.is_in_loader() => Some(TrainerNow::Waiting),
            _ if self.not_data == Some(CELLS) => Some(TrainerNow::Idle),
            _ => (!self.may_load()).then_some(TrainerNow::Stepping),
        }
    }

    /// Whether it may be in a loader although it seems outside.
    fn may_load(self) -> bool {
        self.unseen || self.unclear || self.in_generator || self.prepares
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// On a CPU or waiting for one.
    Ready,
    Asleep,
}

/// What the main thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Waiting,
    /// Starting the loader's workers or ending them: a wait for them.
    Starting,
    Receiving,
    Loading,
    Running,
    Disk,
    Stopped,
    Other,
}

impl Doing {
    pub(super) fn is_in_loader(self) -> bool {
        matches!(
            self,
            Self::Waiting | Self::Starting | Self::Receiving | Self::Loading
        )
    }
}

/// How long a thread has been ready, as counted by the kernel, and when that was read.
#[derive(Debug, Clone, Copy)]
struct Ready {
    thread: Pid,
    time: Duration,
    at: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Beats {
    /// The last counted beat, and what was seen then.
    counted: Option<(u128, Beat)>,
    pub(super) tally: MainTally,
    /// Number of unseen beats that were unclear and nothing else.
    unclear: u64,
    /// Number of nested training loops found.
    loops_found: u32,
    /// The tally when the last loop was found.
    at_loop: MainTally,
    /// The tally at the time from which polls distinguish waits from steps; `None` if they have done so from the start.
    pub(super) recognised: Option<MainTally>,
    /// Whether waits are recognised by the place in the training loop.
    by_place: bool,
    /// What the kernel had counted at the last poll of this thread.
    ready_at_last: Option<Ready>,
    /// Beats in which a checkpoint was written; `None` without stacks.
    pub(super) saving: Option<u64>,
    pub(super) not_data: BTreeMap<&'static str, u64>,
    /// Beats among these in which it was ready to run.
    pub(super) not_data_ready: BTreeMap<&'static str, u64>,
}

impl Beats {
    /// Counts the beats since the previous poll: half as what was seen then, half as what is seen now.
    pub(super) fn count(&mut self, now: Duration, seen: Beat) {
        let beat = now.as_millis() / BEAT.as_millis();
        let since = |before: u128| u64::try_from(beat.saturating_sub(before)).unwrap_or(u64::MAX);
        let counted = self.counted.map(|(before, last)| (since(before), last));
        let (beats, last) = counted
            .filter(|(beats, _)| u128::from(*beats) * BEAT.as_millis() <= MAX_GAP.as_millis())
            .unwrap_or_else(|| {
                self.ready_at_last = None;
                (1, seen)
            });
        self.counted = Some((beat, seen));
        self.tally.observed += 1;
        self.tally.delay += seen.delay;
        if let Some(saving) = self.saving.as_mut().filter(|_| seen.saves) {
            *saving += beats;
        }
        self.add(last, beats / 2);
        // If most of the time so far was unclear, the place where the thread asks for batches was not known until now.
        // Time in which it prepares batches is left out: the place is known then.
        let unclear = self.tally.unseen - self.tally.preparing;
        let mostly_unclear = unclear > 0 && 2 * unclear >= self.tally.polls;
        if mostly_unclear && !seen.may_load() && self.recognised.is_none() {
            self.recognised = Some(self.tally);
        }
        self.add(seen, beats - beats / 2);
    }

    /// Whether the thread was stopped at the last poll.
    pub(super) fn is_stopped(&self) -> bool {
        let last = self.counted.as_ref();
        last.is_some_and(|(_, seen)| seen.doing == Doing::Stopped)
    }

    /// Records the time that `thread` was ready, as the kernel has counted it until this poll.
    pub(super) fn ready(&mut self, at: Duration, thread: Pid, time: Option<Duration>) {
        let Some(time) = time else { return };
        let now = Ready { thread, time, at };
        let last = self.ready_at_last.replace(now);
        let last = last.filter(|last| last.thread == thread).unwrap_or(now);
        let ready = self.tally.ready.get_or_insert_default();
        ready.time += time.saturating_sub(last.time);
        ready.span += at.saturating_sub(last.at);
    }

    /// Clears what belongs to the thread polled so far, as another one is polled from now on.
    pub(super) fn switch_thread(&mut self) {
        self.not_data.clear();
        self.not_data_ready.clear();
        self.restart_counts(false);
    }

    /// Counts the unclear beats so far as seen: PyTorch's loader feeds the thread, and a stack always shows that
    /// loader.
    pub(super) fn drop_unclear(&mut self) {
        self.tally.unseen -= std::mem::take(&mut self.unclear);
    }

    /// Records a stack and the number of nested training loops found. From the first stack on, checkpoints are seen; from
    /// the last loop found on, it is known whether the thread asks for a batch.
    pub(super) fn record_stack(&mut self, loops: u32) {
        self.saving.get_or_insert(0);
        if loops == self.loops_found {
            return;
        }
        self.loops_found = loops;
        self.at_loop = self.tally;
        if self.by_place {
            self.recognised = Some(self.tally);
        }
    }

    /// Lets only later polls count, as something new feeds the trainer. If that is known by its place in the training
    /// loop (`by_place`), polls count from when the loop was found.
    pub(super) fn restart_counts(&mut self, by_place: bool) {
        self.by_place = by_place;
        self.recognised = Some(if by_place { self.at_loop } else { self.tally });
    }

    fn add(&mut self, seen: Beat, beats: u64) {
        let tally = &mut self.tally;
        tally.polls += beats;
        let count = match seen.doing {
            Doing::Waiting | Doing::Starting => &mut tally.waiting,
            Doing::Receiving => &mut tally.receiving,
            Doing::Loading => &mut tally.loading,
            Doing::Running => &mut tally.running,
            Doing::Disk => &mut tally.disk,
            Doing::Stopped => &mut tally.stopped,
            Doing::Other => &mut tally.other,
        };
        *count += beats;
        let waits = seen.doing == Doing::Waiting;
        let outside = matches!(seen.doing, Doing::Running | Doing::Disk | Doing::Other);
        let delayed = seen.delay >= DELAYED;
        let known_later = seen.unclear && !seen.unseen && !seen.in_generator && !seen.prepares;
        let at_no_data = seen.not_data.is_some();
        let parts = [
            (&mut tally.starting, seen.doing == Doing::Starting),
            (&mut tally.dispatched, waits && seen.dispatched),
            (&mut tally.pinning, waits && seen.pinning),
            (
                &mut tally.network,
                seen.doing == Doing::Loading && seen.network,
            ),
            (
                &mut tally.in_loop,
                seen.doing == Doing::Loading && seen.in_loop,
            ),
            (&mut tally.computing, seen.computing),
            (&mut tally.delayed, delayed),
            (
                &mut tally.delayed_in_loader,
                delayed && seen.doing.is_in_loader(),
            ),
            (&mut tally.unseen, outside && seen.may_load()),
            (&mut self.unclear, outside && known_later),
            (&mut tally.in_generator, outside && seen.in_generator),
            (&mut tally.preparing, outside && seen.prepares),
            (
                &mut tally.blocked,
                seen.doing == Doing::Other && seen.blocked && !at_no_data,
            ),
        ];
        for (part, _) in parts.into_iter().filter(|(_, is_so)| *is_so) {
            *part += beats;
        }
        if seen.for_gil {
            let gil = tally.gil.get_or_insert_default();
            *(if outside {
                &mut gil.outside
            } else {
                &mut gil.in_loader
            }) += beats;
        }
        let is_ready = seen.thread == ThreadState::Ready;
        if let Some(ready) = tally.ready.as_mut().filter(|_| is_ready) {
            match seen.doing {
                Doing::Waiting | Doing::Starting => ready.waiting += beats,
                Doing::Receiving => ready.receiving += beats,
                Doing::Loading => ready.loading += beats,
                Doing::Running | Doing::Disk | Doing::Stopped | Doing::Other => {}
            }
        }
        if let Some(means) = seen.not_data.filter(|_| outside && beats > 0) {
            *self.not_data.entry(means).or_default() += beats;
            if is_ready {
                *self.not_data_ready.entry(means).or_default() += beats;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: Pid = Pid(7);

    /// Returns the time after this many tenths of a beat.
    fn after(tenths: u32) -> Duration {
        BEAT * tenths / 10
    }

    fn seen(doing: Doing, thread: ThreadState) -> Beat {
        Beat {
            computing: false,
            doing,
            thread,
            for_gil: false,
            unseen: false,
            unclear: false,
            in_generator: false,
            prepares: false,
            saves: false,
            not_data: None,
            blocked: false,
            dispatched: false,
            pinning: false,
            network: false,
            in_loop: false,
            delay: Duration::ZERO,
        }
    }

    /// Counts steps every beat of the range, which is in tenths of a beat.
    fn steps(beats: &mut Beats, tenths: std::ops::Range<u32>) {
        for at in tenths.step_by(10) {
            let step = seen(Doing::Running, ThreadState::Ready);
            beats.count(after(at), step);
        }
    }

    fn counted(beats: &Beats) -> Option<u64> {
        beats.recognised.map(|tally| tally.polls)
    }

    #[test]
    fn work_on_a_log_is_distinguished_from_a_wait_for_it() {
        let mut beats = Beats::default();
        for (at, doing, thread) in [
            (10, Doing::Running, ThreadState::Ready),
            (20, Doing::Other, ThreadState::Asleep),
            (30, Doing::Running, ThreadState::Ready),
        ] {
            let beat = Beat {
                not_data: Some("logging"),
                ..seen(doing, thread)
            };
            beats.count(after(at), beat);
        }
        assert_eq!(beats.not_data["logging"], 3);
        assert_eq!(beats.not_data_ready["logging"], 2);
    }

    #[test]
    fn polls_count_from_when_the_training_loop_was_found() {
        let mut beats = Beats::default();
        steps(&mut beats, 10..1010);
        beats.record_stack(1);
        steps(&mut beats, 1010..1510);
        assert_eq!(
            counted(&beats),
            None,
            "a loader that is known needs no loop"
        );
        beats.restart_counts(true);
        assert_eq!(counted(&beats), Some(100));
        beats.record_stack(1);
        assert_eq!(counted(&beats), Some(100));
        // The loop found first was a generator that the training loop calls.
        beats.record_stack(2);
        assert_eq!(counted(&beats), Some(150));
    }

    #[test]
    fn polls_count_from_when_a_loader_was_seen_by_name() {
        let mut beats = Beats::default();
        steps(&mut beats, 10..1010);
        beats.record_stack(1);
        steps(&mut beats, 1010..1510);
        beats.restart_counts(false);
        assert_eq!(counted(&beats), Some(150));
        beats.record_stack(2);
        assert_eq!(counted(&beats), Some(150));
    }

    #[test]
    fn polls_before_the_first_clear_one_do_not_count_if_most_were_unclear() {
        let unclear = Beat {
            unclear: true,
            ..seen(Doing::Running, ThreadState::Ready)
        };
        let unclear_then_clear = |first: u32, times: u32| {
            let mut beats = Beats::default();
            steps(&mut beats, 10..10 + 10 * first);
            let from = 10 + 10 * (first + times);
            for at in (10 + 10 * first..from).step_by(10) {
                beats.count(after(at), unclear);
            }
            steps(&mut beats, from..from + 500);
            beats
        };
        assert_eq!(counted(&unclear_then_clear(10, 90)), Some(100));
        assert_eq!(counted(&unclear_then_clear(90, 10)), None);
        let preparing = Beat {
            prepares: true,
            ..seen(Doing::Running, ThreadState::Ready)
        };
        let mut beats = Beats::default();
        for at in (10..910).step_by(10) {
            beats.count(after(at), preparing);
        }
        steps(&mut beats, 910..1010);
        assert_eq!(counted(&beats), None, "work on batches starts no new count");
        // Time that is unclear later does not restart the count.
        let mut beats = unclear_then_clear(0, 10);
        for at in [610, 620] {
            beats.count(after(at), unclear);
            steps(&mut beats, at + 10..at + 20);
        }
        assert_eq!(counted(&beats), Some(10));
    }

    #[test]
    fn unclear_polls_are_not_waits_once_pytorch_feeds_the_rank() {
        let mut beats = Beats::default();
        for (at, unseen, unclear) in [(10, true, false), (20, false, true), (30, true, true)] {
            let step = seen(Doing::Other, ThreadState::Asleep);
            let beat = Beat {
                unseen,
                unclear,
                ..step
            };
            beats.count(after(at), beat);
        }
        assert_eq!(beats.tally.unseen, 3);
        beats.drop_unclear();
        assert_eq!(beats.tally.unseen, 2);
        beats.drop_unclear();
        assert_eq!(beats.tally.unseen, 2);
    }

    #[test]
    fn time_in_a_generator_stays_unseen_whatever_feeds_it() {
        let mut beats = Beats::default();
        for (at, doing) in [(10, Doing::Running), (20, Doing::Waiting)] {
            let beat = Beat {
                in_generator: true,
                ..seen(doing, ThreadState::Ready)
            };
            beats.count(after(at), beat);
        }
        beats.drop_unclear();
        assert_eq!((beats.tally.unseen, beats.tally.in_generator), (1, 1));
    }

    #[test]
    fn a_wait_for_events_is_no_step() {
        let idle = Beat {
            not_data: Some(CELLS),
            unseen: true,
            ..seen(Doing::Other, ThreadState::Asleep)
        };
        assert_eq!(idle.now(), Some(TrainerNow::Idle));
        let waits = Beat {
            doing: Doing::Waiting,
            ..idle
        };
        assert_eq!(waits.now(), Some(TrainerNow::Waiting));
        assert_eq!(
            seen(Doing::Other, ThreadState::Asleep).now(),
            Some(TrainerNow::Stepping)
        );
    }

    #[test]
    fn delayed_polls_are_counted_for_themselves() {
        let mut beats = Beats::default();
        for (at, doing, delay) in [
            (10, Doing::Waiting, 80),
            (40, Doing::Loading, 2000),
            (60, Doing::Running, 500),
            (70, Doing::Running, 20),
        ] {
            let seen = seen(doing, ThreadState::Ready);
            let delay = Duration::from_micros(delay);
            beats.count(after(at), Beat { delay, ..seen });
        }
        let tally = beats.tally;
        assert_eq!((tally.polls, tally.in_loader()), (7, 5));
        assert_eq!((tally.delayed, tally.delayed_in_loader), (4, 3));
        assert_eq!(tally.delay, Duration::from_micros(2600));
    }

    #[test]
    fn waits_for_batches_of_another_rank_are_a_part_of_the_waits() {
        let mut beats = Beats::default();
        for (at, doing, dispatched) in [
            (10, Doing::Waiting, true),
            (30, Doing::Waiting, true),
            (50, Doing::Other, true),
            (70, Doing::Waiting, false),
        ] {
            let seen = seen(doing, ThreadState::Asleep);
            let beat = Beat { dispatched, ..seen };
            beats.count(after(at), beat);
        }
        assert_eq!((beats.tally.waiting, beats.tally.dispatched), (5, 4));
    }

    #[test]
    fn starts_of_workers_are_a_part_of_the_waits() {
        let mut beats = Beats::default();
        for (at, doing) in [
            (10, Doing::Starting),
            (30, Doing::Starting),
            (50, Doing::Waiting),
        ] {
            beats.count(after(at), seen(doing, ThreadState::Ready));
        }
        assert_eq!((beats.tally.waiting, beats.tally.starting), (5, 4));
    }

    #[test]
    fn time_without_polls_counts_as_nothing() {
        let mut beats = Beats::default();
        let polls = [
            (0, 5000, Doing::Waiting),
            (10, 5001, Doing::Waiting),
            (20_000, 9000, Doing::Running),
            (20_010, 9004, Doing::Running),
        ];
        for (at, ready, doing) in polls {
            let beat = seen(doing, ThreadState::Ready);
            beats.count(after(at), beat);
            beats.ready(after(at), THREAD, Some(Duration::from_millis(ready)));
        }
        let tally = beats.tally;
        assert_eq!((tally.waiting, tally.running), (2, 2));
        let ready = tally.ready.expect("the kernel counts it");
        assert_eq!(
            (ready.time, ready.span),
            (Duration::from_millis(5), 2 * BEAT)
        );
    }

    #[test]
    fn time_on_a_cpu_counts_from_the_first_poll() {
        let mut beats = Beats::default();
        beats.ready(after(0), THREAD, None);
        assert_eq!(beats.tally.ready, None);
        for (at, ready) in [(0, 5000), (10, 5008), (20, 5016)] {
            beats.count(after(at), seen(Doing::Loading, ThreadState::Ready));
            beats.ready(after(at), THREAD, Some(Duration::from_millis(ready)));
        }
        let ready = beats.tally.ready.expect("the kernel counts it");
        assert_eq!((ready.time, ready.loading), (Duration::from_millis(16), 2));
        // A thread that is polled instead has its own count. The poll at which it is found still reads the main thread.
        beats.switch_thread();
        for (at, thread, ready) in [(30, THREAD, 5018), (40, Pid(8), 9000), (50, Pid(8), 9005)] {
            beats.ready(after(at), thread, Some(Duration::from_millis(ready)));
        }
        let ready = beats.tally.ready.expect("the kernel counts it");
        assert_eq!(
            (ready.time, ready.span),
            (Duration::from_millis(23), 4 * BEAT)
        );
    }
}
