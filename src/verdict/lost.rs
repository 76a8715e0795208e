//! What one rank loses to data: its wait share and the part of it that is lost, if its waits can be seen.
//!
//! A verdict is on one rank; this can be computed for every rank.

use super::Interval;
use super::classify::stall;
use super::context::Context;
use super::waits::Waits;
use crate::model::Progress;
use crate::model::rates::{RankRates, Rates};
use crate::units::Share;

/// What one rank loses in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lost {
    /// Share of wall time that the main thread was blocked in the loader.
    pub wait: Share,
    /// Share of wall time lost to data.
    pub stall: Interval,
}

impl Lost {
    /// Returns `None` if nothing shows that the rank's waits would have been seen.
    pub fn of(rates: &Rates, rank: &RankRates, progress: &Progress) -> Option<Self> {
        let context = Context::new(rates, rates.job.as_ref()?, rank);
        let waits = Waits::of(&context, progress)?;
        Some(Self {
            wait: waits.estimate().share,
            stall: stall(&context, waits),
        })
    }
}
