//! The answer: the kind, how sure it is, the cause, the evidence and what to do.
//!
//! Reads only the model; knows no clock, no process and no screen. Each cause has one file in `rules/`.

mod advice;
mod answer;
mod busy_time;
mod classify;
mod confidence;
mod context;
mod device;
mod early;
mod evidence;
mod headline;
mod judge;
mod level;
mod lost;
mod rule;
mod rules;
#[cfg(test)]
mod tests;
mod waits;
mod what_if;
mod workers;
mod worst;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Share;

pub use answer::Verdict;
pub use headline::Headline;
pub use judge::{Judge, assess};
pub use lost::Lost;
pub use rule::Resource;
pub use rules::Cause;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub share: Share,
    pub low: Share,
    pub high: Share,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    DataBound,
    Balanced,
    ComputeBound,
    HostBound,
    CommunicationBound,
    WarmingUp,
    Stalled,
    Unknown,
}

/// What a GPU that is hardly ever without a kernel is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Its multiprocessors.
    Compute,
    /// The bandwidth of its memory.
    Memory,
    /// Neither: its kernels do not fill it.
    SmallKernels,
}

/// As the report names it: `data-bound`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How much is lost: below 5 % none, to 10 % slight, to 20 % moderate, above high.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    None,
    Slight,
    Moderate,
    High,
}

/// What free loading would bring, at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headspace {
    pub speedup_max: f64,
    pub step_ms_now: Option<f64>,
    pub step_ms_free: Option<f64>,
}

/// How many workers there are, would match the step, and the CPUs allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerAdvice {
    pub now: u32,
    /// Load time / step time, rounded up. null: one of them is not known.
    #[serde(rename = "match")]
    pub match_step: Option<u32>,
    /// As many as the CPUs allow. null: not known.
    pub cpu_allows: Option<u32>,
    /// null: another number would not help.
    pub advised: Option<u32>,
}

/// What would be expected with another number of workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    pub workers: u32,
    /// Share of wall time that the main thread would wait. The interval is that of the wait which is seen now; that
    /// batches take more or less long is not in it.
    pub wait: Interval,
    pub batches_per_s: f64,
}

/// One fact with its threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Stable, kebab-case.
    pub id: &'static str,
    /// For the verdict, or against it.
    pub supports: bool,
    /// A share, 0 to 1, where there is a threshold; else in the unit that `text` says.
    pub value: f64,
    /// What decided. `None` = the fact was not measured against one.
    pub threshold: Option<f64>,
    /// `queue empty 91 % of the time`
    pub text: String,
}

/// A signal that is not there, and what would bring it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    pub id: String,
    pub why: String,
    /// What would change that. Empty: nothing would.
    pub hint: String,
}

/// How far it is: first to what any verdict needs; then, where the shares leave it open, to what is enough to give one
/// anyway.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmingUp {
    pub batches: Option<u64>,
    pub batches_needed: u64,
    pub seconds: f64,
    pub seconds_needed: f64,
    /// The shares leave it open.
    pub unclear: bool,
}

impl Kind {
    /// As the screen says it.
    pub fn words(self) -> &'static str {
        match self {
            Self::DataBound => "DATA-BOUND",
            Self::Balanced => "BALANCED",
            Self::ComputeBound => "COMPUTE-BOUND",
            Self::HostBound => "HOST-BOUND",
            Self::CommunicationBound => "COMMUNICATION-BOUND",
            Self::WarmingUp => "WARMING UP",
            Self::Stalled => "STALLED",
            Self::Unknown => "UNKNOWN",
        }
    }
}
