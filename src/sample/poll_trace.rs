//! States of a worker, a trainer or a queue by slots of time, a byte per slot. Does not depend on how polls are made.

use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::WorkerNow;

/// The length of a slot. Slots are numbered from when pipetop started.
pub const SLOT: Duration = Duration::from_millis(25);
/// Byte of a slot without a poll.
const BLANK: u8 = b' ';
/// The byte of a queue without batches; each batch adds one.
const NO_BATCH: u8 = b'!';

/// The states of a worker, each with its byte.
const STATES: [(u8, WorkerNow); 10] = [
    (b'i', WorkerNow::Idle),
    (b'c', WorkerNow::Cpu),
    (b'q', WorkerNow::Runnable),
    (b'r', WorkerNow::Read),
    (b'n', WorkerNow::Network),
    (b'h', WorkerNow::Handover),
    (b'z', WorkerNow::Sleep),
    (b't', WorkerNow::Stopped),
    (b's', WorkerNow::Starting),
    (b'g', WorkerNow::Gone),
];

/// State of a trainer's main thread relative to its loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrainerNow {
    /// In the loader, until it has a batch.
    Waiting,
    /// In the step, or elsewhere outside of the loader.
    Stepping,
    /// In an event loop, in no function of its program.
    Idle,
    Stopped,
}

/// A state that can be stored in a slot.
pub trait SlotState: Copy {
    /// Returns the byte of the state; `None` if it does not fit into a byte.
    fn byte(self) -> Option<u8>;
    /// Returns the state for a byte; `None` if the byte is no state of this type.
    fn of(byte: u8) -> Option<Self>;
}

impl SlotState for WorkerNow {
    fn byte(self) -> Option<u8> {
        let state = STATES.iter().find(|(_, now)| *now == self);
        state.map(|(byte, _)| *byte)
    }

    fn of(byte: u8) -> Option<Self> {
        let state = STATES.iter().find(|(other, _)| *other == byte);
        state.map(|(_, now)| *now)
    }
}

impl SlotState for TrainerNow {
    fn byte(self) -> Option<u8> {
        Some(match self {
            Self::Waiting => b'w',
            Self::Stepping => b's',
            Self::Idle => b'i',
            Self::Stopped => b't',
        })
    }

    fn of(byte: u8) -> Option<Self> {
        match byte {
            b'w' => Some(Self::Waiting),
            b's' => Some(Self::Stepping),
            b'i' => Some(Self::Idle),
            b't' => Some(Self::Stopped),
            _ => None,
        }
    }
}

/// Number of batches that are ready.
impl SlotState for u32 {
    fn byte(self) -> Option<u8> {
        NO_BATCH.checked_add(u8::try_from(self).ok()?)
    }

    fn of(byte: u8) -> Option<Self> {
        byte.checked_sub(NO_BATCH).map(Self::from)
    }
}

/// The last state seen in each of a row of consecutive slots.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PollTrace {
    /// Number of the first slot.
    #[serde(deserialize_with = "slot_number")]
    first: u64,
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    slots: Vec<u8>,
}

impl PollTrace {
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of the slot after the last.
    pub fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Returns the number of the first slot in which something was seen.
    pub fn seen_from(&self) -> Option<u64> {
        let place = self.slots.iter().position(|byte| *byte != BLANK)?;
        Some(self.first + place as u64)
    }

    /// Returns the number of the slot after the last one in which something was seen.
    pub fn seen_until(&self) -> u64 {
        let last = self.slots.iter().rposition(|byte| *byte != BLANK);
        self.first + last.map_or(0, |place| place as u64 + 1)
    }

    /// Records a poll at `at`. Keeps at most `most` slots. A state that does not fit into a byte counts as not seen.
    pub fn record(&mut self, at: Duration, what: impl SlotState, most: usize) {
        self.put(slot(at), what.byte().unwrap_or(BLANK), most);
    }

