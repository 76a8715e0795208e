//! Instances of a divided GPU: those with lines in the script.

use std::os::raw::c_uint;

use nvml_wrapper_sys::bindings::*;

use super::{INVALID, NOT_FOUND, NOT_SUPPORTED, code, device_of, divided, handle, put};
use crate::script::{MAX_INSTANCES, Script, instance, is_instance, parent};

nvml! {
    gpu nvmlDeviceGetMaxMigDeviceCount(count: *mut c_uint) |s, gpu|
        put(count, if divided(&s, gpu) { MAX_INSTANCES } else { 0 });
    gpu nvmlDeviceGetMigDeviceHandleByIndex(index: c_uint, device: *mut nvmlDevice_t) |s, gpu| {
        if !divided(&s, gpu) {
            return Err(NOT_SUPPORTED);
        }
        if index >= MAX_INSTANCES {
            return Err(INVALID);
        }
        let number = instance(gpu.unwrap_or(0), index);
        if s.names(number) { put(device, handle(number)) } else { Err(NOT_FOUND) }
    };
    gpu nvmlDeviceIsMigDeviceHandle(is: *mut c_uint) |_s, gpu|
        put(is, c_uint::from(gpu.is_some_and(is_instance)));
    gpu nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device: *mut nvmlDevice_t) |_s, gpu|
        put(device, handle(parent(gpu.filter(|gpu| is_instance(*gpu)).ok_or(INVALID)?)));
    gpu nvmlDeviceGetGpuInstanceId(id: *mut c_uint) |s, gpu| part(&s, gpu, "gi", id);
    gpu nvmlDeviceGetComputeInstanceId(id: *mut c_uint) |s, gpu| part(&s, gpu, "ci", id);
}

fn part(s: &Script, gpu: Option<u32>, key: &str, id: *mut c_uint) -> super::Answer {
    if !gpu.is_some_and(is_instance) {
        return Err(INVALID);
    }
    put(id, s.number(gpu, key, 0.0)? as c_uint)
}
