//! Event sets: Xid errors, each reported once to each set.

use std::os::raw::{c_uint, c_ulonglong};
use std::sync::Mutex;
use std::time::Duration;

use nvml_wrapper_sys::bindings::*;

use super::{INVALID, code, device_of, driver, handle, put};
use crate::script::Script;

/// The GPUs of a set, each with the number of events already reported.
struct Set(Mutex<Vec<(u32, usize)>>);

/// Returns the set of a handle.
fn set_of(set: nvmlEventSet_t) -> Result<&'static Set, nvmlReturn_t> {
    // SAFETY: handles come from `nvmlEventSetCreate`, and callers use none that they have freed.
    unsafe { set.cast::<Set>().as_ref() }.ok_or(INVALID)
}

fn next(set: &Set, script: &Script) -> Option<nvmlEventData_t> {
    let mut gpus = set.0.lock().ok()?;
    gpus.iter_mut().find_map(|(gpu, told)| {
        let xid = script.events(*gpu, "xid").get(*told)?.parse().ok()?;
        *told += 1;
        Some(nvmlEventData_t {
            device: handle(*gpu),
            eventType: c_ulonglong::from(nvmlEventTypeXidCriticalError),
            eventData: xid,
            gpuInstanceId: c_uint::MAX,
            computeInstanceId: c_uint::MAX,
        })
    })
}

nvml! {
    sys nvmlEventSetCreate(place: *mut nvmlEventSet_t) |_s|
        put(place, Box::into_raw(Box::new(Set(Mutex::default()))).cast());
    sys nvmlEventSetFree(set: nvmlEventSet_t) |_s| {
        set_of(set)?;
        // SAFETY: as in `set_of`; the caller does not use it afterwards.
        drop(unsafe { Box::from_raw(set.cast::<Set>()) });
        Ok(())
    };
    sys nvmlEventSetWait_v2(set: nvmlEventSet_t, place: *mut nvmlEventData_t, timeout_ms: c_uint) |s| {
        let set = set_of(set)?;
        if let Some(event) = next(set, &s) {
            return put(place, event);
        }
        #[expect(clippy::disallowed_methods, reason = "the driver waits for the given time")]
        std::thread::sleep(Duration::from_millis(timeout_ms.into()));
        let event = next(set, &Script::read());
        put(place, event.ok_or(nvmlReturn_enum_NVML_ERROR_TIMEOUT)?)
    };
}

nvml! {
    gpu nvmlDeviceRegisterEvents(_kinds: c_ulonglong, set: nvmlEventSet_t) |s, gpu| {
        if s.text(gpu, "events").as_deref() == Some("none") {
            return Err(super::NOT_SUPPORTED);
        }
        let mut gpus = set_of(set)?.0.lock().map_err(|_| INVALID)?;
        gpus.extend(gpu.map(|gpu| (gpu, 0)));
        Ok(())
    };
    gpu nvmlDeviceGetSupportedEventTypes(kinds: *mut c_ulonglong) |_s, _gpu|
        put(kinds, c_ulonglong::from(nvmlEventTypeXidCriticalError));
}