    /// Appends the slots of `newer` that come after its own.
    pub fn append(&mut self, newer: &Self, most: usize) {
        let end = self.end();
        for (number, byte) in (newer.first..).zip(&newer.slots) {
            if number >= end {
                self.put(number, *byte, most);
            }
        }
    }

    fn put(&mut self, slot: u64, byte: u8, most: usize) {
        let end = self.end();
        if self.is_empty() || slot >= end + most as u64 {
            *self = Self {
                first: slot,
                slots: vec![byte],
            };
            return;
        }
        let Some(place) = slot.checked_sub(self.first) else {
            return;
        };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if place + 1 < self.slots.len() {
            // A poll older than the last slot is ignored.
            return;
        }
        self.slots.resize(place + 1, BLANK);
        if byte != BLANK {
            self.slots[place] = byte;
        }
        let surplus = self.slots.len().saturating_sub(most);
        self.slots.drain(..surplus);
        self.first += surplus as u64;
    }

    /// Returns the rows of at least `least` slots without a poll that lie between two slots with one.
    pub fn gaps(&self, least: u64) -> Vec<Range<u64>> {
        let polled = (self.first..).zip(&self.slots);
        let polled: Vec<_> = polled.filter(|(_, byte)| **byte != BLANK).collect();
        let between = polled.windows(2).map(|pair| pair[0].0 + 1..pair[1].0);
        between.filter(|gap| gap.end - gap.start >= least).collect()
    }

    /// Drops the last slots in which nothing but `what` was seen.
    pub fn cut_end(&mut self, what: impl SlotState) {
        let what = what.byte();
        let other = |byte: &u8| *byte != BLANK && Some(*byte) != what;
        let last = self.slots.iter().rposition(other);
        self.slots.truncate(last.map_or(0, |last| last + 1));
    }

    /// Returns the slots from `slot` on.
    #[must_use]
    pub fn since(&self, slot: u64) -> Self {
        let known = slot.saturating_sub(self.first);
        let known =
            usize::try_from(known).map_or(self.slots.len(), |known| known.min(self.slots.len()));
        Self {
            first: self.first + known as u64,
            slots: self.slots[known..].to_vec(),
        }
    }

    /// Drops the slots that are in `earlier`.
    pub fn forget(&mut self, earlier: &Self) {
        *self = self.since(earlier.end());
    }

    /// Returns the state seen in this slot.
    pub fn seen<T: SlotState>(&self, slot: u64) -> Option<T> {
        let place = usize::try_from(slot.checked_sub(self.first)?).ok()?;
        self.slots.get(place).and_then(|byte| T::of(*byte))
    }
}

/// Returns the number of the slot at `at`.
pub fn slot(at: Duration) -> u64 {
    u64::try_from(at.as_nanos() / SLOT.as_nanos()).unwrap_or(u64::MAX / 2)
}

/// Refuses numbers that leave no room for those of the slots after it.
fn slot_number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = u64::deserialize(from)?;
    if number > u64::MAX / 2 {
        return Err(serde::de::Error::custom("no number of a slot"));
    }
    Ok(number)
}

/// Writes one character per byte: shorter than a list of numbers.
fn as_text<S: Serializer>(slots: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(
        &slots
            .iter()
            .map(|byte| char::from(*byte))
            .collect::<String>(),
    )
}

