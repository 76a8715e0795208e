//! Moments of the past in all detail, within a limit of bytes: the farther back, the farther apart.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::model::Rates;
use crate::model::rates::footprint;
use crate::sample::Gap;
use crate::units;
use crate::verdict::Verdict;

/// Seconds that the newest moments are as good as new: what is thinned out is older first.
const NEW: f64 = 60.0;

/// Everything that panels show, but the history.
#[derive(Debug)]
pub(in crate::app) struct Moment {
    pub(in crate::app) at: units::Moment,
    pub(in crate::app) window: Option<Arc<Rates>>,
    pub(in crate::app) latest: Option<Arc<Rates>>,
    pub(in crate::app) verdict: Option<Arc<Verdict>>,
    pub(in crate::app) gaps: Arc<[Gap]>,
    pub(in crate::app) uptime: Option<Duration>,
}

#[derive(Debug)]
struct Kept {
    moment: Arc<Moment>,
    /// In seconds since pipetop started.
    at: f64,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Moments {
    /// Oldest first.
    kept: VecDeque<Kept>,
    bytes: usize,
    budget: usize,
}

impl Moments {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            kept: VecDeque::new(),
            bytes: 0,
            budget,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.budget);
    }

    pub(super) fn push(&mut self, moment: Moment) {
        let at = moment.at.since_start.as_secs_f64();
        if self.kept.back().is_some_and(|newest| newest.at >= at) {
            self.clear();
        }
        let shares_gaps = |newest: &Kept| Arc::ptr_eq(&newest.moment.gaps, &moment.gaps);
        let bytes = size_of::<Kept>() + bytes(&moment, self.kept.back().is_some_and(shares_gaps));
        self.bytes += bytes;
        self.kept.push_back(Kept {
            moment: Arc::new(moment),
            at,
            bytes,
        });
        while self.bytes > self.budget && self.kept.len() > 2 {
            self.thin(at);
        }
    }

    /// Drops the moment that is missed least: the gap that it leaves is the smallest for its age. The oldest
    /// and the newest stay.
    fn thin(&mut self, now: f64) {
        let missed = |place: usize| {
            let gap = self.kept[place + 1].at - self.kept[place - 1].at;
            gap / (now - self.kept[place].at + NEW)
        };
        let inner = 1..self.kept.len() - 1;
        let least = inner.min_by(|one, other| missed(*one).total_cmp(&missed(*other)));
        if let Some(dropped) = least.and_then(|place| self.kept.remove(place)) {
            self.bytes -= dropped.bytes;
        }
    }

    /// These gaps, as the newest moment has them where they are the same.
    pub(super) fn gaps(&self, gaps: &[Gap]) -> Arc<[Gap]> {
        match self.kept.back() {
            Some(newest) if *newest.moment.gaps == *gaps => Arc::clone(&newest.moment.gaps),
            _ => gaps.into(),
        }
    }

    pub(super) fn oldest(&self) -> Option<&Arc<Moment>> {
        self.kept.front().map(|kept| &kept.moment)
    }

    /// The next before this time, and after it.
    pub(super) fn before(&self, at: Duration) -> Option<&Arc<Moment>> {
        let place = self.place(at).checked_sub(1)?;
        Some(&self.kept.get(place)?.moment)
    }

    pub(super) fn after(&self, at: Duration) -> Option<&Arc<Moment>> {
        let later = self.kept.iter().skip(self.place(at));
        let mut later = later.filter(|kept| kept.moment.at.since_start > at);
        later.next().map(|kept| &kept.moment)
    }

    /// The nearest to `wanted` on its side of `from`; else the next one there.
    pub(super) fn near(&self, wanted: Duration, from: Duration) -> Option<&Arc<Moment>> {
        let back = wanted <= from;
        let at = |moment: &Arc<Moment>| moment.at.since_start;
        let beyond = |at: Duration| if back { at < from } else { at > from };
        let place = self.place(wanted);
        let around = [place.checked_sub(1), Some(place)].into_iter().flatten();
        let moments = around.filter_map(|place| Some(&self.kept.get(place)?.moment));
        let nearest = moments
            .filter(|moment| beyond(at(moment)))
            .min_by_key(|moment| at(moment).abs_diff(wanted));
        nearest.or_else(|| {
            if back {
                self.before(from)
            } else {
                self.after(from)
            }
        })
    }

    /// How many are older.
    fn place(&self, at: Duration) -> usize {
        self.kept
            .partition_point(|kept| kept.moment.at.since_start < at)
    }
}

