//! Confidence interval of a share that is tested again and again until it is clear: the basis of an early verdict.
//!
//! Works on stretches of time and the part of each that counts. The rule:
//!
//! - Polling until an answer is clear gives a wrong one more often than polling once. A constant boundary
//!   allows for that (Pocock, Biometrika 64, 1977): at every poll `z` = 3 instead of 1.96. However often one polls while
//!   the observed time grows fivefold (from 2 s to 10 s), a Brownian motion leaves the boundary with a probability of
//!   about `f(z) (z - 1/z) ln 5 + 4 f(z)/z` = 2.5 %, `f` = the normal density (Siegmund, Sequential Analysis, 1985). So
//!   the interval holds at all polls together at 97.5 %.
//! - Batches of one burst are not independent. A block of time ends with a noticeable wait, and is no shorter
//!   than polls can resolve: workers in step make one burst, and one block, of a batch each. The variance of the share is that of
//!   batch means, computed over single blocks, over pairs of them, over fours, ... down to five blocks, and the largest of
//!   these: if the share rises and falls over several blocks, the long ones vary as much as the short ones. If no wait is
//!   noticeable there are no bursts, and any wait ends a block.
//! - A few blocks may be alike by chance: the variance is at least `p^2 (1-p)^2 / k` of `k` blocks, that of blocks whose
//!   lengths vary by `cv^2` = 1/2.
//! - The first block begins with the end of the first wait, so a wait that was in progress before, such as that for a
//!   first batch, is not in the blocks. Their share and that of all polls may differ: the interval covers both.
//!
//! No interval detects a period that is longer than the time observed. Whether there is a reserve must be shown by the
//! state of the queue and of the workers; the judge decides that.

use std::collections::VecDeque;

use crate::model::gpu::Piece;
use crate::model::periodicity::MIN_WAIT_SECONDS;
use crate::model::rates::ratio::{ENOUGH, ratio_variance, wilson};
use crate::sample::Wait;
use crate::units::Share;

/// Standard deviations of the normal distribution, at every poll.
pub(super) const Z: f64 = 3.0;
/// Shortest block, in seconds.
const SHORTEST: f64 = 0.15;
/// Readings of a GPU and reports of steps cover all the time between them. They count like this many polls per second.
pub(super) const POLLS_A_SECOND: f64 = 200.0;

/// Bounds of a share at 97.5 %, however often one polls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub low: Share,
    pub high: Share,
}

/// Consecutive stretches of time: the part that counts, and the whole, in seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    blocks: Vec<(f64, f64)>,
    /// Lower bound of the number of blocks, if they cannot be separated.
    least: f64,
}

impl Blocks {
    /// Returns the blocks of waits, oldest first. `least` is used if the waits are too short to be seen one by one.
    pub(super) fn of_waits(waits: &VecDeque<Wait>, least: f64) -> Self {
        let mut blocks = Vec::new();
        let mut ends = waits.iter().map(|wait| wait.to.as_secs_f64());
        let (mut begun, mut waited) = (ends.next(), 0.0);
        let is_noticed = |from: f64, to: f64| to - from >= MIN_WAIT_SECONDS;
        let bursts = waits
            .iter()
            .skip(1)
            .any(|wait| is_noticed(wait.from.as_secs_f64(), wait.to.as_secs_f64()));
        for wait in waits.iter().skip(1) {
            let (from, to) = (wait.from.as_secs_f64(), wait.to.as_secs_f64());
            waited += to - from;
            if let Some(start) = begun
                && to - start >= SHORTEST
                && (is_noticed(from, to) || !bursts)
            {
                blocks.push((waited, to - start));
                (begun, waited) = (Some(to), 0.0);
            }
        }
        Self { blocks, least }
    }

    fn of_idle(pieces: &VecDeque<Piece>) -> Self {
        let length = |piece: &Piece| piece.to - piece.from;
        let pieces = pieces.iter();
        Self {
            blocks: pieces
                .map(|piece| (length(piece) * piece.idle, length(piece)))
                .collect(),
            least: 0.0,
        }
    }

    /// Returns the bounds for a share `p` found by `polls` polls. `None` if the share varies but nothing shows by how
    /// much.
    pub(super) fn bounds(&self, p: f64, polls: f64) -> Option<(f64, f64)> {
        let count = self.least.max(self.blocks.len() as f64);
        let variance = self.variance();
        let ends = |p: f64| {
            let spread = p * (1.0 - p);
            let variance = (spread * spread / count).max(variance);
            // Blocks that do not differ are no better than all polls.
            let n = if spread > 0.0 {
                polls.min(spread / variance)
            } else {
                polls
            };
            wilson(p, n, Z)
        };
        if count < 1.0 && p > 0.0 && p < 1.0 {
            return None;
        }
        let (low, high) = ends(p);
        let (part, whole) = total(&self.blocks);
        let (own_low, own_high) = if whole > 0.0 {
            ends((part / whole).clamp(0.0, 1.0))
        } else {
            (low, high)
        };
        Some((low.min(own_low), high.max(own_high)))
    }

    fn variance(&self) -> f64 {
        let mut blocks = self.blocks.clone();
        let mut largest = 0.0;
        while blocks.len() >= ENOUGH {
            largest = ratio_variance(&blocks).max(largest);
            blocks = blocks.chunks_exact(2).map(total).collect();
        }
        largest
    }
}

