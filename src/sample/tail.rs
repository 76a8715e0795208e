//! Numbered events, of which a sample carries the newest.
//!
//! Consecutive samples overlap in their events, and every event keeps its number: a reader that misses a sample finds
//! its events in the next one, and a reader that already has them skips them.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The newest of a series of events that are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tail<T> {
    /// Number of events so far: the last of `newest` has the number before this. `None` in recordings of version 1,
    /// whose samples carry the events since the sample before.
    pub count: Option<u64>,
    /// Oldest first.
    pub newest: VecDeque<T>,
}

impl<T> Default for Tail<T> {
    /// Returns a series without events.
    fn default() -> Self {
        Self {
            count: Some(0),
            newest: VecDeque::new(),
        }
    }
}

impl<T> From<Vec<T>> for Tail<T> {
    /// Returns events without numbers, as in recordings of version 1.
    fn from(events: Vec<T>) -> Self {
        Self {
            count: None,
            newest: events.into(),
        }
    }
}

impl<T> Tail<T> {
    /// Returns `newest` as the newest of `count` events.
    pub fn new(count: u64, newest: impl IntoIterator<Item = T>) -> Self {
        Self {
            count: Some(count),
            newest: newest.into_iter().collect(),
        }
    }

    /// Adds the next event. If there are more than `most`, the oldest is dropped.
    pub fn push(&mut self, event: T, most: usize) {
        self.skip(1);
        self.newest.push_back(event);
        let surplus = self.newest.len().saturating_sub(most);
        self.newest.drain(..surplus);
    }

    /// Counts events that happened but are lost.
    pub fn skip(&mut self, events: u64) {
        if let Some(count) = &mut self.count {
            *count = count.saturating_add(events);
        }
    }

    /// Returns the number of events since `earlier`, including lost ones. Returns the number of events in this tail if
    /// there is no `earlier`, if they have no numbers, or if the series restarted.
    pub fn grown(&self, earlier: Option<&Self>) -> u64 {
        let before = earlier.and_then(|earlier| earlier.count);
        let grown = self.count.zip(before);
        let grown = grown.and_then(|(now, before)| now.checked_sub(before));
        grown.unwrap_or(self.newest.len() as u64)
    }

    /// Returns the events since `earlier` that are in this tail, oldest first.
    pub fn since(&self, earlier: Option<&Self>) -> impl DoubleEndedIterator<Item = &T> {
        self.newest.range(self.known(earlier)..)
    }

    /// Drops the events that are in `earlier`.
    pub fn forget(&mut self, earlier: &Self) {
        let known = self.known(Some(earlier));
        self.newest.drain(..known);
    }

    /// Returns how many of the events in this tail came before `earlier` ended.
    fn known(&self, earlier: Option<&Self>) -> usize {
        let grown = usize::try_from(self.grown(earlier)).unwrap_or(usize::MAX);
        self.newest.len().saturating_sub(grown)
    }
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Numbered<T> {
    count: Option<u64>,
    newest: VecDeque<T>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Tail<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// An object or, in recordings of version 1, a list.
struct Either<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
    type Value = Tail<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("events with their count, or a list of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Tail<T>, A::Error> {
        let Numbered { count, newest } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Tail { count, newest })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Tail<T>, A::Error> {
        let newest = Deserialize::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Tail {
            count: None,
            newest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(tail: &Tail<u32>, earlier: &Tail<u32>) -> (u64, Vec<u32>) {
        let events = tail.since(Some(earlier)).copied();
        (tail.grown(Some(earlier)), events.collect())
    }

    #[test]
    fn events_of_a_missed_sample_are_in_the_next_one() {
        let mut tail = Tail::default();
        let mut samples = vec![];
        for event in 0..6 {
            tail.push(event, 3);
            samples.push(tail.clone());
        }
        assert_eq!(since(&samples[1], &samples[0]), (1, vec![1]));
        assert_eq!(since(&samples[2], &samples[0]), (2, vec![1, 2]));
        assert_eq!(since(&samples[2], &samples[2]), (0, vec![]));
        // Two of five were dropped before they were read: the count still shows that they happened.
        assert_eq!(since(&samples[5], &samples[0]), (5, vec![3, 4, 5]));
        let before = samples[1].clone();
        samples[2].forget(&before);
        assert_eq!(
            (samples[2].count, &samples[2].newest),
            (Some(3), &[2].into())
        );
        assert_eq!(since(&samples[3], &samples[2]), (1, vec![3]));
    }

    #[test]
    fn restarted_or_unnumbered_tails_are_new() {
        let anew = Tail::new(2, [7, 8]);
        assert_eq!(since(&anew, &Tail::new(100, [])), (2, vec![7, 8]));
        let without = Tail::from(vec![7, 8]);
        assert_eq!(since(&without, &without), (2, vec![7, 8]));
        assert_eq!(anew.since(None).count(), 2);
    }

    #[test]
    fn it_is_written_with_its_count_and_read_with_or_without() {
        let tail = Tail::new(9, [7, 8]);
        let text = serde_json::to_string(&tail).unwrap();
        assert_eq!(text, r#"{"count":9,"newest":[7,8]}"#);
        assert_eq!(serde_json::from_str::<Tail<u32>>(&text).unwrap(), tail);
        let old: Tail<u32> = serde_json::from_str("[7,8]").unwrap();
        assert_eq!(old, Tail::from(vec![7, 8]));
        assert!(serde_json::from_str::<Tail<u32>>("7").is_err());
    }
}
