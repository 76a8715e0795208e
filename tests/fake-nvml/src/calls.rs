//! The C functions of NVML that a monitor calls, with answers from the script.

use std::os::raw::{c_char, c_int, c_uint, c_ulonglong};
use std::sync::atomic::{AtomicUsize, Ordering};

use nvml_wrapper_sys::bindings::*;

use crate::script::{Script, error_number, is_instance, number, parent};

const SUCCESS: nvmlReturn_t = nvmlReturn_enum_NVML_SUCCESS;
const INVALID: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
const TOO_SMALL: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
const NOT_FOUND: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_NOT_FOUND;
const NOT_SUPPORTED: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
/// Number of utilisation samples that the driver keeps.
const RING: u64 = 72;

static USERS: AtomicUsize = AtomicUsize::new(0);

type Answer = Result<(), nvmlReturn_t>;

/// Exports C functions. The body of a `gpu` function gets the script and the GPU's number, that of a `sys` function the
/// script. It does not run if the script makes the call fail.
macro_rules! nvml {
    ($(sys $name:ident($($arg:ident: $kind:ty),*) |$script:ident| $body:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $kind),*) -> nvmlReturn_t {
            code(driver(stringify!($name)).and_then(|$script: Script| $body))
        }
    )* };
    ($(gpu $name:ident($($arg:ident: $kind:ty),*) |$script:ident, $gpu:ident| $body:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(device: nvmlDevice_t, $($arg: $kind),*) -> nvmlReturn_t {
            code(device_of(device, stringify!($name)).and_then(|($script, $gpu): (Script, Option<u32>)| $body))
        }
    )* };
}

mod events;
mod fields;
mod gpm;
mod health;
mod mig;

fn code(answer: Answer) -> nvmlReturn_t {
    answer.err().unwrap_or(SUCCESS)
}

fn driver(symbol: &str) -> Result<Script, nvmlReturn_t> {
    if USERS.load(Ordering::Relaxed) == 0 {
        return Err(nvmlReturn_enum_NVML_ERROR_UNINITIALIZED);
    }
    Script::check_call(None, symbol)
}

/// Returns the script and the device of a handle: a handle is the number of a GPU or of an instance, plus one.
fn device_of(device: nvmlDevice_t, symbol: &str) -> Result<(Script, Option<u32>), nvmlReturn_t> {
    let gpu = u32::try_from(device as usize).unwrap_or(0).checked_sub(1);
    if gpu.is_none_or(|gpu| parent(gpu) >= count(&Script::read())) {
        return Err(INVALID);
    }
    // A fault of a GPU applies to its instances as well.
    Ok((Script::check_call(gpu.map(parent), symbol)?, gpu))
}

fn handle(number: u32) -> nvmlDevice_t {
    (number as usize).wrapping_add(1) as nvmlDevice_t
}

fn count(script: &Script) -> u32 {
    script.number(None, "count", 1.0).unwrap_or(0.0) as u32
}

fn put<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the caller of a C function guarantees that the pointer is valid.
    unsafe { place.write(value) };
    Ok(())
}

fn put_text(place: *mut c_char, room: c_uint, text: &str) -> Answer {
    if text.len() >= room as usize {
        return Err(TOO_SMALL);
    }
    for (i, byte) in text.bytes().chain([0]).enumerate() {
        put(place.wrapping_add(i), byte as c_char)?;
    }
    Ok(())
}

/// Writes a list as the driver does: always the number of entries, and the entries if there is room.
fn put_list<T>(place: *mut T, room: *mut c_uint, list: Vec<T>) -> Answer {
    // SAFETY: as in `put`.
    let given = unsafe { room.as_ref() }.ok_or(INVALID)?;
    let fits = list.len() <= *given as usize && (list.is_empty() || !place.is_null());
    put(room, list.len() as c_uint)?;
    if !fits {
        return Err(TOO_SMALL);
    }
    for (i, item) in list.into_iter().enumerate() {
        put(place.wrapping_add(i), item)?;
    }
    Ok(())
}

