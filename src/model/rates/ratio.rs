//! A ratio of two sums, such as the waits over all the time: its variance, and the confidence interval of a share.
//!
//! Does not depend on what the sums are of.

/// Minimum number of pairs of a part and a whole for estimating their variance.
pub(super) const ENOUGH: usize = 5;

/// Returns the variance of `sum of parts / sum of wholes`, estimated from the pairs themselves.
pub(super) fn ratio_variance(pairs: &[(f64, f64)]) -> f64 {
    let k = pairs.len() as f64;
    let whole: f64 = pairs.iter().map(|(_, whole)| whole).sum();
    if whole <= 0.0 {
        return 1.0;
    }
    let ratio = pairs.iter().map(|(part, _)| part).sum::<f64>() / whole;
    let apart: f64 = pairs
        .iter()
        .map(|(part, whole)| (part - ratio * whole).powi(2))
        .sum();
    let mean = whole / k;
    (1.0 + 4.0 / k) * apart / (k * (k - 1.0) * mean * mean)
}

/// Returns the interval of a share found by `n` independent polls, `z` standard deviations to each side.
pub(super) fn wilson(p: f64, n: f64, z: f64) -> (f64, f64) {
    let z2 = z * z;
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    (centre - half, centre + half)
}
