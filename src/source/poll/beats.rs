//! How long the main thread was seen doing what, in beats of time.
//!
//! Not in polls: these come at uneven intervals, and later where the job keeps the CPUs busy, which is not independent
//! of what the main thread does. Knows nothing of how it is polled.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sample::{MainTally, TrainerNow};

/// The unit of time that the states of the main thread are counted in.
const BEAT: Duration = Duration::from_millis(10);
/// Longer than this between two polls nothing is known of the time between: the machine slept.
const MOST_BEATS: u64 = 100;

/// What a poll saw.
#[expect(clippy::struct_excessive_bools, reason = "each is so or not")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Beat {
    pub(super) doing: Doing,
    pub(super) thread: ThreadState,
    /// Asleep until another thread of its own gives up the interpreter's lock.
    pub(super) for_gil: bool,
    /// Outside of a loader it may be in one that could not be seen.
    pub(super) unseen: bool,
    /// The same, unless it turns out that PyTorch's loader feeds it.
    pub(super) unclear: bool,
    pub(super) saves: bool,
    /// Outside of a loader: what it waits for that is no batch.
    pub(super) not_data: Option<&'static str>,
    /// Where it waits: for a batch that another rank sends.
    pub(super) dispatched: bool,
}

impl Beat {
    /// What it says of steps and waits. `None` where it cannot tell whether the loader is in use.
    pub(super) fn now(self) -> Option<TrainerNow> {
        match self.doing {
            Doing::Stopped => Some(TrainerNow::Stopped),
            doing if doing.is_in_loader() => Some(TrainerNow::Waiting),
            _ => (!self.unseen && !self.unclear).then_some(TrainerNow::Stepping),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// On a CPU or waiting for one.
    Ready,
    Asleep,
}

/// What a poll means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Waiting,
    Receiving,
    Loading,
    Running,
    Disk,
    Stopped,
    Other,
}

impl Doing {
    pub(super) fn is_in_loader(self) -> bool {
        matches!(self, Self::Waiting | Self::Receiving | Self::Loading)
    }
}

#[derive(Debug, Default)]
pub(super) struct Beats {
    /// The beat that was counted last, and what was seen then.
    counted: Option<(u128, Beat)>,
    pub(super) tally: MainTally,
    /// Of the beats that were not seen, those that were unclear.
    unclear: u64,
    /// How many training loops were found, one around another, and the tally when the last was.
    loops_found: u32,
    at_loop: MainTally,
    /// The tally from which on polls tell waits from steps, where that was not so from the start.
    pub(super) recognised: Option<MainTally>,
    /// That is by the place in the training loop.
    by_place: bool,
    /// What the kernel had counted at the first poll.
    ready_at_first: Option<Duration>,
    /// Beats in which a checkpoint was written; `None` without stacks.
    pub(super) saving: Option<u64>,
    pub(super) not_data: BTreeMap<&'static str, u64>,
}

impl Beats {
    /// Of the beats since the poll before, half go to what was seen then, and half to what is seen now.
    pub(super) fn count(&mut self, now: Duration, seen: Beat) {
        let beat = now.as_millis() / BEAT.as_millis();
        let (before, last) = self.counted.unwrap_or((beat.saturating_sub(1), seen));
        let beats = u64::try_from(beat.saturating_sub(before))
            .unwrap_or(u64::MAX)
            .min(MOST_BEATS);
        self.counted = Some((beat, seen));
        if let Some(saving) = self.saving.as_mut().filter(|_| seen.saves) {
            *saving += beats;
        }
        self.add(last, beats / 2);
        self.add(seen, beats - beats / 2);
    }

    /// `time` is what the kernel counted until this poll of the time that the thread was ready.
    pub(super) fn ready(&mut self, time: Option<Duration>) {
        let Some(time) = time else { return };
        let first = *self.ready_at_first.get_or_insert(time);
        self.tally.ready.get_or_insert_default().time = time.saturating_sub(first);
    }

    /// PyTorch's loader feeds it, which is seen wherever the thread is in it: what was unclear before was no wait.
    pub(super) fn clear(&mut self) {
        self.tally.unseen -= std::mem::take(&mut self.unclear);
    }

    /// So many training loops were found, one around another: from the last on it is known whether it asks for a batch.
    pub(super) fn found(&mut self, loops: u32) {
        if loops == self.loops_found {
            return;
        }
        self.loops_found = loops;
        self.at_loop = self.tally;
        if self.by_place {
            self.recognised = Some(self.tally);
        }
    }

    /// Something was met that nobody knew to feed the trainer: what was seen before says nothing. A place in the training
    /// loop is known since the loop was found.
    pub(super) fn recognise(&mut self, by_place: bool) {
        self.by_place = by_place;
        self.recognised = Some(if by_place { self.at_loop } else { self.tally });
    }

