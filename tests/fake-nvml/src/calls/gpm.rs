//! Performance counters of Hopper and newer: the activity between two samples.
//!
//! The real driver crashes if two threads are in these calls at once. Here, the second one gets an error.

use std::os::raw::{c_char, c_uint};
use std::sync::Mutex;
use std::time::Duration;

use nvml_wrapper_sys::bindings::*;

use super::{Answer, INVALID, NOT_SUPPORTED, code, device_of, divided, driver, put};
use crate::script::{MAX_INSTANCES, Script, instance};

/// Least seconds between two samples.
const MIN_INTERVAL: f64 = 0.1;

/// The sampled device and the time in seconds; `None` until a sample is taken.
struct Taken(Option<(u32, f64)>);

nvml! {
    sys nvmlGpmSampleAlloc(place: *mut nvmlGpmSample_t) |_s|
        put(place, Box::into_raw(Box::new(Taken(None))).cast());
    sys nvmlGpmSampleFree(sample: nvmlGpmSample_t) |_s| {
        if sample.is_null() {
            return Err(INVALID);
        }
        // SAFETY: handles come from `nvmlGpmSampleAlloc`, and the caller does not use it afterwards.
        drop(unsafe { Box::from_raw(sample.cast::<Taken>()) });
        Ok(())
    };
    sys nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) |s| alone(&s, || metrics(&s, request));
}

nvml! {
    gpu nvmlGpmQueryDeviceSupport(support: *mut nvmlGpmSupport_t) |s, gpu| {
        // SAFETY: the caller of a C function guarantees that the pointer is valid.
        let support = unsafe { support.as_mut() }.ok_or(INVALID)?;
        if support.version != NVML_GPM_SUPPORT_VERSION {
            return Err(nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        }
        support.isSupportedDevice = u32::from(s.number(gpu, "gpm", 0.0)? > 0.0);
        Ok(())
    };
    gpu nvmlGpmSampleGet(sample: nvmlGpmSample_t) |s, gpu| {
        if divided(&s, gpu) {
            return Err(nvmlReturn_enum_NVML_ERROR_NO_PERMISSION);
        }
        alone(&s, || take(&s, sample, gpu, gpu))
    };
    gpu nvmlGpmMigSampleGet(gpu_instance: c_uint, sample: nvmlGpmSample_t) |s, gpu| {
        let number = gpu.unwrap_or(0);
        let found = (0..MAX_INSTANCES)
            .map(|place| instance(number, place))
            .find(|number| s.names(*number) && s.number(Some(*number), "gi", 0.0) == Ok(f64::from(gpu_instance)));
        alone(&s, || take(&s, sample, gpu, Some(found.ok_or(INVALID)?)))
    };
}

/// Makes a call take as long as the script says, and fails it if another thread is in one.
fn alone(s: &Script, call: impl FnOnce() -> Answer) -> Answer {
    static INSIDE: Mutex<()> = Mutex::new(());
    let _inside = INSIDE
        .try_lock()
        .map_err(|_| nvmlReturn_enum_NVML_ERROR_UNKNOWN)?;
    let milliseconds = s.number(None, "gpm_ms", 0.0)?;
    #[expect(clippy::disallowed_methods, reason = "a call takes time")]
    std::thread::sleep(Duration::from_secs_f64(milliseconds / 1e3));
    call()
}

/// Takes a sample. `whole` is the card that must have these counters, `part` the card or instance that is sampled.
fn take(s: &Script, sample: nvmlGpmSample_t, whole: Option<u32>, part: Option<u32>) -> Answer {
    if s.number(whole, "gpm", 0.0)? == 0.0 {
        return Err(NOT_SUPPORTED);
    }
    // SAFETY: handles come from `nvmlGpmSampleAlloc`.
    let taken = unsafe { sample.cast::<Taken>().as_mut() }.ok_or(INVALID)?;
    taken.0 = part.map(|part| (part, s.now));
    Ok(())
}

fn metrics(s: &Script, request: *mut nvmlGpmMetricsGet_t) -> Answer {
    // SAFETY: the caller guarantees that the request is valid; only `numMetrics` of its metrics are used.
    let version = unsafe { (*request).version };
    if version != NVML_GPM_METRICS_GET_VERSION {
        return Err(nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    // SAFETY: as above.
    let (count, one, other) = unsafe {
        (
            (*request).numMetrics,
            (*request).sample1,
            (*request).sample2,
        )
    };
    let taken = |sample: nvmlGpmSample_t| {
        // SAFETY: handles come from `nvmlGpmSampleAlloc`.
        unsafe { sample.cast::<Taken>().as_ref() }
            .and_then(|taken| taken.0)
            .ok_or(INVALID)
    };
    let ((of, from), (same, to)) = (taken(one)?, taken(other)?);
    if of != same || to - from < MIN_INTERVAL - 1e-9 {
        return Err(INVALID);
    }
    for at in 0..count as usize {
        // SAFETY: as above.
        let metric = unsafe { &mut (&mut (*request).metrics)[at] };
        let id = metric.metricId;
        let key = format!("gpm.{id}");
        let rate = |to| s.integral_to(Some(of), &key, 0.0, to);
        let answer = match s.text(Some(of), &key) {
            Some(_) => rate(to).and_then(|sum| Ok((sum - rate(from)?) / (to - from))),
            None => Err(NOT_SUPPORTED),
        };
        metric.nvmlReturn = answer.err().unwrap_or(nvmlReturn_enum_NVML_SUCCESS);
        metric.value = answer.unwrap_or(0.0);
        metric.metricInfo.unit = unit(id).as_ptr().cast::<c_char>().cast_mut();
        metric.metricInfo.shortName = c"fake".as_ptr().cast_mut();
        metric.metricInfo.longName = c"fake".as_ptr().cast_mut();
    }
    Ok(())
}

fn unit(id: c_uint) -> &'static std::ffi::CStr {
    match id {
        20 | 21 | 60.. => c"MiB/s",
        _ => c"%",
    }
}