fn from_text<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    let byte = |sign: char| u8::try_from(u32::from(sign)).unwrap_or(BLANK);
    Ok(text.chars().map(byte).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(at: u64) -> Duration {
        Duration::from_millis(at)
    }

    fn states(polls: &PollTrace) -> Vec<Option<WorkerNow>> {
        (polls.first..polls.end())
            .map(|slot| polls.seen(slot))
            .collect()
    }

    #[test]
    fn a_slot_holds_its_last_poll_or_nothing() {
        let mut polls = PollTrace::default();
        for (at, now) in [
            (100, WorkerNow::Idle),
            (110, WorkerNow::Cpu),
            (155, WorkerNow::Idle),
        ] {
            polls.record(ms(at), now, 10);
        }
        let seen = [Some(WorkerNow::Cpu), None, Some(WorkerNow::Idle)];
        assert_eq!((polls.first, states(&polls)), (4, seen.to_vec()));
        polls.record(ms(0), WorkerNow::Cpu, 10);
        assert_eq!(states(&polls), seen, "time ran backwards");
    }

    #[test]
    fn long_rows_of_slots_without_a_poll_are_gaps() {
        let mut polls = PollTrace::default();
        assert_eq!(polls.gaps(1), []);
        for slot in [4, 5, 9, 12, 13] {
            polls.record(SLOT * slot, WorkerNow::Cpu, 20);
        }
        assert_eq!(polls.gaps(1), [6..9, 10..12]);
        assert_eq!(polls.gaps(3), std::slice::from_ref(&(6..9)));
    }

    #[test]
    fn the_newest_slots_are_kept() {
        let mut polls = PollTrace::default();
        for at in 0..100 {
            polls.record(ms(25 * at), WorkerNow::Cpu, 8);
        }
        assert_eq!((polls.first, polls.slots.len()), (92, 8));
        polls.record(ms(1_000_000_000), WorkerNow::Cpu, 8);
        assert_eq!(polls.slots.len(), 1);
    }

    #[test]
    fn polls_of_a_successor_follow_those_of_a_worker_that_ended() {
        let mut polls = PollTrace::default();
        let seen = [WorkerNow::Cpu, WorkerNow::Gone, WorkerNow::Gone];
        for (at, now) in [0, 50, 75].into_iter().zip(seen) {
            polls.record(ms(at), now, 10);
        }
        polls.cut_end(WorkerNow::Gone);
        assert_eq!(states(&polls), [Some(WorkerNow::Cpu)]);
        let mut newer = PollTrace::default();
        newer.record(ms(50), WorkerNow::Idle, 10);
        polls.append(&newer, 10);
        let seen = [Some(WorkerNow::Cpu), None, Some(WorkerNow::Idle)];
        assert_eq!(states(&polls), seen);
    }

    #[test]
    fn samples_that_repeat_each_other_add_up() {
        let mut all = PollTrace::default();
        for at in [0, 30, 60, 90, 120] {
            all.record(ms(at), WorkerNow::Cpu, 8);
        }
        let mut kept = all.since(0);
        kept.append(&all.since(2), 8);
        assert_eq!(kept, all);
        assert!(all.since(99).is_empty());
        all.record(ms(150), WorkerNow::Idle, 8);
        kept.append(&all.since(3), 8);
        assert_eq!(kept, all);
    }

    #[test]
    fn a_serialised_trace_is_read_back() {
        let mut polls = PollTrace::default();
        for ready in [0_u32, 5, 222, 223, 4000] {
            let at = polls.end().max(40);
            polls.record(SLOT * u32::try_from(at).unwrap(), ready, 8);
        }
        let text = serde_json::to_string(&polls).unwrap();
        let again: PollTrace = serde_json::from_str(&text).unwrap();
        assert_eq!(again, polls);
        let seen: Vec<Option<u32>> = (40..45).map(|slot| polls.seen(slot)).collect();
        assert_eq!(seen, [Some(0), Some(5), Some(222), None, None]);
    }

    #[test]
    fn each_state_has_a_byte_of_its_own() {
        for (byte, now) in STATES {
            assert_eq!(WorkerNow::of(byte), Some(now));
            assert_eq!(now.byte(), Some(byte));
        }
        for now in [
            TrainerNow::Waiting,
            TrainerNow::Stepping,
            TrainerNow::Stopped,
        ] {
            assert_eq!(now.byte().and_then(TrainerNow::of), Some(now));
        }
        assert_eq!(WorkerNow::Unknown.byte(), None);
    }
}
