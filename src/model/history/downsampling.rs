//! A past of any length in fixed memory: the newest entries as they came, older ones joined two by two, again and
//! again, so that the resolution halves as the age doubles.
//!
//! Does not depend on what an entry holds, other than its time and how two are joined.

use std::collections::VecDeque;

/// Number of entries kept as they came: an hour at one per second.
pub(super) const NEWEST: usize = 3600;
/// Number of entries of each coarser level; each entry covers twice the time of one on the level before.
const COARSER: usize = 600;
/// Number of levels: two and a half years at one entry per second, three months at ten.
const LEVELS: usize = 17;
/// Maximum number of entries kept.
#[cfg(any(test, feature = "testing"))]
pub(super) const MAX_ENTRIES: usize = NEWEST + (LEVELS - 1) * COARSER;

/// An entry with a start and an end in seconds, which can be joined with the one that follows it.
pub(super) trait Entry: Sized {
    fn from(&self) -> f64;
    fn to(&self) -> f64;
    /// Returns one entry for the time of both. `newer` follows this one, and the gap between them is shorter than they
    /// are.
    fn joined(self, newer: Self) -> Self;
}

#[derive(Debug, Clone, Default)]
pub(super) struct Downsampled<E> {
    /// Finest level first; in each, oldest entry first. Created as needed.
    levels: Vec<VecDeque<E>>,
}

impl<E: Entry> Downsampled<E> {
    /// Adds the newest entry. What overflows the last level is dropped.
    pub(super) fn push(&mut self, entry: E) {
        let mut handed_on = entry;
        for number in 0..LEVELS {
            let room = if number == 0 { NEWEST } else { COARSER };
            if self.levels.len() == number {
                self.levels.push(VecDeque::new());
            }
            let level = &mut self.levels[number];
            level.push_back(handed_on);
            if level.len() <= room {
                return;
            }
            let (Some(oldest), Some(next)) = (level.pop_front(), level.pop_front()) else {
                return;
            };
            // Keep a pause as a gap: the entries on either side do not cover it.
            let pause = next.from() - oldest.to();
            handed_on = if pause > oldest.to() - oldest.from() + (next.to() - next.from()) {
                level.push_front(next);
                oldest
            } else {
                oldest.joined(next)
            };
        }
    }

    pub(super) fn len(&self) -> usize {
        self.levels.iter().map(VecDeque::len).sum()
    }

    pub(super) fn newest(&self) -> Option<&E> {
        self.levels.first()?.back()
    }

    pub(super) fn oldest(&self) -> Option<&E> {
        self.levels.iter().rev().find_map(VecDeque::front)
    }

    /// Returns the newest entry that had ended by `at`.
    pub(super) fn ended_by(&self, at: f64) -> Option<&E> {
        self.levels.iter().find_map(|level| {
            let after = level.partition_point(|entry| entry.to() <= at);
            level.get(after.checked_sub(1)?)
        })
    }

    /// Returns the entry that `at` is in; its end counts as inside.
    pub(super) fn around(&self, at: f64) -> Option<&E> {
        let reaches = |level: &&VecDeque<E>| level.front().is_some_and(|first| first.from() < at);
        let level = self.levels.iter().find(reaches)?;
        let entry = level.get(level.partition_point(|entry| entry.to() < at))?;
        (entry.from() < at).then_some(entry)
    }