    fn add(&mut self, seen: Beat, beats: u64) {
        let tally = &mut self.tally;
        tally.polls += beats;
        let count = match seen.doing {
            Doing::Waiting => &mut tally.waiting,
            Doing::Receiving => &mut tally.receiving,
            Doing::Loading => &mut tally.loading,
            Doing::Running => &mut tally.running,
            Doing::Disk => &mut tally.disk,
            Doing::Stopped => &mut tally.stopped,
            Doing::Other => &mut tally.other,
        };
        *count += beats;
        if seen.doing == Doing::Waiting && seen.dispatched {
            tally.dispatched += beats;
        }
        let is_ready = seen.thread == ThreadState::Ready;
        if let Some(ready) = tally.ready.as_mut().filter(|_| is_ready) {
            match seen.doing {
                Doing::Waiting => ready.waiting += beats,
                Doing::Receiving => ready.receiving += beats,
                Doing::Loading => ready.loading += beats,
                Doing::Running | Doing::Disk | Doing::Stopped | Doing::Other => {}
            }
        }
        let outside = matches!(seen.doing, Doing::Running | Doing::Disk | Doing::Other);
        if seen.for_gil {
            let gil = tally.gil.get_or_insert_default();
            *(if outside {
                &mut gil.outside
            } else {
                &mut gil.in_loader
            }) += beats;
        }
        if outside && (seen.unseen || seen.unclear) {
            tally.unseen += beats;
            self.unclear += if seen.unseen { 0 } else { beats };
        }
        if let Some(means) = seen.not_data.filter(|_| outside && beats > 0) {
            *self.not_data.entry(means).or_default() += beats;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(doing: Doing, thread: ThreadState) -> Beat {
        Beat {
            doing,
            thread,
            for_gil: false,
            unseen: false,
            unclear: false,
            saves: false,
            not_data: None,
            dispatched: false,
        }
    }

    /// Polls every 10 ms until `to`.
    fn steps(beats: &mut Beats, ms: std::ops::Range<u64>) {
        for at in ms.step_by(10) {
            let step = seen(Doing::Running, ThreadState::Ready);
            beats.count(Duration::from_millis(at), step);
        }
    }

    fn counted(beats: &Beats) -> Option<u64> {
        beats.recognised.map(|tally| tally.polls)
    }

    #[test]
    fn looks_count_from_when_the_training_loop_was_found() {
        let mut beats = Beats::default();
        steps(&mut beats, 10..1010);
        beats.found(1);
        steps(&mut beats, 1010..1510);
        assert_eq!(
            counted(&beats),
            None,
            "a loader that is known needs no loop"
        );
        beats.recognise(true);
        assert_eq!(counted(&beats), Some(100));
        beats.found(1);
        assert_eq!(counted(&beats), Some(100));
        // What was taken for the loop was a generator that it calls.
        beats.found(2);
        assert_eq!(counted(&beats), Some(150));
    }

    #[test]
    fn looks_count_from_when_a_loader_was_met_by_name() {
        let mut beats = Beats::default();
        steps(&mut beats, 10..1010);
        beats.found(1);
        steps(&mut beats, 1010..1510);
        beats.recognise(false);
        assert_eq!(counted(&beats), Some(150));
        beats.found(2);
        assert_eq!(counted(&beats), Some(150));
    }

    #[test]
    fn what_was_unclear_is_no_wait_once_pytorch_feeds_it() {
        let mut beats = Beats::default();
        for (at, unseen, unclear) in [(10, true, false), (20, false, true), (30, true, true)] {
            let step = seen(Doing::Other, ThreadState::Asleep);
            let beat = Beat {
                unseen,
                unclear,
                ..step
            };
            beats.count(Duration::from_millis(at), beat);
        }
        assert_eq!(beats.tally.unseen, 3);
        beats.clear();
        assert_eq!(beats.tally.unseen, 2);
        beats.clear();
        assert_eq!(beats.tally.unseen, 2);
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
            beats.count(Duration::from_millis(at), beat);
        }
        assert_eq!((beats.tally.waiting, beats.tally.dispatched), (5, 4));
    }

    #[test]
    fn time_on_a_cpu_counts_from_the_first_look() {
        let mut beats = Beats::default();
        beats.ready(None);
        assert_eq!(beats.tally.ready, None);
        for (at, ready) in [(0, 5000), (10, 5008), (20, 5016)] {
            beats.count(
                Duration::from_millis(at),
                seen(Doing::Loading, ThreadState::Ready),
            );
            beats.ready(Some(Duration::from_millis(ready)));
        }
        let ready = beats.tally.ready.expect("the kernel counts it");
        assert_eq!((ready.time, ready.loading), (Duration::from_millis(16), 2));
    }
}
