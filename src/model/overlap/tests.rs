use super::*;
use crate::model::literals::wait;

/// Resolution of a trace, in steps per second.
const FINE: f64 = 500.0;

/// A scripted trace: what is true at each moment.
struct Trace {
    seconds: f64,
    waits: fn(f64) -> bool,
    idle: fn(f64) -> bool,
}

/// Returns the share of the time between `from` and `to` in which `test` holds.
fn share(test: impl Fn(f64) -> bool, from: f64, to: f64) -> f64 {
    let steps = ((to - from) * FINE).round();
    let times = (0..u32::MAX).take_while(|n| f64::from(*n) < steps);
    let hits = times.filter(|n| test(from + (f64::from(*n) + 0.5) / FINE));
    hits.count() as f64 / steps
}

impl Trace {
    fn waits(&self) -> VecDeque<Wait> {
        let mut found = VecDeque::new();
        let mut began = None;
        let steps = self.seconds * FINE;
        for n in (0..u32::MAX).take_while(|n| f64::from(*n) <= steps) {
            let at = f64::from(n) / FINE;
            match ((self.waits)(at + 0.5 / FINE), began) {
                (true, None) => began = Some(at),
                (false, Some(from)) => {
                    found.push_back(wait(from, at, None));
                    began = None;
                }
                _ => {}
            }
        }
        found
    }

    /// Returns what a driver with this poll period would report.
    fn pieces(&self, step: f64) -> VecDeque<Piece> {
        let pieces = (0..u32::MAX).map(|n| (f64::from(n) * step, f64::from(n + 1) * step));
        let pieces = pieces.take_while(|(_, to)| *to <= self.seconds);
        let piece = |(from, to)| Piece {
            from,
            to,
            idle: share(self.idle, from, to),
        };
        pieces.map(piece).collect()
    }

    /// Returns the overlap found with that step, and the truth over the same time.
    fn compare(&self, step: f64) -> (Overlap, f64) {
        let (waits, pieces) = (self.waits(), self.pieces(step));
        let found = overlap(0, &waits, &pieces).expect("enough in common");
        let (from, to) = axis(&waits, &pieces).expect("an axis");
        let inside = |piece: &&Piece| piece.from >= from && piece.to <= to;
        let begin = pieces.iter().find(inside).expect("a piece").from;
        let end = pieces.iter().rfind(inside).expect("a piece").to;
        let truth = share(|at| (self.waits)(at) && (self.idle)(at), begin, end);
        (found, truth)
    }
}

fn phase(at: f64, period: f64) -> f64 {
    (at / period).fract() * period
}

#[test]
fn the_interval_holds_the_truth_also_where_sampling_is_coarse() {
    let traces: [Trace; 4] = [
        // The GPU is idle exactly during the waits.
        Trace {
            seconds: 20.0,
            waits: |at| phase(at, 2.0) < 0.8,
            idle: |at| phase(at, 2.0) < 0.8,
        },
        // Queued work hides the first half of each wait.
        Trace {
            seconds: 20.0,
            waits: |at| phase(at, 1.0) < 0.6,
            idle: |at| (0.3..0.6).contains(&phase(at, 1.0)),
        },
        // The GPU is idle for the same share, but never during a wait.
        Trace {
            seconds: 20.0,
            waits: |at| phase(at, 2.0) < 0.8,
            idle: |at| phase(at, 2.0) > 1.2,
        },
        // Short stalls, far shorter than the driver's period.
        Trace {
            seconds: 20.0,
            waits: |at| phase(at, 0.1) < 0.04,
            idle: |at| phase(at, 0.1) < 0.05,
        },
    ];
    for (number, trace) in traces.iter().enumerate() {
        for step in [0.02, 0.14, 0.5, 1.0] {
            let (found, truth) = trace.compare(step);
            assert!(
                found.low.0 <= truth + 1e-3 && truth - 1e-3 <= found.high.0,
                "trace {number}, {step} s: {truth} is not in {found:?}"
            );
        }
    }
}

#[test]
fn finer_pieces_make_it_narrower() {
    let trace = Trace {
        seconds: 20.0,
        waits: |at| phase(at, 2.3) < 0.8,
        idle: |at| phase(at, 2.3) > 1.5,
    };
    let width = |step| {
        let (found, _) = trace.compare(step);
        found.high.0 - found.low.0
    };
    assert!(width(0.14) < 0.1, "{}", width(0.14));
    assert!(width(0.14) < width(1.0), "{}", width(1.0));
    // From the two shares of the whole time alone, anything from 0 to 0.35 would be possible.
    let (found, truth) = trace.compare(0.14);
    assert!(truth < 1e-6 && found.high.0 < 0.1, "{found:?}");
}

#[test]
fn correlation_separates_related_from_unrelated() {
    let correlation = |idle: fn(f64) -> bool| {
        let trace = Trace {
            seconds: 20.0,
            waits: |at| phase(at, 2.0) < 0.8,
            idle,
        };
        trace.compare(0.14).0.correlation
    };
    assert!(correlation(|at| phase(at, 2.0) < 0.8).is_some_and(|with| with > 0.9));
    assert!(correlation(|at| phase(at, 2.0) > 1.2).is_some_and(|with| with < -0.5));
    assert_eq!(correlation(|_| false), None, "a GPU that never rests");
    let unrelated = correlation(|at| phase(at, 1.37) < 0.5).expect("both vary");
    assert!(unrelated.abs() < 0.3, "{unrelated}");
}

#[test]
fn no_common_time_gives_no_result() {
    let pieces = |from: f64| -> VecDeque<Piece> {
        let piece = |n: i32| Piece {
            from: from + f64::from(n),
            to: from + f64::from(n + 1),
            idle: 0.5,
        };
        (0..10).map(piece).collect()
    };
    let waits = VecDeque::from([wait(1.0, 2.0, None), wait(8.0, 9.0, None)]);
    assert!(overlap(0, &waits, &pieces(0.0)).is_some());
    assert_eq!(overlap(0, &waits, &pieces(50.0)), None);
    assert_eq!(overlap(0, &waits, &VecDeque::new()), None);
    let one = VecDeque::from([wait(1.0, 2.0, None)]);
    assert_eq!(
        overlap(0, &one, &pieces(0.0)),
        None,
        "where a step ends is not known"
    );
    let none = overlap(0, &VecDeque::new(), &pieces(0.0)).expect("no waits are an answer");
    assert_eq!((none.wait, none.high), (Share::ZERO, Share::ZERO));
}