/// What a moment takes, with all that it alone holds.
fn bytes(moment: &Moment, shares_gaps: bool) -> usize {
    let rates = |rates: &Option<Arc<Rates>>| rates.as_ref().map_or(0, |rates| rates.footprint());
    let texts = |gap: &Gap| {
        [&gap.source, &gap.reason, &gap.hint]
            .map(footprint::text)
            .iter()
            .sum::<usize>()
            + size_of::<Gap>()
    };
    let gaps = if shares_gaps {
        0
    } else {
        moment.gaps.iter().map(texts).sum()
    };
    let verdict = moment
        .verdict
        .as_ref()
        .map_or(0, |verdict| verdict.footprint());
    size_of::<Moment>() + rates(&moment.window) + rates(&moment.latest) + verdict + gaps
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn moment(at: u32) -> Moment {
        Moment {
            at: units::Moment {
                since_start: Duration::from_secs(at.into()),
                wall: SystemTime::UNIX_EPOCH,
            },
            window: None,
            latest: None,
            verdict: None,
            gaps: Arc::new([]),
            uptime: None,
        }
    }

    fn one() -> usize {
        size_of::<Kept>() + bytes(&moment(0), false)
    }

    fn day(room: usize) -> Moments {
        let mut moments = Moments::new(room * one());
        for at in 0..86_400 {
            moments.push(moment(at));
            assert!(moments.bytes <= moments.budget);
        }
        moments
    }

    #[test]
    fn a_day_fits_the_finer_the_newer() {
        let moments = day(500);
        assert_eq!(moments.kept.len(), 500);
        assert!(moments.kept[0].at.abs() < 1e-9);
        let pairs = moments.kept.iter().zip(moments.kept.iter().skip(1));
        for (older, newer) in pairs {
            let age = 86_400.0 - newer.at;
            // 500 moments over seven and a half times as much again: one part in sixty or so.
            assert!(
                newer.at - older.at <= 1.0 + (age + NEW) / 25.0,
                "{} to {}",
                older.at,
                newer.at
            );
        }
        assert!((moments.kept[499].at - moments.kept[489].at - 10.0).abs() < 1e-9);
    }

    #[test]
    fn the_nearest_is_found_and_never_the_same_again() {
        let mut moments = Moments::new(usize::MAX);
        for at in [0, 1, 2, 3, 20, 40, 41] {
            moments.push(moment(at));
        }
        let seconds = |at: u64| Duration::from_secs(at);
        let at = |found: Option<&Arc<Moment>>| found.map(|moment| moment.at.since_start.as_secs());
        assert_eq!(at(moments.before(seconds(3))), Some(2));
        assert_eq!(at(moments.after(seconds(3))), Some(20));
        assert_eq!(at(moments.before(seconds(0))), None);
        assert_eq!(at(moments.after(seconds(41))), None);
        assert_eq!(at(moments.near(seconds(31), seconds(41))), Some(40));
        assert_eq!(at(moments.near(seconds(10), seconds(20))), Some(3));
        assert_eq!(at(moments.near(seconds(30), seconds(20))), Some(40));
        assert_eq!(at(moments.near(seconds(50), seconds(40))), Some(41));
        assert_eq!(at(moments.near(seconds(0), seconds(40))), Some(0));
        assert_eq!(at(moments.near(seconds(0), seconds(0))), None);
        assert_eq!(at(moments.near(seconds(60), seconds(41))), None);
    }

    #[test]
    fn gaps_that_stay_are_kept_once() {
        let mut moments = Moments::new(usize::MAX);
        let gap = |reason: &str| Gap {
            source: "nvml".to_owned(),
            reason: reason.to_owned(),
            hint: String::new(),
        };
        for (at, reason) in [(0, "lost"), (1, "lost"), (2, "back")] {
            let gaps = moments.gaps(&[gap(reason)]);
            moments.push(Moment { gaps, ..moment(at) });
        }
        assert!(moments.kept[1].bytes < moments.kept[0].bytes);
        assert!(moments.kept[2].bytes > moments.kept[1].bytes);
        assert_eq!(moments.kept[2].moment.gaps[0].reason, "back");
    }
}
