//! A GPU in the report: what was read, its rates in the window, and why the rest is missing.
//!
//! Does not depend on the job, except for the list of ranks that use the GPU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::round::{bytes_per_s, number, round, share, whole};
use crate::model::Oscillation;
use crate::model::rates::GpuRates;
use crate::sample::{Absent, GpuHealth, GpuInstance, GpuProcess, GpuUser, Link, ProcessPlace, Xid};
use crate::units::{Bytes, Moment, Pid, Share};

/// One GPU, as its driver (NVML) reports it. null: not known; `absent` or `gap` has the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuReport {
    /// Index in PCI bus order, as in `nvidia-smi`.
    pub index: u32,
    pub uuid: Option<String>,
    pub name: Option<String>,
    /// Why figures of this GPU are missing. null: nothing is wrong.
    pub gap: Option<String>,
    /// Mean utilisation in percent: time with a kernel, as `nvidia-smi` shows it.
    #[schemars(range(min = 0.0))]
    pub util_percent: Option<f64>,
    /// Share of time with a kernel, from the driver's sample history or the performance counters.
    pub busy_share: Option<Share>,
    /// Share of multiprocessors with work, from the performance counters (Hopper and newer).
    pub sm_active_share: Option<Share>,
    /// Resident warps / possible warps, from the performance counters.
    pub sm_occupancy_share: Option<Share>,
    /// Share of tensor core capacity in use, from the performance counters.
    pub tensor_share: Option<Share>,
    /// Share of memory bandwidth in use, from the performance counters.
    pub dram_share: Option<Share>,
    /// A guess at the load of a GPU without performance counters: utilisation x power / power limit.
    pub load_estimate_share: Option<Share>,
    /// null: the GPU does not alternate between full load and idle.
    pub swing: Option<SwingReport>,
    pub mem_used_bytes: Option<Bytes>,
    /// Memory the driver keeps for itself, not part of `mem_used_bytes`.
    pub mem_reserved_bytes: Option<Bytes>,
    pub mem_total_bytes: Option<Bytes>,
    /// Mean of one second on Ampere and newer.
    #[schemars(range(min = 0.0))]
    pub power_watts: Option<f64>,
    /// At the moment of the reading.
    #[schemars(range(min = 0.0))]
    pub power_instant_watts: Option<f64>,
    /// The limit now in force.
    #[schemars(range(min = 0.0))]
    pub power_limit_watts: Option<f64>,
    /// Energy used in the window.
    #[schemars(range(min = 0.0))]
    pub energy_joules: Option<f64>,
    pub temperature_c: Option<f64>,
    pub mem_temperature_c: Option<f64>,
    pub sm_clock_mhz: Option<u64>,
    pub mem_clock_mhz: Option<u64>,
    /// Why the clock is lowered. Empty: it is not. null: not known.
    pub throttle: Option<Vec<String>>,
    pub pcie_link: Option<Link>,
    /// Bytes per second to the GPU.
    pub pcie_rx_bytes_per_s: Option<u64>,
    /// Bytes per second from the GPU.
    pub pcie_tx_bytes_per_s: Option<u64>,
    /// Seconds since the driver sampled the traffic on the bus. null: counted over the window, or not known.
    #[schemars(range(min = 0.0))]
    pub pcie_age_seconds: Option<f64>,
    /// Bytes per second to the GPU over all links to other GPUs.
    pub nvlink_rx_bytes_per_s: Option<u64>,
    /// Bytes per second from the GPU over all links to other GPUs.
    pub nvlink_tx_bytes_per_s: Option<u64>,
    pub encoder_percent: Option<u64>,
    pub decoder_percent: Option<u64>,
    /// Corrected memory errors since the driver was loaded.
    pub ecc_corrected: Option<u64>,
    /// Uncorrected memory errors since the driver was loaded.
    pub ecc_uncorrected: Option<u64>,
    /// Memory pages out of use (before Ampere).
    pub retired_pages: Option<u64>,
    /// More pages will be retired at the next restart.
    pub retirement_pending: Option<bool>,
    /// Memory rows replaced by spare ones (Ampere and newer).
    pub remapped_rows: Option<u64>,
    /// More rows will be replaced at the next reset.
    pub remapping_pending: Option<bool>,
    /// A row could not be replaced.
    pub remapping_failed: Option<bool>,
    /// Persistence mode: the driver stays loaded without a user.
    pub persistence: Option<bool>,
    /// Age of link, encoder, decoder, memory error and persistence figures in seconds.
    #[schemars(range(min = 0.0))]
    pub health_age_seconds: Option<f64>,
    /// Xid errors since pipetop started, the newest sixteen, oldest first. null: the driver does not report them.
    pub xids: Option<Vec<XidReport>>,
    /// Processes with memory on the GPU.
    pub processes: Option<Vec<GpuProcessReport>>,
    /// The parts of a GPU divided by MIG. Empty: not divided.
    pub instances: Vec<GpuInstanceReport>,
    /// The job may use this GPU (`CUDA_VISIBLE_DEVICES`).
    pub visible_to_job: Option<bool>,
    /// Ranks of the job that use it.
    pub ranks: Option<Vec<GpuUser>>,
    /// Cost of reading this GPU: milliseconds per second in calls of the driver.
    #[schemars(range(min = 0.0))]
    pub driver_ms_per_s: Option<f64>,
    /// Figures that are null, each with the reason.
    pub absent: Vec<Absent>,
}

