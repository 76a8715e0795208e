//! What it says: the kind, how sure, the cause, the evidence and what to do.
//!
//! Reads the model alone; knows no clock, no process and no screen. One plain function per rule lives
//! in `verdict/`.

mod advice;
mod case;
mod causes;
mod confidence;
mod device;
mod evidence;
mod footprint;
mod judge;
mod kinds;
mod what_if;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{ProcessKey, Share};

pub use judge::{Judge, assess};

/// The answer to *is my training waiting for data, or is it computing, and what should I change?*
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub kind: Kind,
    pub cause: Option<Cause>,
    pub level: Level,
    /// The rank it speaks of: the one that loses most.
    pub rank: Option<u32>,
    pub rank_key: Option<ProcessKey>,
    /// Share of wall time that the main thread is blocked in the loader.
    pub wait: Option<Interval>,
    pub gpu_idle: Option<Share>,
    /// Share of wall time lost to data.
    pub stall: Option<Interval>,
    /// 0 to 1.
    pub confidence: Share,
    pub headspace: Option<Headspace>,
    pub workers: Option<WorkerAdvice>,
    /// What the wait would be with other numbers of workers, fewest first; or why that cannot be told.
    pub what_if: Result<Vec<Expected>, String>,
    pub period_batches: Option<u32>,
    /// What a GPU that is compute-bound is near, where its counters tell.
    pub limit: Option<Limit>,
    /// Strongest first, those that support the kind before those that do not.
    pub evidence: Vec<Evidence>,
    pub missing: Vec<Missing>,
    /// What to change, most useful first. Empty where nothing follows from the cause.
    pub advice: Vec<String>,
    /// The time that the verdict covers.
    pub seconds: f64,
    pub batches: Option<u64>,
    /// While `WarmingUp`: batches and seconds seen so far, of those needed.
    pub warming_up: Option<WarmingUp>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub share: Share,
    pub low: Share,
    pub high: Share,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    Disk,
    Network,
    CpuPreprocess,
    CpuOversubscribed,
    CpuQuota,
    CpuAffinity,
    HeadOfLine,
    Ipc,
    InMain,
    WorkerRestart,
    Transfer,
    MemoryPressure,
    FewShards,
    Straggler,
    /// Another thread of the trainer holds Python's global lock.
    Gil,
    /// The host launches work more slowly than the GPU does it.
    Launch,
    /// The host waits for the GPU before it goes on.
    Sync,
}

/// What a GPU that is hardly ever without a kernel is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// As the report names it: `cpu-preprocess`.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How much is lost: below 5 % none, to 10 % slight, to 20 % moderate, above high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerAdvice {
    pub now: u32,
    /// Load time over step time, rounded up. `None` where either is not known.
    pub match_step: Option<u32>,
    pub cpu_allows: Option<u32>,
    /// `None` where another number of workers would not help.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub id: String,
    pub why: String,
    pub hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmingUp {
    pub batches: Option<u64>,
    pub batches_needed: u64,
    pub seconds: f64,
    pub seconds_needed: f64,
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

impl Cause {
    /// As the screen says it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Network => "network",
            Self::CpuPreprocess => "CPU preprocessing",
            Self::CpuOversubscribed => "too many workers for the CPUs",
            Self::CpuQuota => "CPU quota",
            Self::CpuAffinity => "CPU affinity",
            Self::HeadOfLine => "one slow worker holds up the others",
            Self::Ipc => "handing batches over",
            Self::InMain => "loading in the main thread",
            Self::WorkerRestart => "workers start anew each epoch",
            Self::Transfer => "copying batches to the device",
            Self::MemoryPressure => "memory pressure",
            Self::FewShards => "fewer shards than workers",
            Self::Straggler => "one rank is slower",
            Self::Gil => "another Python thread holds the GIL",
            Self::Launch => "the main thread launches too slowly",
            Self::Sync => "waiting for the GPU at each step",
        }
    }
}
