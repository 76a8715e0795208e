//! When each kind of call of the driver is made: at its own period, and at a longer one where it takes so
//! long that it would cost more than its part of the allowance. Counts the time spent.
//!
//! Knows no call; the driver's calls take locks that the watched job wants too, so their time is the cost
//! that matters.

use std::time::{Duration, Instant};

use crate::units::Moment;

/// Driver time in a second, in seconds, of all GPUs together.
const ALLOWANCE: f64 = 0.015;
/// However dear a call, a figure is not left to grow older than this, and no sample of the driver's history
/// is left to be lost.
const LONGEST: Duration = Duration::from_mins(2);
const LONGEST_HISTORY: Duration = Duration::from_secs(5);
/// What takes longer is a driver that hung, and says nothing of the call's cost.
const HUNG: Duration = Duration::from_secs(1);

/// What is asked together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Util,
    /// The driver keeps 10 s of utilisation samples, one each 140 ms or so.
    History,
    /// Performance counters: what passes between two polls, so each poll counts.
    Counters,
    /// Memory, power, temperature, clocks. Power is an average of 1 s, the others drift.
    Gauges,
    Traffic,
    Events,
    /// Listing processes walks the driver's clients: dearer than the rest.
    Processes,
    Instances,
    Health,
    /// The driver measures for 20 ms in each direction.
    Pcie,
}

impl Call {
    /// In the order in which those that are due are made: what tells of the time since the last poll first.
    pub(super) const ALL: [Self; 10] = [
        Self::Util,
        Self::History,
        Self::Counters,
        Self::Gauges,
        Self::Traffic,
        Self::Events,
        Self::Processes,
        Self::Instances,
        Self::Health,
        Self::Pcie,
    ];

    /// The shortest time from one to the next in milliseconds, and its part of the allowance in percent.
    const fn terms(self) -> (u64, u32) {
        match self {
            Self::Util => (100, 5),
            Self::History => (250, 25),
            Self::Counters => (200, 12),
            Self::Gauges => (500, 17),
            Self::Events => (500, 5),
            Self::Processes => (900, 12),
            Self::Traffic => (900, 5),
            Self::Instances => (900, 4),
            Self::Health => (5000, 5),
            Self::Pcie => (5000, 10),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// Since pipetop started.
    next: Duration,
    made: bool,
    /// Usual cost in seconds. `None` until it was made twice: the first call wakes up and fetches all that
    /// there is.
    cost: Option<f64>,
}

/// The pace of one GPU's calls.
#[derive(Debug)]
pub(super) struct Pace {
    /// Driver time in a second, in seconds, of this GPU.
    allowance: f64,
    turns: [Turn; Call::ALL.len()],
    spent: Duration,
}

impl Pace {
    /// `gpus` share the allowance.
    pub(super) fn new(gpus: u32) -> Self {
        Self {
            allowance: ALLOWANCE / f64::from(gpus.max(1)),
            turns: [Turn::default(); Call::ALL.len()],
            spent: Duration::ZERO,
        }
    }

    /// Time spent in calls so far.
    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    /// Every call is due; what each costs stays known.
    pub(super) fn anew(&mut self) {
        for turn in &mut self.turns {
            turn.next = Duration::ZERO;
        }
    }

    /// Makes the call where its time has come; `None` where it has not.
    pub(super) fn turn<T>(
        &mut self,
        call: Call,
        at: Moment,
        make: impl FnOnce() -> T,
    ) -> Option<T> {
        if at.since_start < self.turns[call as usize].next {
            return None;
        }
        let (made, took) = self.timed(make);
        let turn = &mut self.turns[call as usize];
        if took < HUNG && std::mem::replace(&mut turn.made, true) {
            let took = took.as_secs_f64();
            turn.cost = Some(turn.cost.map_or(took, |usual| f64::midpoint(usual, took)));
        }
        turn.next = at.since_start + period(call, turn.cost.unwrap_or(0.0), self.allowance);
        Some(made)
    }

    /// Makes calls whatever the time, and counts them.
    pub(super) fn timed<T>(&mut self, make: impl FnOnce() -> T) -> (T, Duration) {
        #[expect(
            clippy::disallowed_methods,
            reason = "on a GPU's own thread: what the driver costs is measured around its calls"
        )]
        let began = Instant::now();
        let made = make();
        let took = began.elapsed();
        self.spent += took;
        (made, took)
    }
}

fn period(call: Call, cost: f64, allowance: f64) -> Duration {
    let (shortest, percent) = call.terms();
    let afforded = cost / (f64::from(percent) / 100.0 * allowance);
    let afforded = Duration::try_from_secs_f64(afforded).unwrap_or(LONGEST);
    let longest = match call {
        Call::History => LONGEST_HISTORY,
        _ => LONGEST,
    };
    afforded.clamp(Duration::from_millis(shortest), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Call; 10] = Call::ALL;

    #[test]
    fn all_parts_together_are_the_allowance() {
        let percent: u32 = ALL.iter().map(|call| call.terms().1).sum();
        assert_eq!(percent, 100);
        for (place, call) in ALL.into_iter().enumerate() {
            assert_eq!(call as usize, place);
        }
    }

    #[test]
    fn whatever_calls_cost_they_stay_within_the_allowance() {
        for cost in [0.0, 1e-5, 1e-3, 0.02, 0.2] {
            for gpus in [1.0, 8.0, 16.0] {
                let each = ALLOWANCE / gpus;
                let capped =
                    |call: &Call| period(*call, cost, each) >= period(*call, f64::MAX, each);
                let afforded = ALL.iter().filter(|call| !capped(call));
                let spent: f64 = afforded
                    .map(|call| cost / period(*call, cost, each).as_secs_f64())
                    .sum();
                assert!(spent <= each * 1.000_001, "{cost} s, {gpus} GPUs: {spent}");
            }
        }
    }
}
