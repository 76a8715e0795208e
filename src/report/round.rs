//! Rounds figures to their significant decimals.
//!
//! Each field passes the number of decimals that it keeps. A value that is not finite is unknown.

use crate::units::{BytesPerSecond, Share};

pub(super) fn round(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}

pub(super) fn number(value: Option<f64>, decimals: i32) -> Option<f64> {
    value
        .map(|value| round(value, decimals))
        .filter(|value| value.is_finite())
}

/// Rounds to four decimals.
pub(super) fn share(share: Share) -> Share {
    Share(round(share.0, 4))
}

/// Returns a share in percent, to one decimal.
pub(super) fn percent(share: Option<Share>) -> Option<f64> {
    number(share.map(Share::percent), 1)
}

/// Returns whole bytes per second.
pub(super) fn bytes_per_s(rate: Option<BytesPerSecond>) -> Option<u64> {
    whole(rate.map(|rate| rate.0))
}

/// Rounds to a whole number. `None` also for negative values: no whole figure in the report can be negative.
pub(super) fn whole(value: Option<f64>) -> Option<u64> {
    value
        .map(f64::round)
        .filter(|value| value.is_finite() && *value >= 0.0)
        .map(|value| crate::units::whole(value) as u64)
}
