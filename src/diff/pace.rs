//! The rate of batches, and its confidence interval.
//!
//! Works on counts of batches in slices of time. The formula:
//!
//! - The rate is all batches over all seconds, `r`. The excess of a slice of `t` seconds with `n` batches is
//!   `e = n - r t`.
//! - Slices are not independent. If batches come regularly, the excess of one slice is missing in the next, and slow
//!   times last for several slices. So the variance of the sum is `S = g(0) + 2 sum (1 - l / (L + 1)) g(l)` over the
//!   lags `l` up to `L`, an eighth of the slices, where `g(l)` is the sum of `e(i) e(i - l)` (Newey and West 1987).
//! - The first and the last slice cut a batch at any point, so `S` is at least 1/6.
//! - The interval is `r +- 2.18 sqrt(S) / seconds`: Student's at 95 % with 12 degrees of freedom, which this number of
//!   lags leaves.
//! - A ratio of two rates has the relative variances of both, on a logarithmic scale.

use serde::Serialize;

/// Quantile of Student's distribution with 12 degrees of freedom, two-sided 95 %.
const T: f64 = 2.18;
/// Number of slices per lag.
const SLICES_PER_LAG: usize = 8;
/// Minimum numbers for an interval: with fewer, it cannot be seen by how much a rate varies.
pub(super) const SLICES_ENOUGH: usize = 16;
pub(super) const BATCHES_ENOUGH: f64 = 10.0;
pub(super) const SECONDS_ENOUGH: f64 = 10.0;
/// Minimum variance in batches squared: that of two ends that cut a batch at any point.
const ENDS: f64 = 1.0 / 6.0;

/// Batches per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Pace {
    pub batches_per_s: f64,
    /// Its 95 % interval. `None` if it is not known by how much the rate varies.
    pub interval: Option<[f64; 2]>,
}

impl Pace {
    pub(super) fn of_unknown_spread(batches_per_s: f64) -> Self {
        Self {
            batches_per_s,
            interval: None,
        }
    }

    /// Returns the 95 % interval of the ratio of this rate and `before`.
    pub(super) fn over(self, before: Self) -> Option<[f64; 2]> {
        let relative = |pace: Self| {
            let [low, high] = pace.interval?;
            Some((high - low) / 2.0 / pace.batches_per_s)
        };
        let off = relative(self)?.hypot(relative(before)?);
        let ratio = self.batches_per_s / before.batches_per_s;
        Some([ratio * (-off).exp(), ratio * off.exp()])
    }
}

/// Batches in consecutive slices of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct BatchSlices {
    slices: Vec<(f64, f64)>,
}

impl BatchSlices {
    /// Adds the next slice. Slices before the first batch are the start of the job, and are left out.
    pub(crate) fn push(&mut self, seconds: f64, batches: u64) {
        if seconds > 0.0 && (batches > 0 || !self.slices.is_empty()) {
            self.slices.push((seconds, batches as f64));
        }
    }

    /// Returns the rate; `None` if no batch was counted.
    pub(crate) fn pace(&self) -> Option<Pace> {
        // The first slice includes the time before its first batch.
        let slices = self.slices.get(1..)?;
        let seconds: f64 = slices.iter().map(|(seconds, _)| seconds).sum();
        let batches: f64 = slices.iter().map(|(_, batches)| batches).sum();
        if batches <= 0.0 {
            return None;
        }
        let rate = batches / seconds;
        let enough =
            slices.len() >= SLICES_ENOUGH && batches >= BATCHES_ENOUGH && seconds >= SECONDS_ENOUGH;
        let interval = enough.then(|| {
            let off = T * variance(slices, rate).sqrt() / seconds;
            [(rate - off).max(0.0), rate + off]
        });
        Some(Pace {
            batches_per_s: rate,
            interval,
        })
    }
}

/// Returns the variance of the sum of all batches.
fn variance(slices: &[(f64, f64)], rate: f64) -> f64 {
    let off: Vec<f64> = slices
        .iter()
        .map(|(seconds, batches)| batches - rate * seconds)
        .collect();
    let lags = slices.len() / SLICES_PER_LAG;
    let products = |lag: usize| -> f64 {
        let pairs = off.iter().zip(&off[lag..]);
        pairs.map(|(before, after)| before * after).sum()
    };
    let weighted = |lag: usize| (1.0 - lag as f64 / (lags + 1) as f64) * products(lag);
    let sum = products(0) + 2.0 * (1..=lags).map(weighted).sum::<f64>();
    sum.max(ENDS)
}
