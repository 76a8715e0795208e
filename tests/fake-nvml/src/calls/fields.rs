//! Figures by field number, and by scope: one link of a GPU, or all of them.

use std::os::raw::{c_int, c_uint};

use nvml_wrapper_sys::bindings::field_id::*;
use nvml_wrapper_sys::bindings::*;

use super::{Answer, INVALID, NOT_SUPPORTED, code, device_of};
use crate::script::Script;

nvml! {
    gpu nvmlDeviceGetFieldValues(count: c_int, place: *mut nvmlFieldValue_t) |s, gpu| {
        let count = usize::try_from(count).map_err(|_| INVALID)?;
        if place.is_null() || count == 0 {
            return Err(INVALID);
        }
        // SAFETY: the caller of a C function guarantees that the pointers are valid.
        let fields = unsafe { std::slice::from_raw_parts_mut(place, count) };
        fields.iter_mut().try_for_each(|field| fill(&s, gpu, field))
    };
}

/// Fills one field, which has a result code of its own.
fn fill(script: &Script, gpu: Option<u32>, field: &mut nvmlFieldValue_t) -> Answer {
    field.timestamp = script.driver_us(script.now) as i64;
    field.latencyUsec = 0;
    match value(script, gpu, field.fieldId, field.scopeId) {
        Ok((kind, value)) => {
            field.valueType = kind;
            field.value = value;
            field.nvmlReturn = nvmlReturn_enum_NVML_SUCCESS;
        }
        Err(error) => field.nvmlReturn = error,
    }
    Ok(())
}

type Typed = (nvmlValueType_t, nvmlValue_t);

fn value(script: &Script, gpu: Option<u32>, id: u32, scope: u32) -> Result<Typed, nvmlReturn_t> {
    let raw = format!("field.{id}.{scope}");
    if script.text(gpu, &raw).is_some() {
        return script.number(gpu, &raw, 0.0).map(wide);
    }
    let given = |key: &str| match script.text(gpu, key) {
        Some(_) => script.number(gpu, key, 0.0),
        None => Err(NOT_SUPPORTED),
    };
    let counter = |key: &str| given(key).and_then(|_| script.integral(gpu, key, 0.0));
    let remapped = |place: usize| Ok(narrow(script.remapped(gpu)?[place]));
    match id {
        NVML_FI_DEV_MEMORY_TEMP => Ok(narrow(given("mem_temp")? as c_uint)),
        NVML_FI_DEV_POWER_INSTANT => Ok(narrow((given("instant")? * 1000.0) as c_uint)),
        NVML_FI_DEV_RETIRED_SBE => Ok(wide(given("retired_sbe")?)),
        NVML_FI_DEV_RETIRED_DBE => Ok(wide(given("retired_dbe")?)),
        NVML_FI_DEV_RETIRED_PENDING => Ok(wide(given("retired_pending")?)),
        NVML_FI_DEV_REMAPPED_COR => remapped(0),
        NVML_FI_DEV_REMAPPED_UNC => remapped(1),
        NVML_FI_DEV_REMAPPED_PENDING => remapped(2),
        NVML_FI_DEV_REMAPPED_FAILURE => remapped(3),
        NVML_FI_DEV_PCIE_COUNT_TX_BYTES | NVML_FI_DEV_PCIE_COUNT_RX_BYTES => {
            given("pcie_counters")?;
            let sent = id == NVML_FI_DEV_PCIE_COUNT_TX_BYTES;
            Ok(wide(counter(if sent { "pcie_tx" } else { "pcie_rx" })?))
        }
        // In KiB; link 0 has an eighth of the traffic.
        NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX | NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX => {
            let sent = id == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX;
            let all = counter(if sent { "nvlink_tx" } else { "nvlink_rx" })?;
            let part = if scope == c_uint::MAX { 1.0 } else { 8.0 };
            Ok(wide(all / part / 1024.0))
        }
        _ => Err(NOT_SUPPORTED),
    }
}

fn narrow(value: c_uint) -> Typed {
    let kind = nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT;
    (kind, nvmlValue_t { uiVal: value })
}

fn wide(value: f64) -> Typed {
    let kind = nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    (
        kind,
        nvmlValue_t {
            ullVal: value as u64,
        },
    )
}
