//! The verdict with all of its parts.

use super::rules::Cause;
use super::{
    Evidence, Expected, Headspace, Interval, Kind, Level, Limit, Missing, WarmingUp, WorkerAdvice,
};
use crate::units::{ProcessKey, Share};

/// The answer to *is my training waiting for data, or is it computing, and what should I change?*
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub kind: Kind,
    pub cause: Option<Cause>,
    pub level: Level,
    /// The rank that the verdict is about: the one that loses most.
    pub rank: Option<u32>,
    pub rank_key: Option<ProcessKey>,
    /// Share of wall time that the main thread is blocked in the loader.
    pub wait: Option<Interval>,
    pub gpu_idle: Option<Share>,
    /// Share of wall time lost to data.
    pub stall: Option<Interval>,
    /// Probability that the kind is right, 0 to 1.
    pub confidence: Share,
    pub headspace: Option<Headspace>,
    pub workers: Option<WorkerAdvice>,
    /// The expected wait with other numbers of workers, fewest first; or why it is not known.
    pub what_if: Result<Vec<Expected>, String>,
    pub period_batches: Option<u32>,
    /// What limits a compute-bound GPU, if its counters show it.
    pub limit: Option<Limit>,
    /// Strongest first; those that support the kind before those against it.
    pub evidence: Vec<Evidence>,
    pub missing: Vec<Missing>,
    /// What to change, most useful first. Empty if nothing follows from the cause.
    pub advice: Vec<String>,
    /// The time that the verdict covers, in seconds.
    pub seconds: f64,
    pub batches: Option<u64>,
    /// Progress of the warm-up, while the kind is `WarmingUp`.
    pub warming_up: Option<WarmingUp>,
}
