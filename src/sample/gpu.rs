//! One GPU as the driver tells of it, with its instances where it is divided and the processes on it.
//!
//! Knows nothing of how it was read. What is read less often than the rest carries its own time.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sample::Tail;
use crate::units::{Bytes, BytesPerSecond, Moment, Pid, Share};

/// One GPU. A figure that the driver does not give is `None`, never 0; `absent` says why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuSample {
    /// Index in PCI bus order, as NVML and `nvidia-smi` count.
    pub index: u32,
    pub uuid: Option<String>,
    pub name: Option<String>,
    /// The N of `/dev/nvidiaN`; need not be the index.
    #[serde(default)]
    pub minor: Option<u32>,
    /// When these figures were read; a hung driver leaves an old moment here.
    pub read_at: Option<Moment>,
    /// Share of the driver's last period in which any kernel ran, in percent.
    pub util_percent: Option<f64>,
    /// Share of that period in which device memory was read or written, in percent.
    pub mem_util_percent: Option<f64>,
    /// Utilisation samples: (driver time in us, percent). Each speaks of the time since the one before it.
    pub util_samples: Tail<(u64, f64)>,
    /// Driver time at the start of pipetop, in us: places the samples in our time. `None` = not known.
    #[serde(default)]
    pub driver_zero_us: Option<u64>,
    pub mem_used: Option<Bytes>,
    pub mem_total: Option<Bytes>,
    /// What the driver keeps for itself, beside what is used.
    #[serde(default)]
    pub mem_reserved: Option<Bytes>,
    /// One-second average on Ampere and newer.
    pub power_watts: Option<f64>,
    /// At this moment, where the driver tells it.
    #[serde(default)]
    pub power_instant_watts: Option<f64>,
    /// The limit that is enforced now.
    pub power_limit_watts: Option<f64>,
    /// Since the driver was loaded, in joules.
    #[serde(default)]
    pub energy_joules: Option<f64>,
    pub temperature_c: Option<f64>,
    #[serde(default)]
    pub mem_temperature_c: Option<f64>,
    pub sm_clock_mhz: Option<f64>,
    pub mem_clock_mhz: Option<f64>,
    /// Reasons for a lowered clock, in words; `None` = not known, empty = not held back.
    pub throttle: Option<Vec<String>>,
    /// What the performance counters say of the time between two polls at them (Hopper and newer).
    #[serde(default)]
    pub counters: Option<GpuCounters>,
    #[serde(default)]
    pub traffic: Option<GpuTraffic>,
    #[serde(default)]
    pub health: Option<GpuHealth>,
    /// Errors that the driver reported since pipetop started, the newest sixteen, oldest first. `None` = it
    /// does not tell.
    #[serde(default)]
    pub xids: Option<Vec<Xid>>,
    /// The parts of a GPU that is divided by MIG; empty where it is not.
    #[serde(default)]
    pub instances: Vec<GpuInstance>,
    pub processes: Option<Vec<GpuProcess>>,
    /// Which ranks of the watched job use it, and what tells so. `None` = not known.
    #[serde(default)]
    pub users: Option<Vec<GpuUser>>,
    /// Time spent in calls of the driver for this GPU, since pipetop started.
    #[serde(default)]
    pub driver_time: Duration,
    /// Figures that are missing, with the reason.
    #[serde(default)]
    pub absent: Vec<Absent>,
    /// Why this GPU gives nothing, or nothing new: `lost`, `no permission`, `driver does not answer`; or no utilisation
    /// of the whole, as MIG is on. `None` where it gives most figures: `absent` has the reasons for the others.
    pub gap: Option<String>,
    /// The watched job may use this GPU (its `CUDA_VISIBLE_DEVICES`); `None` = not known.
    pub visible_to_job: Option<bool>,
}

impl GpuSample {
    /// Both are of one GPU.
    pub fn is(&self, other: &Self) -> bool {
        (self.index, &self.uuid) == (other.index, &other.uuid)
    }
}

/// The reason of a figure that the driver denies to this user.
pub const NO_PERMISSION: &str = "no permission";

/// Why a figure is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Absent {
    /// As the report names it, without its unit: `power`, `pcie`, `processes`.
    pub figure: String,
    /// `not supported by this GPU`
    pub reason: String,
}