fn total(blocks: &[(f64, f64)]) -> (f64, f64) {
    let sum = |(part, whole): (f64, f64), block: &(f64, f64)| (part + block.0, whole + block.1);
    blocks.iter().fold((0.0, 0.0), sum)
}

/// Returns the bounds of a GPU's idle share. `None` without readings.
pub(super) fn idle(pieces: &VecDeque<Piece>) -> Option<Bounds> {
    let blocks = Blocks::of_idle(pieces);
    let (idle, whole) = total(&blocks.blocks);
    let idle = Share::of(idle, whole)?;
    let (low, high) = blocks.bounds(idle.0, POLLS_A_SECOND * whole)?;
    Some(Bounds {
        low: Share(low).clamped(),
        high: Share(high).clamped(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::literals::wait;

    /// Returns consecutive cycles, each with a wait of the given length at its end.
    fn cycles(cycles: &[(f64, f64)]) -> VecDeque<Wait> {
        let mut now = 0.0;
        let cycle = |(waited, whole): &(f64, f64)| {
            now += whole;
            wait(now - waited, now, None)
        };
        cycles.iter().map(cycle).collect()
    }

    fn width(cycles_of: &[(f64, f64)], p: f64) -> f64 {
        let blocks = Blocks::of_waits(&cycles(cycles_of), 0.0);
        let (low, high) = blocks.bounds(p, 1000.0).unwrap();
        high - low
    }

    #[test]
    fn a_burst_is_one_block() {
        // Seven batches, as reported by a job: one was waited for, the others were ready.
        let burst = [[(1.3, 1.4)].as_slice(), &[(0.0, 0.1); 6]].concat();
        let bursts = burst.repeat(3);
        let blocks = Blocks::of_waits(&cycles(&bursts), 0.0);
        assert_eq!(blocks.blocks.len(), 2, "{blocks:?}");
        // Waits that are too short to be separated are one block, too.
        let short = Blocks::of_waits(&cycles(&[(0.01, 0.02); 61]), 0.0);
        assert!((7..=8).contains(&short.blocks.len()), "{short:?}");
    }

    #[test]
    fn a_wait_in_progress_at_the_start_does_not_count() {
        let mut of_start = vec![(5.0, 5.0)];
        of_start.extend([(0.01, 0.2); 20]);
        let blocks = Blocks::of_waits(&cycles(&of_start), 0.0);
        assert!((total(&blocks.blocks).0 - 0.2).abs() < 1e-9, "{blocks:?}");
        // All polls saw 60 % of waits, the blocks 5 %: the bounds include both.
        let (low, high) = blocks.bounds(0.6, 900.0).unwrap();
        assert!(low < 0.05 && high > 0.6, "{low} to {high}");
    }

    #[test]
    fn what_rises_and_falls_slowly_is_wide() {
        let (much, little) = ([(0.18, 0.2); 6], [(0.02, 0.2); 6]);
        let phases = [much, little, much, little].concat();
        let mixed = [[(0.18, 0.2), (0.02, 0.2)]; 12].concat();
        let (phases, mixed) = (width(&phases, 0.5), width(&mixed, 0.5));
        let steady = width(&[(0.1, 0.2); 24], 0.5);
        assert!(
            phases > 1.4 * mixed && mixed >= steady,
            "{phases}, {mixed}, {steady}"
        );
    }

    #[test]
    fn without_a_whole_block_nothing_is_known_but_of_all_or_nothing() {
        let blocks = Blocks::of_waits(&cycles(&[(1.0, 1.5)]), 0.0);
        assert_eq!(blocks.bounds(0.5, 200.0), None);
        let (low, high) = blocks.bounds(0.0, 200.0).unwrap();
        assert!(low <= 0.0 && high > 0.04 && high < 0.05, "{low} to {high}");
        // The waits cannot be separated, but their batches were counted.
        let merged = Blocks::of_waits(&cycles(&[(1.0, 1.5)]), 20.0);
        assert!(merged.bounds(0.5, 200.0).is_some());
    }

    #[test]
    fn waits_of_a_moment_are_nearly_none() {
        let blocks = Blocks::of_waits(&cycles(&[(0.000_013, 0.05); 60]), 0.0);
        let (low, high) = blocks.bounds(0.000_26, 300.0).unwrap();
        assert!(low < 0.001 && high < 0.05, "{low} to {high}");
    }

    #[test]
    fn a_gpu_is_known_by_its_pieces() {
        let pieces = |idle: &[f64]| -> VecDeque<Piece> {
            let ends = (0_u32..).map(|n| 0.2 * f64::from(n));
            let piece = |(from, idle): (f64, &f64)| Piece {
                from,
                to: from + 0.2,
                idle: *idle,
            };
            ends.zip(idle).map(piece).collect()
        };
        let full = idle(&pieces(&[0.02; 12])).unwrap();
        assert!(full.high.0 < 0.1, "{full:?}");
        let half = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0].repeat(2);
        let half = idle(&pieces(&half)).unwrap();
        assert!(half.low.0 < 0.2 && half.high.0 > 0.8, "{half:?}");
        assert_eq!(idle(&VecDeque::new()), None);
    }
}
