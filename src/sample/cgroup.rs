//! Limits of the job's control group.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Limits and accounting of the job's control group: the tightest of it and its ancestors.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CgroupSample {
    /// The job's own group, as named in `/proc/PID/cgroup`.
    pub path: String,
    /// Limit in CPUs; `None` means no limit or not known.
    pub cpu_quota: Option<f64>,
    /// Scheduler periods, and how many of them were throttled, cumulative.
    pub periods: Option<u64>,
    pub throttled_periods: Option<u64>,
    pub throttled: Option<Duration>,
    /// CPUs in the effective cpuset.
    pub cpuset: Option<u32>,
    pub mem_limit: Option<Bytes>,
    pub mem_used: Option<Bytes>,
    /// It or a group above it is frozen, as by `docker pause`. `None` = the file of its freezer is not visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<bool>,
}