/// A GPU that alternates between full load and idle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwingReport {
    /// Mean seconds from one rise to the next.
    #[schemars(range(min = 0.0))]
    pub period_seconds: f64,
    /// The periods are similar.
    pub regular: bool,
    /// Share of the time idle.
    pub rest_share: Share,
}

/// An error that the driver reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct XidReport {
    /// NVIDIA's number of the error.
    pub number: u64,
    /// Seconds since pipetop received it.
    #[schemars(range(min = 0.0))]
    pub age_seconds: Option<f64>,
}

/// A process with memory on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuProcessReport {
    /// As the driver numbers it: in a container that may be a number of another namespace, see `place`.
    pub pid: Pid,
    pub place: ProcessPlace,
    pub mem_bytes: Option<Bytes>,
    /// Percent of the multiprocessors' time at the driver's last sample of this process.
    #[schemars(range(min = 0.0))]
    pub sm_percent: Option<f64>,
    /// Age of that sample in seconds.
    #[schemars(range(min = 0.0))]
    pub sm_age_seconds: Option<f64>,
}

/// A part of a GPU divided by MIG.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuInstanceReport {
    pub uuid: Option<String>,
    pub gpu_instance: Option<u32>,
    pub compute_instance: Option<u32>,
    /// Share of time with a kernel, from the performance counters.
    pub busy_share: Option<Share>,
    /// Share of its multiprocessors with work, from the performance counters.
    pub sm_active_share: Option<Share>,
    pub mem_used_bytes: Option<Bytes>,
    pub mem_total_bytes: Option<Bytes>,
    pub processes: Option<Vec<GpuProcessReport>>,
    /// Why figures of this part are missing. null: nothing is wrong.
    pub gap: Option<String>,
}

