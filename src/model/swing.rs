//! A GPU that runs at full load, falls to rest and comes back, again and again: what users see as a
//! utilisation of 100 %, 0 %, 100 %, 0 %.
//!
//! Pure arithmetic on the pieces of its history; does not say why.

use std::collections::VecDeque;

use crate::model::gpu::Piece;
use crate::units::Share;

/// Idle share of a piece up to which the GPU is at full load, and from which on it rests.
const FULL: f64 = 0.2;
const REST: f64 = 0.8;
/// Share of the time that must be spent at either end, and least share at each of them. The rest are pieces
/// that hold a part of both.
const AT_THE_ENDS: f64 = 0.5;
const AT_EACH: f64 = 0.1;
/// Times that it must have come back: three whole periods.
const RISES: usize = 4;
/// Distance of the quarters of the periods, over their middle, up to which they count as one period.
const REGULAR: f64 = 0.35;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Swing {
    /// Mean time from one rise to the next, in seconds.
    pub period: f64,
    /// The periods are much alike.
    pub regular: bool,
    /// Share of the time at rest.
    pub resting: Share,
}

/// `None` where it does not swing, or not as often as would tell.
pub(crate) fn swing(pieces: &VecDeque<Piece>) -> Option<Swing> {
    let (mut full, mut resting, mut seconds) = (0.0, 0.0, 0.0);
    let mut rises = Vec::new();
    let mut rested = false;
    let mut end = f64::NEG_INFINITY;
    for piece in pieces {
        let length = piece.to - piece.from;
        seconds += length;
        // What was missed may have held a rise.
        if piece.from > end + length {
            rested = false;
        }
        end = piece.to;
        if piece.idle >= REST {
            resting += length;
            rested = true;
        } else if piece.idle <= FULL {
            full += length;
            if std::mem::take(&mut rested) {
                rises.push(piece.from);
            }
        }
    }
    let share = |part: f64| part / seconds;
    let at_the_ends = share(full + resting) >= AT_THE_ENDS;
    let at_each = share(full) >= AT_EACH && share(resting) >= AT_EACH;
    let (first, last) = (*rises.first()?, *rises.last()?);
    if rises.len() < RISES || !at_the_ends || !at_each {
        return None;
    }
    let mut periods: Vec<f64> = rises.windows(2).map(|pair| pair[1] - pair[0]).collect();
    periods.sort_by(f64::total_cmp);
    let at = |quarters: usize| periods[(periods.len() - 1) * quarters / 4];
    Some(Swing {
        period: (last - first) / (rises.len() - 1) as f64,
        regular: at(3) - at(1) <= REGULAR * at(2),
        resting: Share(share(resting)).clamped(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirteen seconds in pieces of `step`: at full load for the first part of each period.
    fn wave(step: f64, period: impl Fn(usize) -> f64, load: f64) -> VecDeque<Piece> {
        let mut edges = vec![0.0];
        let mut n = 0;
        while edges[n] < 13.0 {
            edges.push(edges[n] + period(n));
            n += 1;
        }
        let idle_until = |at: f64| -> f64 {
            let whole = |pair: &[f64]| {
                let rest = pair[0] + load * (pair[1] - pair[0]);
                (at.min(pair[1]) - rest).max(0.0)
            };
            edges.windows(2).map(whole).sum()
        };
        let pieces = (0..u32::MAX).map(|n| (f64::from(n) * step, f64::from(n + 1) * step));
        let pieces = pieces.take_while(|(_, to)| *to <= 13.0);
        let piece = |(from, to): (f64, f64)| Piece {
            from,
            to,
            idle: (idle_until(to) - idle_until(from)) / step,
        };
        pieces.map(piece).collect()
    }

    #[test]
    fn a_square_wave_has_its_period() {
        for (period, load, step) in [(2.0, 0.5, 0.14), (1.0, 0.4, 0.14), (3.0, 0.8, 0.25)] {
            let swing = swing(&wave(step, |_| period, load)).expect("it swings");
            assert!((swing.period - period).abs() < 0.1, "{swing:?}");
            assert!(swing.regular);
            assert!((swing.resting.0 - (1.0 - load)).abs() < 0.15, "{swing:?}");
        }
    }

    #[test]
    fn an_uneven_one_says_so() {
        let uneven = [0.6, 2.9, 0.9, 2.4, 0.7];
        let swing = swing(&wave(0.1, |n| uneven[n % 5], 0.5)).expect("it swings");
        assert!(!swing.regular, "{swing:?}");
        assert!((swing.period - 1.5).abs() < 0.4, "{swing:?}");
    }

    #[test]
    fn what_does_not_swing_has_no_period() {
        // Steady in the middle, at either end, too fast to be seen, and too few times.
        let steady = |idle: f64| -> VecDeque<Piece> {
            let pieces = wave(0.14, |_| 1.0, 1.0).into_iter();
            pieces.map(|piece| Piece { idle, ..piece }).collect()
        };
        for idle in [0.0, 0.5, 1.0] {
            assert_eq!(swing(&steady(idle)), None);
        }
        assert_eq!(swing(&wave(0.14, |_| 0.1, 0.5)), None);
        assert_eq!(swing(&wave(0.14, |_| 5.0, 0.5)), None);
        assert_eq!(swing(&VecDeque::new()), None);
    }
}
