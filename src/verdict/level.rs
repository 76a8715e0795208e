//! Levels of lost time: the thresholds that every judgement uses.

use super::Level;
use crate::units::Share;

/// Minimum shares of lost time for a slight, a moderate and a high level. The published rules cluster on 5 % and 20 %
/// of the step time (`XProf`, PyTorch Profiler, `TraceML`).
pub(super) const SLIGHT: f64 = 0.05;
pub(super) const MODERATE: f64 = 0.10;
pub(super) const HIGH: f64 = 0.20;

impl Level {
    pub(super) fn of(lost: Share) -> Self {
        match lost.0 {
            lost if lost < SLIGHT => Self::None,
            lost if lost < MODERATE => Self::Slight,
            lost if lost < HIGH => Self::Moderate,
            _ => Self::High,
        }
    }
}
