//! Confidence interval of a share that was counted in polls.
//!
//! Works on counts only. The formula:
//!
//! - `p` = polls in the loader / polls. Polls at a stopped process are included: that time passed too.
//! - Polls within one wait are not independent of each other; the independent observations are the pairs of a step and
//!   the wait after it. For `k` pairs, each `c` long with a wait of `w`, the share `p` is a ratio of sums, and its
//!   variance is that of a ratio estimator, `sum (w - p c)^2 / (k (k - 1) mean(c)^2)`. With few pairs this variance is
//!   itself uncertain, so it is raised by the factor `1 + 4 / k`. The window cuts the first and the last pair at any
//!   point, which adds `(p (1-p) / k)^2 / 3`.
//! - With fewer than five pairs their variance is not known. Their lengths are then assumed to vary by `cv^2` = 1/2,
//!   between a steady loader and a random one, which gives `p^2 (1-p)^2 / k`.
//! - That is equivalent to `n = p (1-p) / variance` independent polls, at most as many as there were. If all polls
//!   agree (`p` is 0 or 1), `n` = polls. A poll that stands for more than 5 ms still counts as one.
//! - The interval is Wilson's at 95 % for `p` and `n`, so it has a width for 0 and 1 too. It extends at least one
//!   percentage point to each side.
//! - Polls that could not be classified (`unseen`) may have been in the loader, so they raise the upper end to that of
//!   `(in the loader + unseen) / polls`, as if each poll were independent. If worker processes feed the main thread, it
//!   does not load batches itself: an unseen poll on a CPU then hides no more than the unpacking of batches, for which
//!   a tenth of the polls is allowed. Without stacks, this is assumed of every poll on a CPU; the time ready without a
//!   free CPU may have been in the loader, too, and so may all time waiting for another thread of the process. If a
//!   loader is of another library, unseen polls are left out: `p` is the share of the others, and both ends allow for
//!   the unseen ones as for unreported time. Polls before it was known where the main thread requests its batches
//!   (`before`) are treated in the same way, except that waits for a PyTorch loader were recognised even then. An early
//!   verdict ignores these earlier polls once at least as many have followed: it covers only the time since.
//! - Polls at which the main thread worked on something outside the loader that may be a batch (`preparing`) may all
//!   have been loading, whatever feeds the main thread: they raise only the upper end.
//! - The kernel counts exactly how long the main thread was ready. If polls misjudge that by more than two standard
//!   deviations, they may misjudge by as much what the thread did: both ends allow for the excess. They also allow for
//!   the error of delayed polls, unless batches are so slow that a delayed poll almost always sees the same state.
//! - If the job reports its steps, `p` = waited / (waited + stepped) is exact for the time, and the interval shows how
//!   well the window represents the job. All pairs are then complete, so nothing is cut. Unreported time may have been
//!   all wait or none, and widens the interval by that.

use std::collections::VecDeque;

use crate::model::rates::ratio::{ENOUGH, ratio_variance, wilson};
use crate::model::rates::reported::Grown;
use crate::model::rates::sequential::{self, Blocks, Bounds, POLLS_A_SECOND};
use crate::model::rates::tally::MainGrown;
use crate::model::rates::{Estimate, RankRates};
use crate::sample::{BEAT, MainTally, Wait};
use crate::units::{Share, whole};

/// Quantile of the normal distribution, two-sided 95 %.
const Z: f64 = 1.96;
/// Minimum distance of either end from the share.
const MIN_WIDTH: f64 = 0.01;
/// Minimum polls since the loader was recognised for an early verdict to cover only that time: two seconds, in units of
/// [`BEAT`].
const SINCE: f64 = 2.0 / BEAT.as_secs_f64();
/// Maximum share of the time that unpacking batches may take unseen.
const UNPACKING: f64 = 0.1;

/// The share of waits is not known if for more than `UNCLEAR` of the time it is unclear whether the main thread was in
/// the loader, and less than `SEEN` of the time certainly was waits.
const UNCLEAR: f64 = 0.1;
const SEEN: f64 = 0.1;

impl Estimate {
    /// Returns the share. `None` if too much of the time may or may not have been waits: then `share` is only the part
    /// that was seen, and the interval is all that is known.
    pub fn point(&self) -> Option<Share> {
        (!self.hides(UNCLEAR)).then_some(self.share)
    }

    /// Whether so much of the time may have been waits that even a verdict that was clear before is dropped.
    pub fn is_lost(&self) -> bool {
        self.hides(2.0 * UNCLEAR)
    }

    fn hides(&self, more_than: f64) -> bool {
        self.unclear.0 > more_than && self.low.0 < SEEN
    }
}

impl RankRates {
    /// Returns the share of its waits for data. `None` if they cannot be seen, or not well enough for a figure.
    pub fn wait_share(&self) -> Option<Share> {
        self.wait?.point()
    }
}

/// What polls that could not be classified may have been.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unclassified {
    /// Loading, if the main thread does that itself.
    Loads,
    /// Unpacking of batches, if all loaders have worker processes.
    Workers,
    /// Like `Workers`, but no stack is ever read. Holds the share of time that the main thread was ready without a CPU.
    WorkersNoStacks(Share),
    /// Anything. These polls are left out.
    Unknown,
}