/// Means over the time between two polls at the performance counters. Shares are of what the part could do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GpuCounters {
    pub from: Moment,
    pub to: Moment,
    /// Any kernel ran.
    pub graphics: Option<Share>,
    /// Multiprocessors with at least one warp, on average over all of them.
    pub sm_active: Option<Share>,
    /// Warps that were resident, of those that could be.
    pub sm_occupancy: Option<Share>,
    pub tensor: Option<Share>,
    /// Bandwidth of the device memory.
    pub dram: Option<Share>,
    pub pcie_rx: Option<BytesPerSecond>,
    pub pcie_tx: Option<BytesPerSecond>,
    pub nvlink_rx: Option<BytesPerSecond>,
    pub nvlink_tx: Option<BytesPerSecond>,
}

/// Bytes that went in (`rx`) and out (`tx`) of the GPU, since the driver was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GpuTraffic {
    pub read_at: Moment,
    pub pcie_rx: Option<Bytes>,
    pub pcie_tx: Option<Bytes>,
    /// All links together.
    pub nvlink_rx: Option<Bytes>,
    pub nvlink_tx: Option<Bytes>,
    /// Where nothing counts bytes.
    pub pcie_sampled: Option<PcieSampled>,
}

/// A rate that the driver measured over 20 ms, seldom: the call takes as long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PcieSampled {
    pub read_at: Moment,
    pub rx: BytesPerSecond,
    pub tx: BytesPerSecond,
}

/// What changes seldom.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GpuHealth {
    pub read_at: Moment,
    pub link: Option<Link>,
    /// Of the driver's last period, in percent.
    pub encoder_percent: Option<f64>,
    pub decoder_percent: Option<f64>,
    /// Memory errors since the driver was loaded.
    pub ecc_corrected: Option<u64>,
    pub ecc_uncorrected: Option<u64>,
    /// Pages taken out of use (before Ampere), and whether more wait for a restart.
    pub retired_pages: Option<u64>,
    pub retirement_pending: Option<bool>,
    /// Rows that spare ones stand in for (Ampere and newer), whether more wait for a restart, and whether
    /// that once failed.
    pub remapped_rows: Option<u64>,
    pub remapping_pending: Option<bool>,
    pub remapping_failed: Option<bool>,
    /// The driver stays loaded without a user.
    pub persistence: Option<bool>,
}

/// The bus: its generation and lanes now, and the most that card and slot can.
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
    /// NVIDIA's number for its kind.
    pub number: u64,
    /// When pipetop heard of it.
    pub at: Moment,
}

/// A part of a divided GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GpuInstance {
    pub uuid: Option<String>,
    pub gpu_instance: Option<u32>,
    pub compute_instance: Option<u32>,
    pub mem_used: Option<Bytes>,
    pub mem_total: Option<Bytes>,
    pub counters: Option<GpuCounters>,
    pub processes: Option<Vec<GpuProcess>>,
    /// Why this part gives less.
    pub gap: Option<String>,
}

/// A process that holds memory on a GPU, numbered as the driver numbers it: in a container that may
/// be a number of another namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuProcess {
    pub pid: Pid,
    pub mem: Option<Bytes>,
    /// Share of the multiprocessors' time at the driver's last sample of this process, in percent.
    pub sm_percent: Option<f64>,
    /// When the driver took that sample, since pipetop started. `None` = not known.
    #[serde(default)]
    pub sm_at: Option<Duration>,
    #[serde(default)]
    pub place: ProcessPlace,
}

/// Whether the driver's number of a process is a number here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessPlace {
    #[default]
    Unknown,
    /// A process of this number is here, and is known to be the one that is meant.
    Here,
    /// None that is seen here: the process lives outside of this container.
    Outside,
}

/// A rank of the watched job that uses a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GpuUser {
    /// As `/proc` numbers it here.
    pub pid: Pid,
    pub by: UsedBy,
    /// The part of a divided GPU that it was given.
    pub instance: Option<u32>,
}

/// What tells that a rank uses a GPU. The later the surer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum UsedBy {
    /// Its `LOCAL_RANK` counts to this one of several that it may use.
    LocalRank,
    /// It may use no other.
    OnlyVisible,
    /// It has this GPU's device file open, and no other GPU's.
    DeviceFile,
    /// The driver lists it.
    Listed,
}
