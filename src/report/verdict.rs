//! The verdict in the report, with its evidence and advice.
//!
//! Does not judge: the values are the judge's, rounded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::round::{number, round, share};
use crate::model::Rates;
use crate::units::{Pid, Share};
use crate::verdict::{
    Cause, Evidence, Expected, Headline, Headspace, Kind, Level, Limit, Missing, Verdict,
    WarmingUp, WorkerAdvice,
};

/// What limits the job, how sure that is, why, and what to change. Intervals are at 95 %, or at 97.5 % if
/// the verdict came early.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictReport {
    /// What limits the job. `warming-up`: too early to say; `stalled`: no progress; `unknown`: too little can be seen, or
    /// the signals contradict each other.
    pub kind: Kind,
    /// Why. null: no cause found, or the kind has none.
    pub cause: Option<Cause>,
    pub level: Level,
    /// Share of wall time that the main thread was blocked in the loader. null: not visible.
    pub wait_share: Option<Share>,
    /// Low and high end of `wait_share`.
    pub wait_interval: Option<[Share; 2]>,
    /// Share of wall time in which the GPU ran no kernel. null: no GPU figure.
    pub gpu_idle_share: Option<Share>,
    /// Share of wall time lost to data: the trainer waits and the GPU is idle; without a GPU figure the waits alone.
    /// null: not known.
    pub stall_share: Option<Share>,
    /// Low and high end of `stall_share`.
    pub stall_interval: Option<[Share; 2]>,
    /// Probability that the kind is right.
    pub confidence: Share,
    /// null: no verdict yet.
    pub headspace: Option<HeadspaceReport>,
    /// null: the number of workers is not in question.
    pub workers: Option<WorkerAdvice>,
    pub what_if: WhatIfReport,
    /// Period in batches at which the trainer waits. null: no such period.
    pub period_batches: Option<u32>,
    /// What limits a compute-bound GPU, by its performance counters. null: not known, or not compute-bound.
    pub limit: Option<Limit>,
    /// The rank the verdict is about: the one that loses most. null: no rank number.
    pub rank: Option<u32>,
    /// The process of that rank. null: no rank is known.
    pub pid: Option<Pid>,
    /// The facts, strongest first; those that support the kind before those against it.
    pub evidence: Vec<EvidenceReport>,
    /// Signals that were not available.
    pub missing: Vec<Missing>,
    /// What to change, most useful first. Empty: nothing follows from the cause.
    pub advice: Vec<String>,
    /// How far the warm-up is. null: over.
    pub warming_up: Option<WarmingUpReport>,
    #[serde(default)]
    pub headline: Headline,
}

/// The gain if loading were free: an upper bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeadspaceReport {
    /// Times as fast, at most. null: no bound, as nearly all time is lost.
    #[schemars(range(min = 0.0))]
    pub speedup_max: Option<f64>,
    /// Milliseconds per step with its wait, now. null: not known.
    #[schemars(range(min = 0.0))]
    pub step_ms_now: Option<f64>,
    /// Milliseconds per step without loss. null: not known.
    #[schemars(range(min = 0.0))]
    pub step_ms_free: Option<f64>,
}

/// The wait to expect with other numbers of workers, computed from load time, step time and CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIfReport {
    /// Fewest workers first. null: `gap` has the reason.
    pub rows: Option<Vec<ExpectedReport>>,
    /// Why there are no rows. null: there are rows.
    pub gap: Option<String>,
}

/// What to expect with a number of workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectedReport {
    #[schemars(range(min = 1))]
    pub workers: u32,
    /// Share of wall time that the main thread would wait.
    pub wait_share: Share,
    /// Low and high end of `wait_share`, not allowing for load times that vary.
    pub wait_interval: Option<[Share; 2]>,
    #[schemars(range(min = 0.0))]
    pub batches_per_s: Option<f64>,
}

