//! The verdict: the kind, how certain it is, the cause, the evidence and what to do.
//!
//! Reads only the model; reads no clock, process or screen. Each cause has one file in `rules/`.

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
mod standstill;
#[cfg(test)]
pub(crate) mod tests;
mod waits;
mod what_if;
mod workers;
mod worst;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Estimate;
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

impl From<Estimate> for Interval {
    fn from(estimate: Estimate) -> Self {
        let Estimate {
            share, low, high, ..
        } = estimate;
        Self { share, low, high }
    }
}

impl Interval {
    fn times(self, part: Share) -> Self {
        let times = |share: Share| Share(share.0 * part.0);
        Self {
            share: times(self.share),
            low: times(self.low),
            high: times(self.high),
        }
    }
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
    /// Neither: its kernels are too small to fill it.
    SmallKernels,
}

/// Writes the name in the report, for example `data-bound`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How much of the time is lost: below 5 % none, to 10 % slight, to 20 % moderate, above that high.
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

/// Upper bound of the gain from free loading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headspace {
    pub speedup_max: f64,
    pub step_ms_now: Option<f64>,
    pub step_ms_free: Option<f64>,
}

/// The number of workers: now, to match the step, and allowed by the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerAdvice {
    pub now: u32,
    /// Load time / step time, rounded up. null: one of them is not known.
    #[serde(rename = "match")]
    pub match_step: Option<u32>,
    /// Maximum that the CPUs allow. null: not known.
    pub cpu_allows: Option<u32>,
    /// null: a different number would not help.
    pub advised: Option<u32>,
}

/// What to expect with another number of workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    pub workers: u32,
    /// Share of wall time that the main thread would wait. The interval reflects the uncertainty of the wait measured
    /// now, but not that load times vary.
    pub wait: Interval,
    pub batches_per_s: f64,
}

/// One fact with its threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Stable name, kebab-case.
    pub id: &'static str,
    /// Whether it supports the verdict.
    pub supports: bool,
    /// A share, 0 to 1, if there is a threshold; else in the unit that `text` names.
    pub value: f64,
    /// The value that decided. `None` = the fact has no threshold.
    pub threshold: Option<f64>,
    /// For example `queue empty 91 % of the time`.
    pub text: String,
}

/// A signal that is not available, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    pub id: String,
    pub why: String,
    /// How to get it. Empty: it cannot be had.
    pub hint: String,
}

impl Missing {
    fn new(id: &str, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            why: why.into(),
            hint: hint.into(),
        }
    }
}

/// Progress of the warm-up: first towards the minimum for any verdict; then, if the shares are not clear, towards the
/// amount at which a verdict is given anyway.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmingUp {
    pub batches: Option<u64>,
    pub batches_needed: u64,
    pub seconds: f64,
    pub seconds_needed: f64,
    /// The shares are not clear yet.
    pub unclear: bool,
}

impl Kind {
    /// Returns the words on the screen.
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