/// Returns the wait share of a tally. `waits` are those that were seen, oldest first; `episodes` is their total number.
pub(super) fn wait(
    grown: &MainGrown,
    waits: &VecDeque<Wait>,
    episodes: u64,
    may_be: Unclassified,
    blocks: &Blocks,
) -> Estimate {
    let (tally, before) = (&grown.tally, grown.before as f64);
    // At these polls it is known what the main thread did, but not what for.
    let preparing = (tally.preparing as f64).min(tally.unseen as f64);
    let unseen = tally.unseen as f64 - preparing;
    let unknown = match may_be {
        Unclassified::Unknown => unseen.min(tally.polls as f64 - 1.0),
        Unclassified::Loads | Unclassified::Workers | Unclassified::WorkersNoStacks(_) => 0.0,
    };
    let polls = tally.polls as f64 - unknown;
    let p = (tally.in_loader() as f64 / polls).clamp(0.0, 1.0);
    let asleep = unseen.min(tally.other as f64);
    let hidden = match may_be {
        Unclassified::Workers => asleep + (unseen - asleep).min(UNPACKING * polls),
        Unclassified::WorkersNoStacks(delay) => {
            unseen + (tally.running as f64).min((UNPACKING + delay.0) * polls)
        }
        Unclassified::Loads => unseen,
        Unclassified::Unknown => 0.0,
    };
    let known = polls / (polls + unknown + before);
    let waited_before = match may_be {
        Unclassified::Unknown => 0.0,
        _ => grown.waited_before as f64 / (polls + unknown + before),
    };
    let skew = grown.skew.0;
    let observed = observed(tally, polls);
    let with_hidden = (p + (hidden + preparing) / polls).min(1.0);
    let ends = |(low, high): (f64, f64), z: f64, known: f64, waited_before: f64| {
        let high = high
            .max(p + MIN_WIDTH)
            .max(wilson(with_hidden, observed, z).1);
        Bounds {
            low: Share((low * known + waited_before).min(p - MIN_WIDTH) - skew).clamped(),
            high: Share(high * known + 1.0 - known + skew).clamped(),
        }
    };
    let independent = independent(p, observed, waits, episodes);
    let Bounds { low, high } = ends(wilson(p, independent, Z), Z, known, waited_before);
    let early = |bounds| {
        if polls >= before.max(SINCE) {
            ends(bounds, sequential::Z, polls / (polls + unknown), 0.0)
        } else {
            ends(bounds, sequential::Z, known, waited_before)
        }
    };
    Estimate {
        share: Share(p),
        low,
        high,
        polls: tally.polls + grown.before,
        unknown: Share(1.0 - known),
        unclear: match may_be {
            // On a CPU, an unseen poll hides no more than the unpacking of batches.
            Unclassified::Workers => Share((asleep + preparing) / polls).clamped(),
            _ => Share(tally.unseen as f64 / tally.polls as f64).clamped(),
        },
        early: blocks.bounds(p, observed).map(early),
    }
}

/// Returns how often the thread was polled in the time of `polls` units.
fn observed(tally: &MainTally, polls: f64) -> f64 {
    match tally.observed {
        0 => polls,
        observed => polls * (observed as f64 / tally.polls as f64).min(1.0),
    }
}

fn independent(p: f64, polls: f64, waits: &VecDeque<Wait>, episodes: u64) -> f64 {
    let spread = p * (1.0 - p);
    if spread <= 0.0 {
        return polls;
    }
    let pairs = pairs(waits, |_, _| true);
    let variance = if pairs.len() < ENOUGH {
        spread * spread / episodes.max(1) as f64
    } else {
        ratio_variance(&pairs) + (spread / pairs.len() as f64).powi(2) / 3.0
    };
    polls.min(spread / variance)
}

/// Returns the wait share that a job reports. `waits` are those of its steps, oldest first.
pub(super) fn reported(grown: &Grown, waits: &VecDeque<Wait>) -> Estimate {
    let p = grown.wait().0;
    let spread = p * (1.0 - p);
    // Next to a lost step, a pair would span two steps.
    let pairs = pairs(waits, |before, wait| {
        let next = before.batch.and_then(|batch| batch.checked_add(1));
        next.is_some() && next == wait.batch
    });
    let variance = if pairs.len() < ENOUGH {
        spread * spread / grown.steps
    } else {
        ratio_variance(&pairs)
    };
    // Without any variance `n` would be infinite: the steps limit it.
    let n = if spread > 0.0 {
        spread / variance
    } else {
        grown.steps
    };
    let unreported = grown.unreported().0;
    let ends = |(low, high): (f64, f64)| Bounds {
        low: Share(low.min(p - MIN_WIDTH) * (1.0 - unreported)).clamped(),
        high: Share(high.max(p + MIN_WIDTH) * (1.0 - unreported) + unreported).clamped(),
    };
    let Bounds { low, high } = ends(wilson(p, n, Z));
    let polls = whole(grown.steps) as u64;
    Estimate {
        share: Share(p),
        low,
        high: Share(high.0.max(p)),
        polls,
        unknown: Share::ZERO,
        unclear: Share::ZERO,
        early: Blocks::of_waits(waits, 0.0)
            .bounds(p, POLLS_A_SECOND * (grown.waited + grown.stepped))
            .map(ends),
    }
}

/// Returns each wait after the first with the time since the end of the one before, in seconds.
fn pairs(waits: &VecDeque<Wait>, belong: impl Fn(&Wait, &Wait) -> bool) -> Vec<(f64, f64)> {
    waits
        .iter()
        .zip(waits.iter().skip(1))
        .filter(|(before, wait)| belong(before, wait))
        .map(|(before, wait)| {
            let waited = wait.seconds();
            let cycle = wait.to.saturating_sub(before.to).as_secs_f64();
            (waited, cycle)
        })
        .collect()
}