fn init() -> Answer {
    let script = Script::check_call(None, "nvmlInit_v2")?;
    match script.text(None, "init") {
        Some(error) => Err(error_number(&error)),
        None => {
            USERS.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    code(init())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    code(init())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(_error: nvmlReturn_t) -> *const c_char {
    c"an error of the fake driver".as_ptr()
}

nvml! {
    sys nvmlShutdown() |_s| { USERS.fetch_sub(1, Ordering::Relaxed); Ok(()) };
    sys nvmlSystemGetDriverVersion(text: *mut c_char, room: c_uint) |s|
        put_text(text, room, &s.text(None, "driver").unwrap_or("580.95.05".into()));
    sys nvmlSystemGetNVMLVersion(text: *mut c_char, room: c_uint) |_s| put_text(text, room, "13.580.95.05");
    sys nvmlSystemGetCudaDriverVersion(version: *mut c_int) |_s| put(version, 13000);
    sys nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) |_s| put(version, 13000);
    sys nvmlDeviceGetCount_v2(number: *mut c_uint) |s| put(number, count(&s));
    sys nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) |_s| {
        if is_instance(index) {
            return Err(INVALID);
        }
        device_of(handle(index), "nvmlDeviceGetHandleByIndex_v2")?;
        put(device, handle(index))
    };
}

nvml! {
    gpu nvmlDeviceGetIndex(index: *mut c_uint) |_s, gpu| put(index, gpu.unwrap_or(0));
    gpu nvmlDeviceGetName(text: *mut c_char, room: c_uint) |s, gpu|
        put_text(text, room, &s.text(gpu, "name").unwrap_or("NVIDIA H200".into()));
    gpu nvmlDeviceGetUUID(text: *mut c_char, room: c_uint) |s, gpu| {
        let number = gpu.unwrap_or(0);
        let kind = if is_instance(number) { "MIG" } else { "GPU" };
        let own = || format!("{kind}-{number:08x}-aaaa-bbbb-cccc-0123456789ab");
        put_text(text, room, &s.text(gpu, "uuid").unwrap_or_else(own))
    };
    gpu nvmlDeviceGetPciInfo_v3(pci: *mut nvmlPciInfo_t) |_s, gpu| {
        // SAFETY: a structure of numbers and characters, for which all zeros are valid.
        let mut info: nvmlPciInfo_t = unsafe { std::mem::zeroed() };
        info.bus = gpu.unwrap_or(0) + 0x18;
        put_text(info.busId.as_mut_ptr(), 32, &format!("00000000:{:02X}:00.0", info.bus))?;
        put(pci, info)
    };
    gpu nvmlDeviceGetUtilizationRates(util: *mut nvmlUtilization_t) |s, gpu| {
        whole(&s, gpu)?;
        put(util, nvmlUtilization_t {
            gpu: s.number(gpu, "util", 0.0)? as c_uint,
            memory: s.number(gpu, "mem_util", 0.0)? as c_uint,
        })
    };
    gpu nvmlDeviceGetMemoryInfo(memory: *mut nvmlMemory_t) |s, gpu| {
        let (total, used) = memory_of(&s, gpu)?;
        put(memory, nvmlMemory_t { total, used, free: total.saturating_sub(used) })
    };
    gpu nvmlDeviceGetMemoryInfo_v2(memory: *mut nvmlMemory_v2_t) |s, gpu| {
        // SAFETY: as in `put`.
        let version = unsafe { memory.as_ref() }.ok_or(INVALID)?.version;
        if version as usize != size_of::<nvmlMemory_v2_t>() | 2 << 24 {
            return Err(nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        }
        let (total, used) = memory_of(&s, gpu)?;
        let reserved = s.number(gpu, "reserved", 0.0)? as u64;
        let free = total.saturating_sub(used + reserved);
        put(memory, nvmlMemory_v2_t { version, total, reserved, free, used })
    };
    gpu nvmlDeviceGetPowerUsage(milliwatts: *mut c_uint) |s, gpu|
        put(milliwatts, (s.number(gpu, "power", 100.0)? * 1000.0) as c_uint);
    gpu nvmlDeviceGetEnforcedPowerLimit(milliwatts: *mut c_uint) |s, gpu|
        put(milliwatts, (s.number(gpu, "limit", 700.0)? * 1000.0) as c_uint);
    gpu nvmlDeviceGetTemperature(_sensor: c_uint, degrees: *mut c_uint) |s, gpu|
        put(degrees, s.number(gpu, "temp", 40.0)? as c_uint);
    gpu nvmlDeviceGetClockInfo(clock: c_uint, mhz: *mut c_uint) |s, gpu| {
        let memory = clock == nvmlClockType_enum_NVML_CLOCK_MEM;
        let (key, without) = if memory { ("memclk", 3201.0) } else { ("sm", 1980.0) };
        put(mhz, s.number(gpu, key, without)? as c_uint)
    };
    gpu nvmlDeviceGetCurrentClocksThrottleReasons(reasons: *mut c_ulonglong) |s, gpu|
        put(reasons, s.number(gpu, "throttle", 0.0)? as c_ulonglong);
    gpu nvmlDeviceGetCurrentClocksEventReasons(reasons: *mut c_ulonglong) |s, gpu|
        put(reasons, s.number(gpu, "throttle", 0.0)? as c_ulonglong);
    gpu nvmlDeviceGetMigMode(current: *mut c_uint, pending: *mut c_uint) |s, gpu| {
        let mode = s.number(gpu, "mig", 0.0)? as c_uint;
        put(current, mode)?;
        put(pending, mode)
    };
    gpu nvmlDeviceGetGraphicsRunningProcesses_v3(room: *mut c_uint, place: *mut nvmlProcessInfo_t) |_s, _gpu|
        put_list(place, room, Vec::new());
    gpu nvmlDeviceGetComputeRunningProcesses_v3(room: *mut c_uint, place: *mut nvmlProcessInfo_t) |s, gpu|
        list_processes(&s, gpu, place, room);
    gpu nvmlDeviceGetComputeRunningProcesses_v2(room: *mut c_uint, place: *mut nvmlProcessInfo_t) |s, gpu|
        list_processes(&s, gpu, place, room);
    gpu nvmlDeviceGetProcessUtilization(
        place: *mut nvmlProcessUtilizationSample_t, room: *mut c_uint, seen: c_ulonglong
    ) |s, gpu| {
        whole(&s, gpu)?;
        // The newest sample that is at least `procs_age` old.
        let age = s.number(gpu, "procs_age", 0.0)?;
        let last = s.driver_us(s.now - age);
        let newest = ring(&s, gpu, seen)?.into_iter().rfind(|(_, time)| *time <= last);
        let Some((_, time)) = newest else { return Err(NOT_FOUND) };
        let key = if s.text(gpu, "sm_procs").is_some() { "sm_procs" } else { "procs" };
        let list: Vec<_> = processes(&s, gpu, key)
            .into_iter()
            .filter(|process| process.sm > 0)
            .map(|process| nvmlProcessUtilizationSample_t {
                pid: process.pid,
                timeStamp: time,
                smUtil: process.sm,
                memUtil: process.mem,
                encUtil: 0,
                decUtil: 0,
            })
            .collect();
        if list.is_empty() { Err(NOT_FOUND) } else { put_list(place, room, list) }
    };
    gpu nvmlDeviceGetSamples(
        kind: nvmlSamplingType_t, seen: c_ulonglong, value: *mut nvmlValueType_t, room: *mut c_uint,
        place: *mut nvmlSample_t
    ) |s, gpu| {
        whole(&s, gpu)?;
        if kind != nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES {
            return Err(NOT_SUPPORTED);
        }
        put(value, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT)?;
        if place.is_null() {
            return put(room, RING as c_uint);
        }
        let list: Vec<_> = ring(&s, gpu, seen)?
            .into_iter()
            .map(|(util, time)| nvmlSample_t {
                timeStamp: time,
                sampleValue: nvmlValue_t { uiVal: util },
            })
            .collect();
        if list.is_empty() { Err(NOT_FOUND) } else { put_list(place, room, list) }
    };
}

/// Whether a GPU is divided: MIG is on.
fn divided(script: &Script, gpu: Option<u32>) -> bool {
    script.number(gpu, "mig", 0.0).unwrap_or(0.0) > 0.0
}

/// Returns an error for a divided GPU or an instance, which have no utilisation.
fn whole(script: &Script, gpu: Option<u32>) -> Answer {
    if divided(script, gpu) || gpu.is_some_and(is_instance) {
        Err(NOT_SUPPORTED)
    } else {
        Ok(())
    }
}

fn memory_of(script: &Script, gpu: Option<u32>) -> Result<(u64, u64), nvmlReturn_t> {
    let total = script.number(gpu, "total", number("141G"))?;
    Ok((total as u64, script.number(gpu, "used", 0.0)? as u64))
}

/// Returns the utilisation samples newer than `seen`, oldest first: (percent, microseconds).
fn ring(script: &Script, gpu: Option<u32>, seen: u64) -> Result<Vec<(c_uint, u64)>, nvmlReturn_t> {
    let step_us = (script.number(gpu, "sample_ms", 140.0)?.max(1.0) * 1000.0) as u64;
    let now_us = script.driver_us(script.now);
    let last = now_us / step_us;
    script.number(gpu, "util", 0.0)?;
    (last.saturating_sub(RING - 1)..=last)
        .map(|tick| tick * step_us)
        .filter(|time| *time > seen)
        .map(|time| {
            let at = (time as f64 - script.epoch_us as f64) / 1e6;
            Ok((script.number_at(gpu, "util", 0.0, at)? as c_uint, time))
        })
        .collect()
}

struct Process {
    pid: c_uint,
    bytes: c_ulonglong,
    sm: c_uint,
    mem: c_uint,
}

fn list_processes(
    s: &Script,
    gpu: Option<u32>,
    place: *mut nvmlProcessInfo_t,
    room: *mut c_uint,
) -> Answer {
    let list = processes(s, gpu, "procs").into_iter();
    let list = list.map(|process| nvmlProcessInfo_t {
        pid: process.pid,
        usedGpuMemory: process.bytes,
        gpuInstanceId: c_uint::MAX,
        computeInstanceId: c_uint::MAX,
    });
    if s.number(gpu, "drift", 0.0)? == 0.0 {
        return put_list(place, room, list.collect());
    }
    // As in driver 535.54.03: the structure has one field more than the header declares for this call.
    let drifted = list.map(|process| Drifted {
        process,
        protected: 0,
    });
    put_list(place.cast::<Drifted>(), room, drifted.collect())
}

/// One field longer than [`nvmlProcessInfo_t`].
#[repr(C)]
struct Drifted {
    process: nvmlProcessInfo_t,
    protected: c_ulonglong,
}

fn processes(script: &Script, gpu: Option<u32>, key: &str) -> Vec<Process> {
    let text = script.text(gpu, key).unwrap_or_default();
    text.split(',')
        .filter_map(|process| {
            let mut parts = process.split(':');
            Some(Process {
                pid: parts.next()?.parse().ok()?,
                bytes: match parts.next()? {
                    "-" => NVML_VALUE_NOT_AVAILABLE as c_ulonglong,
                    bytes => number(bytes) as c_ulonglong,
                },
                sm: parts.next().map_or(0, |sm| number(sm) as c_uint),
                mem: parts.next().map_or(0, |mem| number(mem) as c_uint),
            })
        })
        .collect()
}
