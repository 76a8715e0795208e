//! Traffic of PCI Express and `NVLink`, and the figures that the driver returns by field number: instantaneous power
//! and memory temperature.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::PcieUtilCounter;
use nvml_wrapper_sys::bindings::field_id::{
    NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_PCIE_COUNT_RX_BYTES,
    NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_FI_DEV_POWER_INSTANT,
};

use super::errors::Troubles;
use super::plausible::{celsius, watts};
use super::raw::{self, ALL_LINKS, Field};
use crate::sample::{GpuSample, GpuTraffic, PcieSampled};
use crate::units::{Bytes, BytesPerSecond, Moment};

pub(super) fn read(
    device: &Device<'_>,
    at: Moment,
    sample: &mut GpuSample,
    troubles: &mut Troubles,
) {
    let wanted = [
        (NVML_FI_DEV_POWER_INSTANT, 0),
        (NVML_FI_DEV_MEMORY_TEMP, 0),
        (NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 0),
        (NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0),
        (NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINKS),
        (NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINKS),
    ];
    let answer = troubles.ask("fields", raw::fields(device, wanted));
    let Some([power, heat, pcie_rx, pcie_tx, nvlink_rx, nvlink_tx]) = answer else {
        return;
    };
    let narrow = |field: Field| u32::try_from(field.value).ok();
    let power = troubles.ask("power_instant", power).and_then(narrow);
    sample.power_instant_watts = power.and_then(watts);
    let heat = troubles.ask("mem_temperature", heat).and_then(narrow);
    sample.mem_temperature_c = heat.and_then(celsius);
    // Missing byte counters are not reported as absent: the performance counters or the slow call give the rate.
    let bytes = |field: Field| field.wide.then_some(Bytes(field.value));
    let kibibytes = |field: Field| Some(Bytes(field.value.checked_mul(1024)?));
    let before = sample.traffic.and_then(|traffic| traffic.pcie_sampled);
    sample.traffic = Some(GpuTraffic {
        read_at: at,
        pcie_rx: pcie_rx.ok().and_then(bytes),
        pcie_tx: pcie_tx.ok().and_then(bytes),
        nvlink_rx: troubles.ask("nvlink", nvlink_rx).and_then(kibibytes),
        nvlink_tx: nvlink_tx.ok().and_then(kibibytes),
        pcie_sampled: before,
    });
}

/// Whether a cheaper source than [`sample_pcie`] has the PCI Express rate.
pub(super) fn has_pcie_rate(sample: &GpuSample) -> bool {
    let counted = sample
        .counters
        .is_some_and(|counters| counters.pcie_rx.is_some());
    counted
        || sample
            .traffic
            .is_some_and(|traffic| traffic.pcie_rx.is_some())
}

/// Reads the PCI Express rates. The driver measures for 20 ms in each direction.
pub(super) fn sample_pcie(
    device: &Device<'_>,
    at: Moment,
    sample: &mut GpuSample,
    troubles: &mut Troubles,
) {
    let mut ask = |counter| {
        let kilobytes = troubles.ask("pcie", device.pcie_throughput(counter))?;
        // The driver's usual wrong value.
        (kilobytes != u32::MAX).then(|| BytesPerSecond(f64::from(kilobytes) * 1000.0))
    };
    let (rx, tx) = (ask(PcieUtilCounter::Receive), ask(PcieUtilCounter::Send));
    let sampled = rx.zip(tx).map(|(rx, tx)| PcieSampled {
        read_at: at,
        rx,
        tx,
    });
    let traffic = sample.traffic.get_or_insert(GpuTraffic {
        read_at: at,
        pcie_rx: None,
        pcie_tx: None,
        nvlink_rx: None,
        nvlink_tx: None,
        pcie_sampled: None,
    });
    traffic.pcie_sampled = sampled;
}
