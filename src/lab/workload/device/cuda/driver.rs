//! Checks for a usable CUDA driver before cudarc makes its first call, because cudarc panics if the library or one of
//! its functions is missing.
//!
//! Does not depend on copies and steps.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr;

use cudarc::driver::DriverError;
use cudarc::driver::sys;

use super::DeviceError;

/// Every driver function that is called, by cudarc or here.
const SYMBOLS: &[&str] = &[
    "cuInit",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGetErrorString",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// Result codes with a plainer text here than the driver's own.
const STUB_LIBRARY: c_int = 34;
const NO_DEVICE: c_int = 100;
const SYSTEM_DRIVER_MISMATCH: c_int = 803;

type Function<T> = unsafe extern "C" fn(T) -> c_int;

/// Finds the driver and a GPU.
///
/// # Errors
/// Returns an error with the reason why no GPU can be used.
#[expect(unsafe_code, reason = "loads the driver's library and calls into it")]
pub(super) fn probe() -> Result<(), DeviceError> {
    let refuse = |why: String| Err(DeviceError(why));
    // SAFETY: loading the driver runs its initialisers, as it does in every program that uses CUDA.
    if !unsafe { sys::is_culib_present() } {
        return refuse("no CUDA driver (libcuda.so.1 not found)".to_owned());
    }
    // SAFETY: the library is there, so this does not panic.
    let library = unsafe { sys::culib() };
    let lacks = |symbol| DeviceError(format!("the CUDA driver lacks {symbol}"));
    for &symbol in SYMBOLS {
        // SAFETY: only looked up, not called.
        unsafe { library.get::<Function<()>>(symbol) }.map_err(|_| lacks(symbol))?;
    }
    // Codes are treated as numbers: a newer driver may return one that cudarc's enumeration lacks.
    let mut count: c_int = 0;
    // SAFETY: the types are those of cuda.h, and each pointer is to a variable that outlives the call.
    let (call, code) = unsafe {
        let init = library.get::<Function<c_uint>>("cuInit");
        let get_count = library.get::<Function<*mut c_int>>("cuDeviceGetCount");
        match init.map_err(|_| lacks("cuInit"))?(0) {
            0 => {
                let get_count = get_count.map_err(|_| lacks("cuDeviceGetCount"))?;
                ("cuDeviceGetCount", get_count(&raw mut count))
            }
            code => ("cuInit", code),
        }
    };
    match code {
        0 if count > 0 => Ok(()),
        0 | NO_DEVICE => refuse("the CUDA driver finds no GPU".to_owned()),
        STUB_LIBRARY => refuse(
            "the CUDA library is the toolkit's stub, not the driver's (check LD_LIBRARY_PATH)"
                .to_owned(),
        ),
        SYSTEM_DRIVER_MISMATCH => refuse(
            "CUDA library and kernel driver versions differ (reboot after an update)".to_owned(),
        ),
        code => refuse(format!("{call} failed: {}", words(code))),
    }
}

/// Returns the driver's text for a result code.
#[expect(unsafe_code, reason = "calls into the driver's library")]
fn words(code: c_int) -> String {
    type ErrorString = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
    let mut text = ptr::null();
    // SAFETY: as in `probe`; the driver's text lives as long as the library, which is never unloaded.
    let text = unsafe {
        match sys::culib().get::<ErrorString>("cuGetErrorString") {
            Ok(ask) if ask(code, &raw mut text) == 0 && !text.is_null() => {
                Some(CStr::from_ptr(text))
            }
            _ => None,
        }
    };
    text.map_or_else(|| format!("error {code}"), plain)
}

/// Returns the conversion of a cudarc error into one that names the failed operation, `what`.
pub(super) fn failed(what: &'static str) -> impl Fn(DriverError) -> DeviceError {
    move |error| DeviceError(format!("{what}: {}", words(error.0 as c_int)))
}

fn plain(text: &CStr) -> String {
    let text = text.to_string_lossy();
    text.trim_end_matches('.').to_owned()
}
