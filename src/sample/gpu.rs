//! One GPU as reported by the driver, with its instances if it is partitioned (MIG), and the processes on it.
//!
//! Does not depend on how it was read. Values that are read less often than the rest have their own time.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::Tail;
use crate::units::{Bytes, BytesPerSecond, Moment, Pid, Share};

/// One GPU. A figure that the driver does not report is `None`, never 0; `absent` has the reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuSample {
    /// Index in PCI bus order, as NVML and `nvidia-smi` count.
    pub index: u32,
    pub uuid: Option<String>,
    pub name: Option<String>,
    /// The N of `/dev/nvidiaN`; may differ from the index.
    pub minor: Option<u32>,
    /// When these figures were read; stays at an old moment if the driver hangs.
    pub read_at: Option<Moment>,
    /// Share of the driver's last period in which any kernel ran, in percent.
    pub util_percent: Option<f64>,
    /// Share of that period in which device memory was read or written, in percent.
    pub mem_util_percent: Option<f64>,
    /// Utilisation samples: (driver time in us, percent). Each covers the time since the one before it.
    pub util_samples: Tail<(u64, f64)>,
    /// Driver time at the start of pipetop, in us: converts sample times to time since pipetop started. `None` = not
    /// known.
    pub driver_zero_us: Option<u64>,
    pub mem_used: Option<Bytes>,
    pub mem_total: Option<Bytes>,
    /// Memory reserved by the driver, in addition to what is used.
    pub mem_reserved: Option<Bytes>,
    /// One-second average on Ampere and newer.
    pub power_watts: Option<f64>,
    /// Power at this moment, if the driver reports it.
    pub power_instant_watts: Option<f64>,
    /// The limit that is currently enforced.
    pub power_limit_watts: Option<f64>,
    /// Energy since the driver was loaded, in joules.
    pub energy_joules: Option<f64>,
    /// When that was read, which is seldom. `None` in older recordings: there, a counter that has not grown may be one
    /// that was not read again.
    pub energy_read_at: Option<Moment>,
    pub temperature_c: Option<f64>,
    pub mem_temperature_c: Option<f64>,
    pub sm_clock_mhz: Option<f64>,
    pub mem_clock_mhz: Option<f64>,
    /// Reasons for a lowered clock, in words; `None` = not known, empty = not throttled.
    pub throttle: Option<Vec<String>>,
    /// Performance counters over the time between two polls of them (Hopper and newer).
    pub counters: Option<GpuCounters>,
    pub traffic: Option<GpuTraffic>,
    pub health: Option<GpuHealth>,
    /// Errors that the driver reported since pipetop started: the newest sixteen, oldest first. `None` if it does not
    /// report them.
    pub xids: Option<Vec<Xid>>,
    /// The parts of a GPU that is partitioned by MIG; empty if it is not.
    #[serde(default)]
    pub instances: Vec<GpuInstance>,
    pub processes: Option<Vec<GpuProcess>>,
    /// Ranks of the watched job that use it, with the evidence. `None` = not known.
    pub users: Option<Vec<GpuUser>>,
    /// Time spent in calls of the driver for this GPU, since pipetop started.
    #[serde(default)]
    pub driver_time: Duration,
    /// Figures that are missing, with the reason.
    #[serde(default)]
    pub absent: Vec<Absent>,
    /// Why there are no figures of this GPU, or no new ones: `lost`, `no permission`, `driver does not answer`; or no
    /// utilisation of the whole GPU, because MIG is on. `None` if most figures are present: `absent` has the reasons
    /// for the others.
    pub gap: Option<String>,
    /// The watched job may use this GPU (its `CUDA_VISIBLE_DEVICES`); `None` = not known.
    pub visible_to_job: Option<bool>,
}

impl GpuSample {
    /// Returns whether both are samples of the same GPU.
    pub fn is(&self, other: &Self) -> bool {
        (self.index, &self.uuid) == (other.index, &other.uuid)
    }
}

/// The reason of a figure that the driver does not let this user read.
pub const NO_PERMISSION: &str = "no permission";

/// Why a figure is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Absent {
    /// As the report names it, without its unit: `power`, `pcie`, `processes`.
    pub figure: String,
    /// For example `not supported by this GPU`.
    pub reason: String,
}

