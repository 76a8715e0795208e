//! When each kind of driver call is made: at its own period, or at a longer one if it takes so long that it would
//! exceed its part of the allowance. Counts the time spent.
//!
//! Does not depend on the calls themselves. The driver's calls take locks that the watched job needs too, so their time
//! is the cost that matters.

use std::time::{Duration, Instant};

use crate::units::Moment;

/// Driver time per second, in seconds, of all GPUs together.
const ALLOWANCE: f64 = 0.015;
/// Longest period, even of an expensive call, so that no figure gets older than this. The history has a shorter one, so
/// that no sample of the driver is lost.
const MAX_PERIOD: Duration = Duration::from_mins(2);
const MAX_HISTORY_PERIOD: Duration = Duration::from_secs(5);
/// A call that takes longer hung in the driver; its time is not counted as the call's cost.
const HUNG: Duration = Duration::from_secs(1);

/// A group of driver calls that are made together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallGroup {
    Util,
    /// The driver keeps at least 10 s of utilisation samples, one each 140 to 200 ms. Each call reads them all: 1.4 to 2 ms
    /// on an H200.
    History,
    /// Performance counters: means between two polls, so every poll counts. 1.3 to 1.6 ms on an H200.
    Counters,
    /// Memory, power, temperature, clocks: microseconds. Power is an average of 1 s; the others change slowly.
    Gauges,
    Traffic,
    Events,
    /// Listing processes walks the driver's clients: more expensive than the other calls.
    Processes,
    Instances,
    Health,
    /// Blocks while the driver measures, for 20 ms in each direction.
    Pcie,
    /// The slowest of the usual calls: 2.4 to 4 ms on an H200, at times 24 ms.
    Energy,
}

impl CallGroup {
    /// In the order in which due calls are made: those that cover the time since the last poll come first.
    pub(super) const ALL: [Self; 11] = [
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
        Self::Energy,
    ];

    /// Returns the shortest period in milliseconds, and the part of the allowance in percent.
    const fn terms(self) -> (u64, u32) {
        match self {
            Self::Util => (100, 5),
            Self::History => (250, 25),
            Self::Counters => (200, 12),
            Self::Gauges => (500, 10),
            Self::Events => (500, 5),
            Self::Processes => (900, 12),
            Self::Traffic => (900, 5),
            Self::Instances => (900, 4),
            Self::Health => (5000, 5),
            Self::Pcie => (5000, 10),
            Self::Energy => (5000, 7),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// When the next call is due, as time since pipetop started.
    next: Duration,
    made: bool,
    /// Usual cost in seconds. `None` until the second call: the first one wakes the GPU up and reads the whole history.
    cost: Option<f64>,
}

/// Schedules the calls of one GPU.
#[derive(Debug)]
pub(super) struct CallSchedule {
    /// Driver time per second, in seconds, of this GPU.
    allowance: f64,
    turns: [Turn; CallGroup::ALL.len()],
    spent: Duration,
}

impl CallSchedule {
    /// Creates the schedule of one of `gpus` GPUs, which share the allowance.
    pub(super) fn new(gpus: u32) -> Self {
        Self {
            allowance: ALLOWANCE / f64::from(gpus.max(1)),
            turns: [Turn::default(); CallGroup::ALL.len()],
            spent: Duration::ZERO,
        }
    }

    /// Returns the time spent in calls so far.
    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    /// Makes every call due; keeps the known costs.
    pub(super) fn make_all_due(&mut self) {
        for turn in &mut self.turns {
            turn.next = Duration::ZERO;
        }
    }

    pub(super) fn is_due(&self, call: CallGroup, at: Moment) -> bool {
        at.since_start >= self.turns[call as usize].next
    }

    /// Makes the call if it is due; returns `None` otherwise.
    pub(super) fn run_if_due<T>(
        &mut self,
        call: CallGroup,
        at: Moment,
        make: impl FnOnce() -> T,
    ) -> Option<T> {
        if !self.is_due(call, at) {
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

    /// Makes calls without regard to periods, and counts their time.
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

fn period(call: CallGroup, cost: f64, allowance: f64) -> Duration {
    let (shortest, percent) = call.terms();
    let afforded = cost / (f64::from(percent) / 100.0 * allowance);
    let afforded = Duration::try_from_secs_f64(afforded).unwrap_or(MAX_PERIOD);
    let longest = match call {
        CallGroup::History => MAX_HISTORY_PERIOD,
        _ => MAX_PERIOD,
    };
    afforded.clamp(Duration::from_millis(shortest), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [CallGroup; 11] = CallGroup::ALL;

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
                    |call: &CallGroup| period(*call, cost, each) >= period(*call, f64::MAX, each);
                let afforded = ALL.iter().filter(|call| !capped(call));
                let spent: f64 = afforded
                    .map(|call| cost / period(*call, cost, each).as_secs_f64())
                    .sum();
                assert!(spent <= each * 1.000_001, "{cost} s, {gpus} GPUs: {spent}");
            }
        }
    }
}
