//! What the order of the waits tells: which of them a start of workers caused, and whether the trainer
//! waits in a rhythm of batches.
//!
//! Pure arithmetic on waits; no opinion about what is good.

use std::collections::{BTreeSet, VecDeque};

use crate::model::interval::Interval;
use crate::model::window::RankSums;
use crate::sample::Wait;
use crate::units::Share;

/// Seconds after the start of a worker within which the wait for it must have begun.
const FOLLOWS: f64 = 5.0;

/// Seconds. What is shorter is no wait: a job that reports its steps reports these, too.
pub(super) const NOTICEABLE: f64 = 0.001;
/// Newest batches that a rhythm is looked for in.
const BATCHES: u64 = 1024;
/// Rhythms that are looked for, in batches.
const LONGEST: usize = 64;
/// A rhythm must have been there this many times.
const TIMES: usize = 4;
/// Waits must vary at least so much (standard deviation over mean): where every batch waits alike,
/// there is no rhythm.
const UNEVEN: f64 = 0.5;
/// Autocorrelation from which a rhythm is clear, and how far above that of neighbouring batches: waits
/// that merely drift look like their neighbours. In simulated loaders, load times that vary by 10 % reach
/// 0.95, by 50 % seldom 0.8; a batch clock that is one off at every tenth wait costs 0.15.
const CLEAR: f64 = 0.85;
const ABOVE_NEIGHBOURS: f64 = 0.3;
/// The shortest rhythm this close to the best one is taken: its multiples fit as well.
const AS_GOOD: f64 = 0.85;

/// Share of the time spent in waits that a start of workers caused: for each start the first wait that
/// ended after it, if that was under way or began soon. `None` where starts cannot be placed in time.
pub(super) fn startup(sums: &RankSums, interval: &Interval) -> Option<Share> {
    if !interval.has_clock() {
        return None;
    }
    let waits: Vec<(f64, f64)> = sums
        .waits
        .iter()
        .map(|wait| (wait.from.as_secs_f64(), wait.to.as_secs_f64()))
        .filter(|(from, to)| to - from >= NOTICEABLE)
        .collect();
    let caused: BTreeSet<usize> = sums
        .starts
        .iter()
        .filter_map(|start| {
            // They are in the order in which they ended; there may be thousands of both.
            let first = waits.partition_point(|(_, to)| to < start);
            (waits.get(first)?.0 <= start + FOLLOWS).then_some(first)
        })
        .collect();
    // Where the oldest waits were dropped, only the time since then is known.
    let dropped = sums.waits_ended > sums.waits.len() as u64;
    let from = match sums.waits.front() {
        Some(first) if dropped => first.from.as_secs_f64().max(interval.from),
        _ => interval.from,
    };
    let lost: f64 = caused
        .iter()
        .map(|&wait| (waits[wait].1.min(interval.to) - waits[wait].0.max(from)).max(0.0))
        .sum();
    Share::of(lost, interval.to - from)
}

/// The trainer waits every so many batches. `None` where no rhythm is clear; that does not clear the
/// loader, since workers out of step wait without one.
pub fn period_batches(waits: &VecDeque<Wait>) -> Option<u32> {
    let waits = by_batch(waits);
    let longest = LONGEST.min(waits.len() / TIMES);
    if longest < 2 {
        return None;
    }
    let count = waits.len() as f64;
    let mean = waits.iter().sum::<f64>() / count;
    let off: Vec<f64> = waits.iter().map(|wait| wait - mean).collect();
    let variance = off.iter().map(|off| off * off).sum::<f64>() / count;
    if variance.sqrt() <= UNEVEN * mean {
        return None;
    }
    let likeness: Vec<f64> = (0..=longest)
        .map(|lag| {
            let pairs = off.iter().zip(&off[lag..]);
            let sum: f64 = pairs.map(|(a, b)| a * b).sum();
            sum / (count - lag as f64) / variance
        })
        .collect();
    let best = likeness[2..].iter().copied().fold(f64::MIN, f64::max);
    if best < CLEAR || best < likeness[1] + ABOVE_NEIGHBOURS {
        return None;
    }
    let lag = (2..=longest).find(|&lag| likeness[lag] >= AS_GOOD * best)?;
    u32::try_from(lag).ok()
}

/// Seconds waited for each of the newest batches. Few waits of extraordinary length (a start, a
/// checkpoint) are cut to the length of the others, or they would drown them.
fn by_batch(waits: &VecDeque<Wait>) -> Vec<f64> {
    let mut known: Vec<(u64, f64)> = Vec::new();
    for wait in waits {
        let Some(batch) = wait.batch else { continue };
        if known.last().is_some_and(|(last, _)| batch < *last) {
            known.clear();
        }
        known.push((batch, wait.to.saturating_sub(wait.from).as_secs_f64()));
    }
    let Some(&(last, _)) = known.last() else {
        return Vec::new();
    };
    known.retain(|(batch, _)| last - batch < BATCHES);
    let lengths = known.iter().map(|(_, length)| *length);
    let mut lengths: Vec<f64> = lengths.filter(|length| *length >= NOTICEABLE).collect();
    lengths.sort_by(f64::total_cmp);
    let Some(&usual) = lengths.get(lengths.len().saturating_sub(1) * 9 / 10) else {
        return Vec::new();
    };
    let first = known[0].0;
    let mut waits = vec![0.0; usize::try_from(last - first + 1).unwrap_or(0)];
    for (batch, length) in known {
        if let Some(wait) = usize::try_from(batch - first)
            .ok()
            .and_then(|at| waits.get_mut(at))
        {
            *wait += length.min(usual);
        }
    }
    waits
}