/// Means over the time between two polls of the performance counters. Shares are of the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GpuCounters {
    pub from: Moment,
    pub to: Moment,
    /// Share of time with any kernel running.
    pub graphics: Option<Share>,
    /// Multiprocessors with at least one warp, on average over all of them.
    pub sm_active: Option<Share>,
    /// Resident warps over the maximum number.
    pub sm_occupancy: Option<Share>,
    pub tensor: Option<Share>,
    /// Used share of the device memory's bandwidth.
    pub dram: Option<Share>,
    pub pcie_rx: Option<BytesPerSecond>,
    pub pcie_tx: Option<BytesPerSecond>,
    pub nvlink_rx: Option<BytesPerSecond>,
    pub nvlink_tx: Option<BytesPerSecond>,
}

/// Bytes that the GPU received (`rx`) and sent (`tx`) since the driver was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GpuTraffic {
    pub read_at: Moment,
    pub pcie_rx: Option<Bytes>,
    pub pcie_tx: Option<Bytes>,
    /// Over all links together.
    pub nvlink_rx: Option<Bytes>,
    pub nvlink_tx: Option<Bytes>,
    /// Used if nothing counts bytes.
    pub pcie_sampled: Option<PcieSampled>,
}

/// A rate that the driver measured over 20 ms. Read seldom, since the call takes as long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PcieSampled {
    pub read_at: Moment,
    pub rx: BytesPerSecond,
    pub tx: BytesPerSecond,
}

/// Values that seldom change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GpuHealth {
    pub read_at: Moment,
    pub link: Option<Link>,
    /// Over the driver's last period, in percent.
    pub encoder_percent: Option<f64>,
    pub decoder_percent: Option<f64>,
    /// Memory errors since the driver was loaded.
    pub ecc_corrected: Option<u64>,
    pub ecc_uncorrected: Option<u64>,
    /// Retired memory pages (before Ampere), and whether more will be retired at the next restart.
    pub retired_pages: Option<u64>,
    pub retirement_pending: Option<bool>,
    /// Remapped memory rows (Ampere and newer), whether more will be remapped at the next restart, and whether
    /// remapping ever failed.
    pub remapped_rows: Option<u64>,
    pub remapping_pending: Option<bool>,
    pub remapping_failed: Option<bool>,
    /// Persistence mode: the driver stays loaded when no process uses it.
    pub persistence: Option<bool>,
}

/// The PCIe link: its generation and lanes now, and the maximum of card and slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    pub generation: u32,
    pub width: u32,
    pub max_generation: Option<u32>,
    pub max_width: Option<u32>,
}

/// An error that the driver reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xid {
    /// NVIDIA's number for this kind of error.
    pub number: u64,
    /// When pipetop received it.
    pub at: Moment,
}

/// A part of a partitioned (MIG) GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuInstance {
    pub uuid: Option<String>,
    pub gpu_instance: Option<u32>,
    pub compute_instance: Option<u32>,
    pub mem_used: Option<Bytes>,
    pub mem_total: Option<Bytes>,
    pub counters: Option<GpuCounters>,
    pub processes: Option<Vec<GpuProcess>>,
    /// Why some figures of this part are missing.
    pub gap: Option<String>,
}

/// A process that holds memory on a GPU, with its pid as the driver reports it: in a container that may be a pid of
/// another namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuProcess {
    pub pid: Pid,
    pub mem: Option<Bytes>,
    /// Share of the multiprocessors' time at the driver's last sample of this process, in percent.
    pub sm_percent: Option<f64>,
    /// When the driver took that sample, measured from when pipetop started. `None` = not known.
    pub sm_at: Option<Duration>,
    #[serde(default)]
    pub place: ProcessPlace,
}

/// Whether the pid that the driver reports is valid in pipetop's pid namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessPlace {
    #[default]
    Unknown,
    /// There is a process with this pid here, and it is known to be the right one.
    Here,
    /// No process that is visible here: it is outside of this container.
    Outside,
}

/// A rank of the watched job that uses a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuUser {
    /// Its pid in `/proc` here.
    pub pid: Pid,
    pub by: UsedBy,
    /// The part of a partitioned (MIG) GPU that it was assigned.
    pub instance: Option<u32>,
}

/// Evidence that a rank uses a GPU, weakest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum UsedBy {
    /// Its `LOCAL_RANK` is the index of this GPU among those that it may use.
    LocalRank,
    /// It may use only this GPU.
    OnlyVisible,
    /// It has this GPU's device file open, and no other GPU's.
    DeviceFile,
    /// The driver lists it.
    Listed,
}
