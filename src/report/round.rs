//! Figures with as many decimals as mean something.
//!
//! Knows no key: each field says how many decimals it keeps. What is not finite is unknown.

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

/// To four decimals.
pub(super) fn share(share: Share) -> Share {
    Share(round(share.0, 4))
}

/// A share in percent, to one decimal.
pub(super) fn percent(share: Option<Share>) -> Option<f64> {
    number(share.map(Share::percent), 1)
}

/// Whole bytes a second.
pub(super) fn bytes_per_s(rate: Option<BytesPerSecond>) -> Option<u64> {
    whole(rate.map(|rate| rate.0))
}

/// `None` also for what is negative: nothing that is counted in whole numbers here can be.
pub(super) fn whole(value: Option<f64>) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and not negative; beyond the largest number it stays the largest"
    )]
    value
        .map(f64::round)
        .filter(|value| value.is_finite() && *value >= 0.0)
        .map(|value| value as u64)
}
