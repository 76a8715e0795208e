//! The trainer's waits and a GPU's idle time on one axis: lower and upper bounds of the time in which both happened at
//! once, and their correlation.
//!
//! Each piece of the GPU's history has a share of idle time, but not where in the piece it was. If the share `w` of a
//! piece was waited and the share `g` idle, both happened during at least `w + g - 1` and at most the smaller of the
//! two. Summed over pieces this is far narrower than the same bounds on the whole. Does no I/O.

use std::collections::VecDeque;

use crate::model::gpu::Piece;
use crate::sample::Wait;
use crate::units::Share;

/// Seconds by which the end of a wait may be off, since polls detect it.
const BLUR: f64 = 0.01;
/// Minimum time that both must cover to be compared, in seconds.
const SHORTEST: f64 = 2.0;

/// The overlap of one rank and one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    /// The GPU's index.
    pub gpu: u32,
    /// Time that both sides cover, in seconds.
    pub seconds: f64,
    /// Shares of that time in a wait, and without a kernel.
    pub wait: Share,
    pub idle: Share,
    /// Bounds of the share of that time with both at once.
    pub low: Share,
    pub high: Share,
    /// Correlation of the two over the pieces, -1 to 1. `None` if one of them does not vary.
    pub correlation: Option<f64>,
}

/// Returns the overlap; `waits` and `pieces` are ordered by their ends. `None` if the two have too little time in
/// common.
pub(crate) fn overlap(
    gpu: u32,
    waits: &VecDeque<Wait>,
    pieces: &VecDeque<Piece>,
) -> Option<Overlap> {
    let (from, to) = axis(waits, pieces)?;
    let mut sums = OverlapSums::default();
    let mut first = 0;
    let edges: Vec<(f64, f64)> = waits
        .iter()
        .map(|wait| (wait.from.as_secs_f64(), wait.to.as_secs_f64()))
        .collect();
    for piece in pieces {
        let (start, end) = (piece.from.max(from), piece.to.min(to));
        let length = end - start;
        // If the axis cuts a piece, it is not known how the piece's idle time is divided between the two parts.
        if piece.from < from || piece.to > to || length <= 0.0 {
            continue;
        }
        while edges.get(first).is_some_and(|(_, ended)| *ended <= start) {
            first += 1;
        }
        let waited: f64 = edges[first..]
            .iter()
            .take_while(|(began, _)| *began < end)
            .map(|(began, ended)| ended.min(end) - began.max(start))
            .sum();
        sums.add(length, waited / length, piece.idle);
    }
    if sums.seconds < SHORTEST {
        return None;
    }
    let within = edges
        .iter()
        .filter(|(_, ended)| (from..=to).contains(ended));
    let blur = BLUR * within.count() as f64 / sums.seconds;
    let share = |sum: f64| sum / sums.seconds;
    let (wait, idle) = (share(sums.wait), share(sums.idle));
    let least = (wait + idle - 1.0).max(0.0);
    let most = wait.min(idle);
    Some(Overlap {
        gpu,
        seconds: sums.seconds,
        wait: Share(wait).clamped(),
        idle: Share(idle).clamped(),
        low: Share((share(sums.low) - blur).max(least)).clamped(),
        high: Share((share(sums.high) + blur).min(most)).clamped(),
        correlation: sums.correlation(),
    })
}

/// Returns the time from the end of the first wait to the end of the last: whole periods of a wait and a step, so that
/// neither side is cut. Without waits, returns all the time that the pieces cover.
fn axis(waits: &VecDeque<Wait>, pieces: &VecDeque<Piece>) -> Option<(f64, f64)> {
    let (first, last) = (pieces.front()?.from, pieces.back()?.to);
    match (waits.front(), waits.back()) {
        (Some(begin), Some(end)) if waits.len() > 1 => {
            Some((begin.to.as_secs_f64(), end.to.as_secs_f64()))
        }
        (None, None) => Some((first, last)),
        _ => None,
    }
}

/// Sums over pieces, each weighted by its length.
#[derive(Debug, Default)]
struct OverlapSums {
    seconds: f64,
    wait: f64,
    idle: f64,
    low: f64,
    high: f64,
    wait_wait: f64,
    idle_idle: f64,
    wait_idle: f64,
}

impl OverlapSums {
    fn add(&mut self, length: f64, wait: f64, idle: f64) {
        let wait = wait.clamp(0.0, 1.0);
        self.seconds += length;
        self.wait += length * wait;
        self.idle += length * idle;
        self.low += length * (wait + idle - 1.0).max(0.0);
        self.high += length * wait.min(idle);
        self.wait_wait += length * wait * wait;
        self.idle_idle += length * idle * idle;
        self.wait_idle += length * wait * idle;
    }

    fn correlation(&self) -> Option<f64> {
        /// Standard deviation below which a share does not vary.
        const STEADY: f64 = 0.02;
        let of = |sum: f64| sum / self.seconds;
        let (wait, idle) = (of(self.wait), of(self.idle));
        let deviation = |squares: f64, mean: f64| (of(squares) - mean * mean).max(0.0).sqrt();
        let waits = deviation(self.wait_wait, wait);
        let idles = deviation(self.idle_idle, idle);
        (waits > STEADY && idles > STEADY)
            .then(|| ((of(self.wait_idle) - wait * idle) / (waits * idles)).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests;
