//! Disks, CPUs and pressure in the report.
//!
//! GPUs are in another file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::round::{bytes_per_s, number, percent, share};
use crate::model::Rates;
use crate::model::rates::DiskRates;
use crate::units::Share;

/// One block device, from `/proc/diskstats`: of all processes, not of the job alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskReport {
    /// Name of the device: `nvme0n1`.
    pub device: String,
    /// Bytes per second read from it.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes per second written to it.
    pub write_bytes_per_s: Option<u64>,
    /// Percent of time with at least one request in progress.
    #[schemars(range(min = 0.0))]
    pub util_percent: Option<f64>,
    /// Mean time of a request in milliseconds. null: no request.
    #[schemars(range(min = 0.0))]
    pub await_ms: Option<f64>,
    /// Mean number of requests in progress.
    #[schemars(range(min = 0.0))]
    pub queue_depth: Option<f64>,
    /// Open files of the job are on this device.
    #[serde(default)]
    pub holds_job_files: bool,
}

/// The machine, and the limits of the job on it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostReport {
    /// CPUs that the job may run on (affinity and cpuset). null: not known.
    pub cpus_allowed: Option<u32>,
    /// CPU limit of the job's control group, in CPUs. null: no limit, or not known.
    #[schemars(range(min = 0.0))]
    pub cpu_quota: Option<f64>,
    /// Busy time of all CPUs together in percent, from `/proc/stat`. null: not known.
    #[schemars(range(min = 0.0))]
    pub cpu_percent: Option<f64>,
    /// Share of scheduler periods in which the limit stopped the job. null: no limit, or not known.
    pub throttled_share: Option<Share>,
    pub psi: PressureReport,
    /// CPUs online. null: no reading yet.
    pub cpus: Option<u32>,
}

/// Share of time in which at least one task waited for the resource, from `/proc/pressure` or the job's control group.
/// null: the kernel does not report it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PressureReport {
    pub cpu: Option<Share>,
    pub io: Option<Share>,
    pub memory: Option<Share>,
}

impl DiskReport {
    pub(super) fn new(disk: &DiskRates) -> Self {
        Self {
            device: disk.device.clone(),
            read_bytes_per_s: bytes_per_s(Some(disk.read)),
            write_bytes_per_s: bytes_per_s(Some(disk.write)),
            util_percent: percent(Some(disk.util)),
            await_ms: number(disk.await_ms, 3),
            queue_depth: number(Some(disk.queue_depth), 2),
            holds_job_files: disk.holds_job_files,
        }
    }
}

impl HostReport {
    pub(super) fn new(rates: &Rates) -> Self {
        let host = &rates.host;
        let job = rates.job.as_ref();
        let cgroup = job.and_then(|job| job.cgroup.as_ref());
        Self {
            cpus_allowed: job.and_then(|job| job.cpus_allowed),
            cpu_quota: number(cgroup.and_then(|group| group.cpu_quota), 3),
            cpu_percent: percent(host.cpu),
            throttled_share: cgroup.and_then(|group| group.throttled_periods).map(share),
            psi: PressureReport {
                cpu: host.pressure_cpu.map(share),
                io: host.pressure_io.map(share),
                memory: host.pressure_memory.map(share),
            },
            cpus: Some(host.cpus),
        }
    }
}
