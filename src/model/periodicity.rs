//! Evaluates the order of the waits: which of them were caused by a start of workers, and whether the trainer waits at
//! a regular interval of batches.
//!
//! Works on waits only; does not judge what is good.

use std::collections::VecDeque;

use crate::model::interval::SampleInterval;
use crate::model::window::RankSums;
use crate::sample::Wait;
use crate::units::{Share, sorted};

/// Seconds after the start of a worker within which the wait for it must have begun.
const FOLLOWS: f64 = 5.0;

/// Seconds below which a wait is ignored: a job that reports its steps reports such short ones, too.
pub(super) const MIN_WAIT_SECONDS: f64 = 0.001;
/// Newest batches that are searched for a period.
const BATCHES: u64 = 1024;
/// Longest period that is searched for, in batches.
const MAX_PERIOD: usize = 64;
/// Number of periods that must have been seen.
const TIMES: usize = 4;
/// Minimum variation of the waits (standard deviation over mean): if the waits for all batches are alike, there is no
/// period.
const UNEVEN: f64 = 0.5;
/// Minimum autocorrelation of a clear period, and its minimum distance from that of neighbouring batches: waits that
/// merely drift look like their neighbours. In simulated loaders, load times that vary by 10 % reach 0.95, by 50 %
/// seldom 0.8; a batch count that is off by one at every tenth wait costs 0.15.
const CLEAR: f64 = 0.85;
const ABOVE_NEIGHBOURS: f64 = 0.3;
/// The shortest period this close to the best one is returned, since its multiples fit as well.
const NEARLY_BEST: f64 = 0.85;

/// Returns the mean length, in seconds, of the wait around a random moment of waiting: if there are short waits and a
/// long one, it is close to the long one. `None` without waits.
pub(super) fn wait_seconds(waits: &VecDeque<Wait>) -> Option<f64> {
    let lengths = waits.iter().map(Wait::seconds);
    let (total, squares) = lengths.fold((0.0, 0.0), |(total, squares), length| {
        (total + length, squares + length * length)
    });
    (total > 0.0).then_some(squares / total)
}

/// Returns the share of the time in waits that were caused by a start of workers: for each start the first wait that
/// ended after it, if that was in progress or began soon, until its first batch came. `None` if starts cannot be placed
/// in time.
pub(super) fn startup(sums: &RankSums, interval: &SampleInterval) -> Option<Share> {
    if !interval.has_clock() {
        return None;
    }
    let waits: Vec<&Wait> = sums
        .waits
        .iter()
        .filter(|wait| wait.seconds() >= MIN_WAIT_SECONDS)
        .collect();
    let caused = sums.starts.iter().filter_map(|&start| {
        // The waits are ordered by their ends; there may be thousands of waits and of starts.
        let next = waits.partition_point(|wait| wait.to.as_secs_f64() < start);
        let wait = waits.get(next)?;
        let [from, to] = [wait.from, wait.to].map(|time| time.as_secs_f64());
        let first = wait.first.map_or(to, |first| first.as_secs_f64());
        // Further workers may start while a wait continues after its first batch.
        let caused = if start <= first {
            (from, first)
        } else {
            (start, to)
        };
        (from <= start + FOLLOWS).then_some(caused)
    });
    share_of(caused.collect(), sums, interval)
}

/// Returns the share of the time in waits for the first batch of a pass, until that batch came. `None` if waits cannot
/// be placed in time, or if no such wait was seen.
pub(super) fn first_batches(sums: &RankSums, interval: &SampleInterval) -> Option<Share> {
    let first = sums.waits.iter().filter(|wait| wait.begins);
    let first = first.map(|wait| {
        let to = wait.first.unwrap_or(wait.to);
        (wait.from.as_secs_f64(), to.as_secs_f64())
    });
    let first: Vec<_> = first.collect();
    (interval.has_clock() && !first.is_empty()).then(|| share_of(first, sums, interval))?
}

/// Returns the share of the interval that these pieces of time cover together.
fn share_of(
    mut pieces: Vec<(f64, f64)>,
    sums: &RankSums,
    interval: &SampleInterval,
) -> Option<Share> {
    // If the oldest waits were dropped, only the time since then is covered.
    let dropped = sums.waits_ended > sums.waits.len() as u64;
    let from = match sums.waits.front() {
        Some(first) if dropped => first.from.as_secs_f64().max(interval.from),
        _ => interval.from,
    };
    pieces.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut covered, mut lost) = (from, 0.0);
    for (begin, end) in pieces {
        let end = end.min(interval.to);
        lost += (end - begin.max(covered)).max(0.0);
        covered = covered.max(end);
    }
    Share::of(lost, interval.to - from)
}

/// Returns the period in batches at which the trainer waits. `None` if no period is clear; that does not clear the
/// loader, since workers out of step wait without one.
pub fn period_batches(waits: &VecDeque<Wait>) -> Option<u32> {
    let waits = by_batch(waits);
    let longest = MAX_PERIOD.min(waits.len() / TIMES);
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
    let lag = (2..=longest).find(|&lag| likeness[lag] >= NEARLY_BEST * best)?;
    u32::try_from(lag).ok()
}

/// Returns the seconds waited for each of the newest batches. A few waits of extraordinary length (a start, a
/// checkpoint) are cut to the length of the others, which they would otherwise outweigh.
fn by_batch(waits: &VecDeque<Wait>) -> Vec<f64> {
    let mut known: Vec<(u64, f64)> = Vec::new();
    for wait in waits {
        let Some(batch) = wait.batch else { continue };
        if known.last().is_some_and(|(last, _)| batch < *last) {
            known.clear();
        }
        known.push((batch, wait.seconds()));
    }
    let Some(&(last, _)) = known.last() else {
        return Vec::new();
    };
    known.retain(|(batch, _)| last - batch < BATCHES);
    let lengths = known.iter().map(|(_, length)| *length);
    let lengths = sorted(lengths.filter(|length| *length >= MIN_WAIT_SECONDS));
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
