//! Calls that `nvml-wrapper` lacks or gets wrong: fields with a scope, the list of processes in one call, the numbers
//! of an instance, clock reasons under their current name.
//!
//! Each looks its symbol up in the library, so a driver without it returns an error instead of causing a panic.

use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper_sys::bindings::{
    nvmlFieldValue_t, nvmlProcessInfo_t, nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE,
};

/// Scope of the fields of all links of a GPU together.
pub(super) const ALL_LINKS: u32 = u32::MAX;

/// Value of one field.
pub(super) struct Field {
    pub(super) value: u64,
    /// Whether the value has 64 bits. A narrower counter wraps within a second at the speed of a GPU.
    pub(super) wide: bool,
}

/// Reads the fields `wanted`, given by number and scope, in that order.
#[expect(unsafe_code, reason = "calls into the driver's library")]
pub(super) fn fields<const N: usize>(
    device: &Device<'_>,
    wanted: [(u32, u32); N],
) -> Result<[Result<Field, NvmlError>; N], NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetFieldValues.as_ref())?;
    let mut values = wanted.map(|(id, scope)| {
        // SAFETY: a structure of numbers, for which all zeros is valid.
        let mut value: nvmlFieldValue_t = unsafe { std::mem::zeroed() };
        value.fieldId = id;
        value.scopeId = scope;
        value
    });
    let count = i32::try_from(N).unwrap_or(i32::MAX);
    // SAFETY: the handle comes from the driver, and `values` has `count` entries.
    nvml_try(unsafe { call(device.handle(), count, values.as_mut_ptr()) })?;
    Ok(values.map(|value| field(&value)))
}

#[expect(
    unsafe_code,
    reason = "reads the member of a union that the driver names"
)]
fn field(given: &nvmlFieldValue_t) -> Result<Field, NvmlError> {
    nvml_try(given.nvmlReturn)?;
    let value = given.value;
    // SAFETY: every bit pattern is a value of each of these.
    let (number, wide) = unsafe {
        match given.valueType {
            1 => (Some(value.uiVal.into()), false),
            2 => (Some(value.ulVal), true),
            3 => (Some(value.ullVal), true),
            4 => (u64::try_from(value.sllVal).ok(), true),
            5 => (u64::try_from(value.siVal).ok(), false),
            6 => (Some(value.usVal.into()), false),
            _ => (None, false),
        }
    };
    let value = number.ok_or(NvmlError::UnexpectedVariant(given.valueType))?;
    Ok(Field { value, wide })
}

/// Lists the compute processes on the GPU, in one call if they are few.
#[expect(unsafe_code, reason = "calls into the driver's library")]
pub(super) fn processes(device: &Device<'_>) -> Result<Vec<nvmlProcessInfo_t>, NvmlError> {
    const ROOM: usize = 64;
    let lib = device.nvml().lib();
    let newest = nvml_sym(lib.nvmlDeviceGetComputeRunningProcesses_v3.as_ref());
    // The same structure under its older name.
    let call =
        newest.or_else(|_| nvml_sym(lib.nvmlDeviceGetComputeRunningProcesses_v2.as_ref()))?;
    let mut room = ROOM;
    loop {
        // SAFETY: a structure of numbers, for which all zeros is valid.
        let nothing: nvmlProcessInfo_t = unsafe { std::mem::zeroed() };
        // Twice the room that the driver is given: some drivers have written longer structures than the call's.
        let mut list = vec![nothing; 2 * room];
        let mut count = u32::try_from(room).unwrap_or(u32::MAX);
        // SAFETY: the handle comes from the driver, and the list is longer than `count`.
        let answer = unsafe { call(device.handle(), &raw mut count, list.as_mut_ptr()) };
        let found = usize::try_from(count).unwrap_or(0);
        if answer == nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE && found > room && found < 100_000
        {
            room = found + ROOM;
            continue;
        }
        nvml_try(answer)?;
        list.truncate(found);
        return Ok(list);
    }
}

/// Returns the numbers of the GPU instance and the compute instance of a MIG device handle.
#[expect(unsafe_code, reason = "calls into the driver's library")]
pub(super) fn instance(device: &Device<'_>) -> Result<(u32, u32), NvmlError> {
    let lib = device.nvml().lib();
    let gpu = nvml_sym(lib.nvmlDeviceGetGpuInstanceId.as_ref())?;
    let compute = nvml_sym(lib.nvmlDeviceGetComputeInstanceId.as_ref())?;
    let (mut gi, mut ci) = (0, 0);
    // SAFETY: the handle comes from the driver.
    unsafe {
        nvml_try(gpu(device.handle(), &raw mut gi))?;
        nvml_try(compute(device.handle(), &raw mut ci))?;
    }
    Ok((gi, ci))
}

/// Returns the bits of the reasons for the current clocks, including those without a name here.
#[expect(unsafe_code, reason = "calls into the driver's library")]
pub(super) fn clock_reasons(device: &Device<'_>) -> Result<u64, NvmlError> {
    let lib = device.nvml().lib();
    let mut bits = 0;
    let newest = nvml_sym(lib.nvmlDeviceGetCurrentClocksEventReasons.as_ref());
    let call =
        newest.or_else(|_| nvml_sym(lib.nvmlDeviceGetCurrentClocksThrottleReasons.as_ref()))?;
    // SAFETY: the handle comes from the driver.
    nvml_try(unsafe { call(device.handle(), &raw mut bits) })?;
    Ok(bits)
}