/// One fact and its threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceReport {
    /// Stable name, kebab-case.
    pub id: String,
    /// true: for the verdict. false: against it.
    pub supports: bool,
    /// A share if there is a threshold, else in the unit that `text` names.
    pub value: Option<f64>,
    /// The value that decided. null: the fact has no threshold.
    pub threshold: Option<f64>,
    /// The fact as a sentence: `queue empty 91 % of the time`.
    pub text: String,
}

/// Progress of the warm-up: towards the minimum for a verdict; after that, while the shares are not clear, towards what
/// is enough without clear shares. Both batches and seconds are needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WarmingUpReport {
    /// Batches seen. null: nothing counts them.
    pub batches: Option<u64>,
    pub batches_needed: u64,
    /// Seconds observed.
    #[schemars(range(min = 0.0))]
    pub seconds: f64,
    #[schemars(range(min = 0.0))]
    pub seconds_needed: f64,
}

pub(super) fn interval(low: Share, high: Share) -> [Share; 2] {
    [share(low), share(high)]
}

impl VerdictReport {
    /// Returns the report of the verdict; `rates` are those of the same report.
    pub(super) fn new(verdict: &Verdict, rates: Option<&Rates>) -> Self {
        let (wait, stall) = (verdict.wait, verdict.stall);
        Self {
            kind: verdict.kind,
            cause: verdict.cause,
            level: verdict.level,
            wait_share: wait.map(|wait| share(wait.share)),
            wait_interval: wait.map(|wait| interval(wait.low, wait.high)),
            gpu_idle_share: verdict.gpu_idle.map(share),
            stall_share: stall.map(|stall| share(stall.share)),
            stall_interval: stall.map(|stall| interval(stall.low, stall.high)),
            confidence: share(verdict.confidence),
            headspace: verdict.headspace.map(HeadspaceReport::new),
            workers: verdict.workers,
            what_if: WhatIfReport::new(&verdict.what_if),
            period_batches: verdict.period_batches,
            limit: verdict.limit,
            rank: verdict.rank,
            pid: verdict.rank_key.map(|key| key.pid),
            evidence: verdict.evidence.iter().map(EvidenceReport::new).collect(),
            missing: verdict.missing.clone(),
            advice: verdict.advice.clone(),
            warming_up: verdict.warming_up.map(WarmingUpReport::new),
            headline: verdict.headline(rates),
        }
    }
}

impl HeadspaceReport {
    fn new(headspace: Headspace) -> Self {
        Self {
            speedup_max: number(Some(headspace.speedup_max), 2),
            step_ms_now: number(headspace.step_ms_now, 3),
            step_ms_free: number(headspace.step_ms_free, 3),
        }
    }
}

impl WhatIfReport {
    fn new(what_if: &Result<Vec<Expected>, String>) -> Self {
        Self {
            rows: what_if
                .as_ref()
                .ok()
                .map(|rows| rows.iter().map(ExpectedReport::new).collect()),
            gap: what_if.as_ref().err().cloned(),
        }
    }
}

impl ExpectedReport {
    fn new(row: &Expected) -> Self {
        Self {
            workers: row.workers,
            wait_share: share(row.wait.share),
            wait_interval: Some(interval(row.wait.low, row.wait.high)),
            batches_per_s: number(Some(row.batches_per_s), 3),
        }
    }
}

impl EvidenceReport {
    fn new(fact: &Evidence) -> Self {
        Self {
            id: fact.id.to_owned(),
            supports: fact.supports,
            value: number(Some(fact.value), 4),
            threshold: number(fact.threshold, 4),
            text: fact.text.clone(),
        }
    }
}

impl WarmingUpReport {
    fn new(so_far: WarmingUp) -> Self {
        Self {
            batches: so_far.batches,
            batches_needed: so_far.batches_needed,
            seconds: round(so_far.seconds, 3),
            seconds_needed: round(so_far.seconds_needed, 3),
        }
    }
}
