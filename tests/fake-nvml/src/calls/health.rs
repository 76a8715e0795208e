//! Figures that change slowly: the link, the video engines, errors of the memory, energy, persistence.

use std::os::raw::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::*;

use super::{INVALID, code, device_of, put};
use crate::script::Script;

nvml! {
    gpu nvmlDeviceGetMinorNumber(minor: *mut c_uint) |s, gpu|
        put(minor, s.number(gpu, "minor", f64::from(gpu.unwrap_or(0)))? as c_uint);
    gpu nvmlDeviceGetPersistenceMode(mode: *mut nvmlEnableState_t) |s, gpu|
        put(mode, s.number(gpu, "persistence", 1.0)? as nvmlEnableState_t);
    gpu nvmlDeviceGetTotalEnergyConsumption(millijoules: *mut c_ulonglong) |s, gpu|
        put(millijoules, (s.energy_joules(gpu)? * 1000.0) as c_ulonglong);
    gpu nvmlDeviceGetCurrPcieLinkGeneration(value: *mut c_uint) |s, gpu|
        put(value, s.number(gpu, "pcie_gen", 5.0)? as c_uint);
    gpu nvmlDeviceGetCurrPcieLinkWidth(value: *mut c_uint) |s, gpu|
        put(value, s.number(gpu, "pcie_width", 16.0)? as c_uint);
    gpu nvmlDeviceGetMaxPcieLinkGeneration(value: *mut c_uint) |s, gpu|
        put(value, s.number(gpu, "pcie_max_gen", 5.0)? as c_uint);
    gpu nvmlDeviceGetMaxPcieLinkWidth(value: *mut c_uint) |s, gpu|
        put(value, s.number(gpu, "pcie_max_width", 16.0)? as c_uint);
    gpu nvmlDeviceGetPcieThroughput(counter: nvmlPcieUtilCounter_t, kilobytes: *mut c_uint) |s, gpu| {
        let sent = counter == nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_TX_BYTES;
        if !sent && counter != nvmlPcieUtilCounter_enum_NVML_PCIE_UTIL_RX_BYTES {
            return Err(INVALID);
        }
        let key = if sent { "pcie_tx" } else { "pcie_rx" };
        put(kilobytes, (s.number(gpu, key, 0.0)? / 1000.0) as c_uint)
    };
    gpu nvmlDeviceGetEncoderUtilization(percent: *mut c_uint, period_us: *mut c_uint) |s, gpu| {
        put(period_us, 167_000)?;
        put(percent, s.number(gpu, "enc", 0.0)? as c_uint)
    };
    gpu nvmlDeviceGetDecoderUtilization(percent: *mut c_uint, period_us: *mut c_uint) |s, gpu| {
        put(period_us, 167_000)?;
        put(percent, s.number(gpu, "dec", 0.0)? as c_uint)
    };
    gpu nvmlDeviceGetTotalEccErrors(
        kind: nvmlMemoryErrorType_t, _counter: nvmlEccCounterType_t, errors: *mut c_ulonglong
    ) |s, gpu| {
        let corrected = kind == nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED;
        let key = if corrected { "ecc_corrected" } else { "ecc_uncorrected" };
        put(errors, s.number(gpu, key, 0.0)? as c_ulonglong)
    };
    gpu nvmlDeviceGetRemappedRows(
        correctable: *mut c_uint, uncorrectable: *mut c_uint, pending: *mut c_uint, failure: *mut c_uint
    ) |s, gpu| {
        let [a, b, c, d] = s.remapped(gpu)?;
        put(correctable, a)?;
        put(uncorrectable, b)?;
        put(pending, c)?;
        put(failure, d)
    };
}

impl Script {
    /// Returns the energy that the script sets, or else the integral of the power.
    pub(super) fn energy_joules(&self, gpu: Option<u32>) -> Result<f64, nvmlReturn_t> {
        match self.text(gpu, "energy") {
            Some(_) => self.number(gpu, "energy", 0.0),
            None => self.integral(gpu, "power", 100.0),
        }
    }

    /// Parses `COR:UNC:PENDING:FAILURE`, all 0 if the script does not set it.
    pub(super) fn remapped(&self, gpu: Option<u32>) -> Result<[c_uint; 4], nvmlReturn_t> {
        let text = self.text(gpu, "remapped").unwrap_or_default();
        if text == "none" {
            return Err(super::NOT_SUPPORTED);
        }
        let mut parts = text.split(':').map(|part| part.parse().unwrap_or(0));
        Ok([(); 4].map(|()| parts.next().unwrap_or(0)))
    }
}
