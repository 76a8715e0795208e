//! Detects a GPU that alternates between full load and rest: what users see as a utilisation of 100 %, 0 %, 100 %, 0 %.
//!
//! Uses only the pieces of the GPU's history, and the shortest newest stretch that shows it. Does not explain the
//! cause.

use std::collections::VecDeque;

use crate::model::gpu::Piece;
use crate::units::{Share, sorted};

/// Maximum idle share of a piece at full load, and minimum idle share of a piece at rest.
const FULL: f64 = 0.2;
const REST: f64 = 0.8;
/// Minimum share of the time at full load or at rest together, and at each of them. The other pieces contain some of
/// both.
const MIN_AT_BOTH_ENDS: f64 = 0.5;
const AT_EACH: f64 = 0.1;
/// Minimum number of rises: three whole periods, or two if that takes minutes.
const RISES: usize = 4;
const SLOW_RISES: usize = 3;
const MINUTE: f64 = 60.0;
/// Maximum interquartile range of regular periods, relative to their median.
const REGULAR: f64 = 0.35;
/// Shortest stretch that is examined, in seconds.
const SHORTEST: f64 = 15.0;
/// The oscillation is over if the last rise was more than this many of its longest periods ago.
const OVER: f64 = 2.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Oscillation {
    /// Mean time from one rise to the next, in seconds.
    pub period: f64,
    /// The periods are similar.
    pub regular: bool,
    /// Share of the time at rest.
    pub resting: Share,
    /// Length of the stretch that shows it, up to now, in seconds.
    pub seconds: f64,
}

/// Returns the oscillation; `None` if there is none or too few rises: the period can be at most half of what is kept.
pub(crate) fn oscillation(pieces: &VecDeque<Piece>) -> Option<Oscillation> {
    let (first, end) = (pieces.front()?.from, pieces.back()?.to);
    let mut length = SHORTEST;
    loop {
        let start = pieces.partition_point(|piece| piece.from < end - length);
        let rises = if length < MINUTE { RISES } else { SLOW_RISES };
        if let Some(found) = within(pieces.range(start..), rises) {
            return Some(found);
        }
        if end - length <= first {
            return None;
        }
        length *= 2.0;
    }
}

fn within<'a>(pieces: impl Iterator<Item = &'a Piece>, enough: usize) -> Option<Oscillation> {
    let (mut full, mut resting, mut seconds) = (0.0, 0.0, 0.0);
    let mut rises = Vec::new();
    let mut rested = false;
    let mut end = f64::NEG_INFINITY;
    let mut begin = None;
    for piece in pieces {
        let length = piece.to - piece.from;
        begin.get_or_insert(piece.from);
        seconds += length;
        // A gap may have hidden a rise.
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
    let at_the_ends = share(full + resting) >= MIN_AT_BOTH_ENDS;
    let at_each = share(full) >= AT_EACH && share(resting) >= AT_EACH;
    let (first, last) = (*rises.first()?, *rises.last()?);
    if rises.len() < enough || !at_the_ends || !at_each {
        return None;
    }
    let period = (last - first) / (rises.len() - 1) as f64;
    let periods = sorted(rises.windows(2).map(|pair| pair[1] - pair[0]));
    let at = |quarters: usize| periods[(periods.len() - 1) * quarters / 4];
    (end - last <= OVER * at(4)).then(|| Oscillation {
        period,
        regular: at(3) - at(1) <= REGULAR * at(2),
        resting: Share(share(resting)).clamped(),
        seconds: end - begin.unwrap_or(end),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns thirteen seconds in pieces of `step`, at full load for the first part of each period.
    fn wave(step: f64, period: impl Fn(usize) -> f64, load: f64) -> VecDeque<Piece> {
        long_wave(13.0, step, period, load)
    }

    fn long_wave(
        seconds: f64,
        step: f64,
        period: impl Fn(usize) -> f64,
        load: f64,
    ) -> VecDeque<Piece> {
        let mut edges = vec![0.0];
        let mut n = 0;
        while edges[n] < seconds {
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
        let pieces = pieces.take_while(|(_, to)| *to <= seconds);
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
            let swing = oscillation(&wave(step, |_| period, load)).expect("it swings");
            assert!((swing.period - period).abs() < 0.1, "{swing:?}");
            assert!(swing.regular);
            assert!((swing.resting.0 - (1.0 - load)).abs() < 0.15, "{swing:?}");
        }
    }

    #[test]
    fn a_slow_oscillation_is_found_in_the_whole_history() {
        for period in [10.0, 60.0, 170.0] {
            // The length of 4096 pieces of 140 ms.
            let swing = oscillation(&long_wave(573.0, 0.14, |_| period, 0.5)).expect("it swings");
            assert!((swing.period - period).abs() < 0.2, "{swing:?}");
            assert!(swing.regular, "{swing:?}");
            assert!(swing.seconds >= 2.0 * period, "{swing:?}");
        }
        assert_eq!(oscillation(&long_wave(573.0, 0.14, |_| 230.0, 0.5)), None);
    }

    #[test]
    fn newest_oscillation_counts_and_ended_one_is_dropped() {
        let slow_then_fast = |n| if n < 6 { 40.0 } else { 2.0 };
        let swing_now =
            oscillation(&long_wave(300.0, 0.14, slow_then_fast, 0.5)).expect("it swings");
        assert!((swing_now.period - 2.0).abs() < 0.1, "{swing_now:?}");
        assert!(swing_now.seconds <= SHORTEST + 0.2, "{swing_now:?}");
        for steady in [0.0, 1.0] {
            let mut ended = long_wave(60.0, 0.14, |_| 2.0, 0.5);
            for piece in &mut ended {
                if piece.from > 50.0 {
                    piece.idle = steady;
                }
            }
            assert_eq!(oscillation(&ended), None, "at {steady} since 10 s");
        }
    }

    #[test]
    fn irregular_oscillation_is_reported() {
        let uneven = [0.6, 2.9, 0.9, 2.4, 0.7];
        let swing = oscillation(&wave(0.1, |n| uneven[n % 5], 0.5)).expect("it swings");
        assert!(!swing.regular, "{swing:?}");
        assert!((swing.period - 1.5).abs() < 0.4, "{swing:?}");
    }

    #[test]
    fn a_steady_signal_has_no_period() {
        // Steady in the middle and at either end, too fast to be seen, and too few rises.
        let steady = |idle: f64| -> VecDeque<Piece> {
            let pieces = wave(0.14, |_| 1.0, 1.0).into_iter();
            pieces.map(|piece| Piece { idle, ..piece }).collect()
        };
        for idle in [0.0, 0.5, 1.0] {
            assert_eq!(oscillation(&steady(idle)), None);
        }
        assert_eq!(oscillation(&wave(0.14, |_| 0.1, 0.5)), None);
        assert_eq!(oscillation(&wave(0.14, |_| 5.0, 0.5)), None);
        assert_eq!(oscillation(&VecDeque::new()), None);
    }
}
