//! Limits of the control group that the job runs in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Limits and accounting of the job's control group: the tightest on the way up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CgroupSample {
    /// The job's own group, as `/proc/PID/cgroup` names it.
    pub path: String,
    /// CPUs' worth of time per second; `None` = no limit or not known.
    pub cpu_quota: Option<f64>,
    /// Scheduler periods and how many of them were cut short, cumulative.
    pub periods: Option<u64>,
    pub throttled_periods: Option<u64>,
    pub throttled: Option<Duration>,
    /// CPUs in the effective cpuset.
    pub cpuset: Option<u32>,
    pub mem_limit: Option<Bytes>,
    pub mem_used: Option<Bytes>,
}