impl GpuReport {
    /// Returns the report of a GPU; `at` is the moment of the report, for ages.
    pub(super) fn new(gpu: &GpuRates, at: Option<Moment>) -> Self {
        let (now, counters) = (&gpu.now, &gpu.counters);
        let stale = gpu
            .stale_seconds
            .map(|age| format!("no sample for {age:.0} s"));
        let health = now.health.as_ref();
        let instances = now.instances.iter().zip(&gpu.parts);
        let xids = now.xids.as_ref();
        Self {
            index: now.index,
            uuid: now.uuid.clone(),
            name: now.name.clone(),
            gap: now.gap.clone().or(stale),
            util_percent: number(gpu.util_percent, 1),
            busy_share: gpu.busy.map(share),
            sm_active_share: counters.sm_active.map(share),
            sm_occupancy_share: counters.sm_occupancy.map(share),
            tensor_share: counters.tensor.map(share),
            dram_share: counters.dram.map(share),
            load_estimate_share: gpu.load_estimate.map(share),
            swing: gpu.swing.map(SwingReport::new),
            mem_used_bytes: now.mem_used,
            mem_reserved_bytes: now.mem_reserved,
            mem_total_bytes: now.mem_total,
            power_watts: number(now.power_watts, 1),
            power_instant_watts: number(now.power_instant_watts, 1),
            power_limit_watts: number(now.power_limit_watts, 1),
            energy_joules: number(gpu.energy_joules, 1),
            temperature_c: number(now.temperature_c, 1),
            mem_temperature_c: number(now.mem_temperature_c, 1),
            sm_clock_mhz: whole(now.sm_clock_mhz),
            mem_clock_mhz: whole(now.mem_clock_mhz),
            throttle: now.throttle.clone(),
            pcie_link: health.and_then(|health| health.link),
            pcie_rx_bytes_per_s: bytes_per_s(gpu.pcie_rx),
            pcie_tx_bytes_per_s: bytes_per_s(gpu.pcie_tx),
            pcie_age_seconds: number(gpu.pcie_age, 1),
            nvlink_rx_bytes_per_s: bytes_per_s(gpu.nvlink_rx),
            nvlink_tx_bytes_per_s: bytes_per_s(gpu.nvlink_tx),
            encoder_percent: whole(health.and_then(|health| health.encoder_percent)),
            decoder_percent: whole(health.and_then(|health| health.decoder_percent)),
            ecc_corrected: health.and_then(|health| health.ecc_corrected),
            ecc_uncorrected: health.and_then(|health| health.ecc_uncorrected),
            retired_pages: health.and_then(|health| health.retired_pages),
            retirement_pending: health.and_then(|health| health.retirement_pending),
            remapped_rows: health.and_then(|health| health.remapped_rows),
            remapping_pending: health.and_then(|health| health.remapping_pending),
            remapping_failed: health.and_then(|health| health.remapping_failed),
            persistence: health.and_then(|health| health.persistence),
            health_age_seconds: age(at, health.map(|health: &GpuHealth| health.read_at)),
            xids: xids.map(|xids| xids.iter().map(|xid| XidReport::new(xid, at)).collect()),
            processes: processes(now.processes.as_ref(), at),
            instances: instances
                .map(|(part, busy)| GpuInstanceReport::new(part, *busy, at))
                .collect(),
            visible_to_job: now.visible_to_job,
            ranks: now.users.clone(),
            driver_ms_per_s: number(gpu.driver_time.map(|share| 1000.0 * share.0), 2),
            absent: now.absent.clone(),
        }
    }
}

impl SwingReport {
    fn new(swing: Oscillation) -> Self {
        Self {
            period_seconds: round(swing.period, 2),
            regular: swing.regular,
            rest_share: share(swing.resting),
        }
    }
}

impl XidReport {
    fn new(xid: &Xid, at: Option<Moment>) -> Self {
        Self {
            number: xid.number,
            age_seconds: age(at, Some(xid.at)),
        }
    }
}

impl GpuInstanceReport {
    fn new(part: &GpuInstance, busy: Option<Share>, at: Option<Moment>) -> Self {
        let counters = part.counters.as_ref();
        Self {
            uuid: part.uuid.clone(),
            gpu_instance: part.gpu_instance,
            compute_instance: part.compute_instance,
            busy_share: busy.map(share),
            sm_active_share: counters.and_then(|counters| counters.sm_active).map(share),
            mem_used_bytes: part.mem_used,
            mem_total_bytes: part.mem_total,
            processes: processes(part.processes.as_ref(), at),
            gap: part.gap.clone(),
        }
    }
}

fn processes(list: Option<&Vec<GpuProcess>>, at: Option<Moment>) -> Option<Vec<GpuProcessReport>> {
    let process = |process: &GpuProcess| {
        let age = at.zip(process.sm_at);
        let age = age.map(|(at, taken)| at.since_start.saturating_sub(taken).as_secs_f64());
        GpuProcessReport {
            pid: process.pid,
            place: process.place,
            mem_bytes: process.mem,
            sm_percent: number(process.sm_percent, 1),
            sm_age_seconds: number(age, 1),
        }
    };
    list.map(|list| list.iter().map(process).collect())
}

fn age(at: Option<Moment>, since: Option<Moment>) -> Option<f64> {
    let age = at.zip(since).map(|(at, since)| at.seconds_since(&since));
    number(age, 1)
}