    /// Returns the entries that overlap `from` to `to`, oldest first.
    pub(super) fn between(&self, from: f64, to: f64) -> impl Iterator<Item = &E> {
        self.levels.iter().rev().flat_map(move |level| {
            let first = level.partition_point(|entry| entry.to() <= from);
            let after = level.partition_point(|entry| entry.from() < to);
            level.range(first.min(after)..after)
        })
    }

    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = &mut E> {
        self.levels.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A stretch of time with the lowest and highest of its values, and their number.
    #[derive(Debug, Clone, PartialEq, Default)]
    struct Spell {
        from: f64,
        to: f64,
        ends: (f64, f64),
        count: u64,
    }

    impl Entry for Spell {
        fn from(&self) -> f64 {
            self.from
        }

        fn to(&self) -> f64 {
            self.to
        }

        fn joined(self, newer: Self) -> Self {
            Self {
                from: self.from,
                to: newer.to,
                ends: (self.ends.0.min(newer.ends.0), self.ends.1.max(newer.ends.1)),
                count: self.count + newer.count,
            }
        }
    }

    fn spell(from: f64, to: f64) -> Spell {
        Spell {
            from,
            to,
            ends: (from, from),
            count: 1,
        }
    }

    #[test]
    fn a_million_entries_take_no_more_room_and_none_is_lost() {
        let mut levels = Downsampled::default();
        let mut most = 0;
        for at in 0..1_000_000_u32 {
            levels.push(spell(f64::from(at), f64::from(at + 1)));
            most = most.max(levels.len());
        }
        assert!(most <= MAX_ENTRIES, "{most}");
        let all: Vec<&Spell> = levels.between(-1.0, 2e6).collect();
        assert_eq!(all.len(), levels.len());
        assert_eq!(all.iter().map(|spell| spell.count).sum::<u64>(), 1_000_000);
        assert_eq!((all[0].from, all[0].ends.0), (0.0, 0.0));
        assert!(
            all.windows(2)
                .all(|two| two[0].to.to_bits() == two[1].from.to_bits())
        );
        // The resolution that its age allows: one part in a few hundred.
        let fine = |spell: &&&Spell| spell.to - spell.from <= 1.0 + (1e6 - spell.to) / 500.0;
        assert_eq!(all.iter().find(|spell| !fine(spell)), None);
        assert_eq!(levels.newest().map(|spell| spell.to), Some(1e6));
        assert_eq!(levels.oldest().map(|spell| spell.from), Some(0.0));
        assert_eq!(
            levels.ended_by(999_000.5).map(|spell| spell.to),
            Some(999_000.0)
        );
        assert_eq!(
            levels.around(999_000.0).map(|spell| spell.to),
            Some(999_000.0)
        );
        assert_eq!(levels.around(1e6 + 1.0), None);
        let old = levels.around(123_456.5).expect("it was read");
        assert!(old.from < 123_456.5 && old.to >= 123_456.5);
    }

    #[test]
    fn the_oldest_entries_are_dropped_when_levels_are_full() {
        let mut levels = Downsampled::default();
        // The pauses prevent joining: each level passes on entries as they came.
        for at in 0..20_000_u32 {
            let at = f64::from(at) * 10.0;
            levels.push(spell(at, at + 1.0));
        }
        assert_eq!(levels.len(), MAX_ENTRIES);
        assert_eq!(levels.newest().map(|spell| spell.from), Some(199_990.0));
        assert!(levels.between(0.0, 1e9).all(|spell| spell.count == 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn order_time_and_counts_hold(
            steps in prop::collection::vec((1..40_u32, 0..60_u32), 1..12_000),
            from in 0..400_000_u32, length in 1..100_000_u32,
        ) {
            let mut levels = Downsampled::default();
            let (mut now, mut read) = (0.0, 0.0);
            for (step, pause) in &steps {
                // Mostly back to back, sometimes with a pause.
                now += f64::from(pause.saturating_sub(50));
                levels.push(spell(now, now + f64::from(*step)));
                now += f64::from(*step);
                read += f64::from(*step);
            }
            let all: Vec<&Spell> = levels.between(f64::MIN, f64::MAX).collect();
            prop_assert!(all.windows(2).all(|two| two[0].to <= two[1].from));
            let covered: f64 = all.iter().map(|spell| spell.to - spell.from).sum();
            prop_assert!(covered >= read && covered <= now, "{covered} of {read} to {now}");
            prop_assert_eq!(all.iter().map(|spell| spell.count).sum::<u64>(), steps.len() as u64);
            let (from, to) = (f64::from(from), f64::from(from + length));
            let part: Vec<&Spell> = levels.between(from, to).collect();
            let wanted: Vec<&Spell> = all.into_iter().filter(|spell| spell.to > from && spell.from < to).collect();
            prop_assert_eq!(part, wanted);
        }
    }
}
