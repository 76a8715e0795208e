//! How far a share may be off that is looked at again and again until it is clear: the interval that an early
//! verdict rests on.
//!
//! Knows stretches of time and what part of each counts. The rule:
//!
//! - Whoever looks until an answer is clear finds a wrong one more often than whoever looks once. A constant boundary
//!   allows for that (Pocock, Biometrika 64, 1977): at every poll `z` = 3 instead of 1.96. However often one polls while
//!   the observed time grows fivefold (from 2 s to 10 s), a Brownian motion leaves the boundary with a probability of
//!   about `f(z) (z - 1/z) ln 5 + 4 f(z)/z` = 2.5 %, `f` = the normal density (Siegmund, Sequential Analysis, 1985). So
//!   the interval holds at all polls together at 97.5 %.
//! - Batches of one burst say the same thing. A block of time ends with a wait that can be noticed, and is no shorter
//!   than polls can tell: workers in step make one burst, and one block, of a batch each. The variance of the share is that
//!   of batch means, taken over single blocks, over pairs of them, over fours, ... down to five blocks, and the largest of
//!   these: where the share rises and falls over several blocks, the long ones vary as much as the short ones.
//! - A few blocks may be alike by chance: the variance is at least `p^2 (1-p)^2 / k` of `k` blocks, that of blocks whose
//!   lengths vary by `cv^2` = 1/2.
//! - The first block begins with the end of the first wait, so a wait that was under way before, as that for a first
//!   batch, is not in the blocks. Their share and that of all polls may differ: the interval covers those of both.
//!
//! No interval sees a rhythm that is longer than the time observed. What is known of the queue and of the workers has
//! to say that there is a reserve; that is the judge's.

use std::collections::VecDeque;

use crate::model::gpu::Piece;
use crate::model::periodicity::NOTICEABLE;
use crate::model::rates::ratio::{ENOUGH, ratio_variance, wilson};
use crate::sample::Wait;
use crate::units::Share;

/// Of the normal distribution, at every poll.
const Z: f64 = 3.0;
/// Seconds of the shortest block.
const SHORTEST: f64 = 0.15;
/// Readings of a GPU tell of all the time between them: as if it had been looked at so often a second.
const LOOKS_AT_GPU: f64 = 100.0;

/// Ends between which a share lies at 97.5 %, however often one polls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub low: Share,
    pub high: Share,
}

/// Stretches of time one after the other: the part that counts, and the whole, in seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    blocks: Vec<(f64, f64)>,
    /// Known to be so many at least, where they cannot be told apart.
    least: f64,
}

impl Blocks {
    /// Of waits, oldest first. `least` where they follow each other too fast to be seen one by one.
    pub(super) fn of_waits(waits: &VecDeque<Wait>, least: f64) -> Self {
        let mut blocks = Vec::new();
        let mut ends = waits.iter().map(|wait| wait.to.as_secs_f64());
        let (mut begun, mut waited) = (ends.next(), 0.0);
        for wait in waits.iter().skip(1) {
            let (from, to) = (wait.from.as_secs_f64(), wait.to.as_secs_f64());
            waited += to - from;
            if let Some(start) = begun
                && to - start >= SHORTEST
                && to - from >= NOTICEABLE
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

    /// The ends for a share `p` that so many polls found. `None` where it varies and nothing shows how much.
    pub(super) fn bounds(&self, p: f64, polls: f64) -> Option<(f64, f64)> {
        let count = self.least.max(self.blocks.len() as f64);
        let variance = self.variance();
        let ends = |p: f64| {
            let spread = p * (1.0 - p);
            let variance = (spread * spread / count).max(variance);
            // Blocks that do not differ say no more than all polls.
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

/// The ends of a GPU's idle share. `None` without readings.
pub(super) fn idle(pieces: &VecDeque<Piece>) -> Option<Bounds> {
    let blocks = Blocks::of_idle(pieces);
    let (idle, whole) = total(&blocks.blocks);
    let idle = Share::of(idle, whole)?;
    let (low, high) = blocks.bounds(idle.0, LOOKS_AT_GPU * whole)?;
    Some(Bounds {
        low: Share(low).clamped(),
        high: Share(high).clamped(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::literals::wait;

    /// A wait of each length at the end of each cycle, one after the other.
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
        // Seven batches: one was waited for, the others were there, as a job that reports its steps says.
        let burst = [[(1.3, 1.4)].as_slice(), &[(0.0, 0.1); 6]].concat();
        let bursts = burst.repeat(3);
        let blocks = Blocks::of_waits(&cycles(&bursts), 0.0);
        assert_eq!(blocks.blocks.len(), 2, "{blocks:?}");
        // Stays that are too short to be told apart are one block, too.
        let short = Blocks::of_waits(&cycles(&[(0.01, 0.02); 61]), 0.0);
        assert!((7..=8).contains(&short.blocks.len()), "{short:?}");
    }

    #[test]
    fn the_wait_under_way_at_the_beginning_does_not_count() {
        let mut of_start = vec![(5.0, 5.0)];
        of_start.extend([(0.01, 0.2); 20]);
        let blocks = Blocks::of_waits(&cycles(&of_start), 0.0);
        assert!((total(&blocks.blocks).0 - 0.2).abs() < 1e-9, "{blocks:?}");
        // All polls saw 60 % of waiting, the blocks 5 %: it may be either.
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
        // Batches were counted where waits run into each other.
        let merged = Blocks::of_waits(&cycles(&[(1.0, 1.5)]), 20.0);
        assert!(merged.bounds(0.5, 200.0).is_some());
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
