//! The performance counters of Hopper and newer (GPM): means over the time between two polls.

use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::struct_wrappers::gpm::GpmMetricResult;
use nvml_wrapper::{Device, Nvml};

use super::errors::Troubles;
use super::plausible::percent;
use crate::sample::GpuCounters;
use crate::units::{BytesPerSecond, Moment, Share};

/// Shortest time between two samples, in seconds; the driver returns an error below that.
const MIN_INTERVAL: f64 = 0.1;
/// Upper bound of a plausible rate of a link or a bus, in bytes per second.
const MAX_BYTES: f64 = 1e14;
const FIGURE: &str = "counters";

const METRICS: [GpmMetricId; 9] = [
    GpmMetricId::GraphicsUtil,
    GpmMetricId::SmUtil,
    GpmMetricId::SmOccupancy,
    GpmMetricId::AnyTensorUtil,
    GpmMetricId::DramBwUtil,
    GpmMetricId::PcieRxPerSec,
    GpmMetricId::PcieTxPerSec,
    GpmMetricId::NvlinkTotalRxPerSec,
    GpmMetricId::NvlinkTotalTxPerSec,
];

/// The previous sample of a GPU or an instance.
#[derive(Debug, Default)]
pub(super) struct Counters {
    before: Option<(Moment, GpmSample<'static>)>,
    last: Option<GpuCounters>,
}

impl Counters {
    /// Takes a sample with `take` and returns the means since the previous one. `None` at the first.
    pub(super) fn read(
        &mut self,
        nvml: &'static Nvml,
        at: Moment,
        take: impl FnOnce() -> Result<GpmSample<'static>, NvmlError>,
        troubles: &mut Troubles,
    ) -> Option<GpuCounters> {
        let now = troubles.ask(FIGURE, may_free(nvml).and_then(|()| take()));
        let Some(now) = now else {
            *self = Self::default();
            return None;
        };
        match &self.before {
            Some((from, before)) if at.seconds_since(from) >= MIN_INTERVAL => {
                let answer = gpm_metrics_get(nvml, before, &now, &METRICS);
                let metrics = troubles.ask(FIGURE, answer);
                self.last = metrics.map(|metrics| means(*from, at, &metrics));
            }
            // Too early: the next means still start at the previous sample.
            Some(_) => return self.last,
            None => {}
        }
        self.before = Some((at, now));
        self.last
    }
}

/// Whether the GPU has these counters.
pub(super) fn supported(device: &Device<'_>) -> Result<(), NvmlError> {
    match device.gpm_support() {
        Ok(true) => Ok(()),
        Ok(false) => Err(NvmlError::NotSupported),
        Err(error) => Err(error),
    }
}

/// Returns an error if the driver cannot free samples: dropping one then panics.
fn may_free(nvml: &Nvml) -> Result<(), NvmlError> {
    let free = nvml.lib().nvmlGpmSampleFree.as_ref();
    free.map(drop).map_err(|_| NvmlError::FunctionNotFound)
}

fn means(from: Moment, to: Moment, metrics: &[Result<GpmMetricResult, NvmlError>]) -> GpuCounters {
    let find = |id: GpmMetricId| {
        let mut known = metrics.iter().flatten();
        known.find(|metric| metric.metric_id == id)
    };
    let share = |id| Some(Share(percent(find(id)?.value)? / 100.0));
    let rate = |id| bytes(find(id)?);
    GpuCounters {
        from,
        to,
        graphics: share(GpmMetricId::GraphicsUtil),
        sm_active: share(GpmMetricId::SmUtil),
        sm_occupancy: share(GpmMetricId::SmOccupancy),
        tensor: share(GpmMetricId::AnyTensorUtil),
        dram: share(GpmMetricId::DramBwUtil),
        pcie_rx: rate(GpmMetricId::PcieRxPerSec),
        pcie_tx: rate(GpmMetricId::PcieTxPerSec),
        nvlink_rx: rate(GpmMetricId::NvlinkTotalRxPerSec),
        nvlink_tx: rate(GpmMetricId::NvlinkTotalTxPerSec),
    }
}

/// Returns the rate, converted from the unit that the driver names; the header file says MiB/s.
fn bytes(metric: &GpmMetricResult) -> Option<BytesPerSecond> {
    const MIB: f64 = 1_048_576.0;
    let unit = match metric.metric_info.unit.trim() {
        "B/s" | "bytes/s" => 1.0,
        "KB/s" => 1e3,
        "KiB/s" => 1024.0,
        "MB/s" => 1e6,
        "GB/s" => 1e9,
        "GiB/s" => 1024.0 * MIB,
        _ => MIB,
    };
    let rate = metric.value * unit;
    (0.0..MAX_BYTES)
        .contains(&rate)
        .then_some(BytesPerSecond(rate))
}
