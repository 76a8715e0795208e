//! The C functions of the driver that cudarc and pipetop call.

use std::ffi::{CStr, c_char, c_float, c_int, c_uint, c_void};
use std::slice;

use crate::world::{
    Answer, INVALID_HANDLE, INVALID_PTX, INVALID_VALUE, Kernel, NOT_FOUND, NOT_READY, World, now,
    wait,
};

/// Exports functions that need a working GPU. Each body gets the world, unless the script makes the call fail.
macro_rules! cuda {
    ($($name:ident($($arg:ident: $kind:ty),*) |$world:ident| $body:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $kind),*) -> c_int {
            let mut world = World::lock();
            let entered = world.enter(stringify!($name));
            let $world = &mut *world;
            code(entered.and_then(|()| $body))
        }
    )* };
}

/// Exports functions that wait. Each body returns the time until which to wait; the world is not locked meanwhile.
macro_rules! waiting {
    ($($name:ident($($arg:ident: $kind:ty),*) |$world:ident| $body:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $kind),*) -> c_int {
            let mut world = World::lock();
            let entered = world.enter(stringify!($name));
            let $world = &mut *world;
            let until: Result<u64, c_int> = entered.and_then(|()| $body);
            drop(world);
            code(until.and_then(wait))
        }
    )* };
}

fn code(answer: Answer) -> c_int {
    answer.err().unwrap_or(0)
}

fn put<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller of a C function guarantees that the pointer is valid.
    unsafe { place.write(value) };
    Ok(())
}

fn text<'a>(place: *const c_char) -> Result<&'a str, c_int> {
    if place.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: as in `put`.
    unsafe { CStr::from_ptr(place) }
        .to_str()
        .map_err(|_| INVALID_VALUE)
}

fn drop_from<K: std::hash::Hash + Eq, V>(
    map: &mut std::collections::HashMap<K, V>,
    key: K,
) -> Answer {
    map.remove(&key).map(drop).ok_or(INVALID_HANDLE)
}

/// Returns a kernel's argument; all of them are 64 bits wide.
fn argument(arguments: *mut *mut c_void, number: usize) -> u64 {
    // SAFETY: as in `put`; both kernels have at least two arguments.
    unsafe { (*arguments.add(number)).cast::<u64>().read() }
}

/// Returns the driver's text for an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(error: c_int, place: *mut *const c_char) -> c_int {
    World::lock().script.log("cuGetErrorString");
    let words = match error {
        1 => c"invalid argument",
        2 => c"out of memory",
        34 => c"CUDA driver is a stub library",
        100 => c"no CUDA-capable device is detected",
        218 => c"a PTX JIT compilation failed",
        222 => c"the provided PTX was compiled with an unsupported toolchain.",
        500 => c"named symbol not found",
        700 => c"an illegal memory access was encountered",
        719 => c"unspecified launch failure",
        803 => c"system has unsupported display driver / cuda driver combination",
        999 => c"unknown error",
        _ => return INVALID_VALUE,
    };
    code(put(place, words.as_ptr()))
}

/// Returns the device's time in nanoseconds. No driver has this function.
#[unsafe(no_mangle)]
unsafe extern "C" fn fakeCudaClock() -> u64 {
    now()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> c_int {
    let mut world = World::lock();
    let left = world.left();
    world.script.log("cuDevicePrimaryCtxRelease_v2");
    world.script.log(&left);
    world.broken = None;
    0
}

cuda! {
    cuInit(_flags: c_uint) |_w| Ok(());
    cuDeviceGetCount(count: *mut c_int) |w| put(count, w.script.devices);
    cuDeviceGet(device: *mut c_int, ordinal: c_int) |w| {
        if ordinal < w.script.devices { put(device, ordinal) } else { Err(101) }
    };
    cuDeviceGetName(place: *mut c_char, room: c_int, _device: c_int) |_w| {
        for (i, byte) in b"Fake GPU\0".iter().enumerate().take(room.unsigned_abs() as usize) {
            put(place.wrapping_add(i), *byte as c_char)?;
        }
        Ok(())
    };
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, _device: c_int) |w| match attribute {
        16 => put(value, 132),
        115 => put(value, c_int::from(w.script.pools)),
        _ => Err(INVALID_VALUE),
    };
    cuDevicePrimaryCtxRetain(context: *mut usize, _device: c_int) |_w| put(context, 0xc0);
    cuCtxGetCurrent(context: *mut usize) |w| put(context, w.context);
    cuCtxSetCurrent(context: usize) |w| { w.context = context; Ok(()) };

    cuStreamCreate(stream: *mut usize, _flags: c_uint) |w| {
        let handle = w.handle();
        w.streams.insert(handle, 0);
        put(stream, handle)
    };
    cuStreamDestroy_v2(stream: usize) |w| drop_from(&mut w.streams, stream);
    cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) |w| {
        let time = w.events.get(&event).ok_or(INVALID_HANDLE)?.unwrap_or(0);
        let free = w.stream(stream)?;
        *free = time.max(*free);
        Ok(())
    };

    cuEventCreate(event: *mut usize, _flags: c_uint) |w| {
        let handle = w.handle();
        w.events.insert(handle, None);
        put(event, handle)
    };
    cuEventDestroy_v2(event: usize) |w| drop_from(&mut w.events, event);
    cuEventRecord(event: usize, stream: usize) |w| {
        let time = now().max(*w.stream(stream)?);
        *w.events.get_mut(&event).ok_or(INVALID_HANDLE)? = Some(time);
        Ok(())
    };
    cuEventElapsedTime(milliseconds: *mut c_float, start: usize, end: usize) |w| {
        let time = |event| w.events.get(&event).copied().flatten().ok_or(INVALID_HANDLE);
        let (start, end) = (time(start)?, time(end)?);
        if now() < end.max(start) {
            return Err(NOT_READY);
        }
        put(milliseconds, (end as f64 - start as f64) as c_float / 1e6)
    };

    cuModuleLoadData(module: *mut usize, image: *const c_char) |w| {
        let source = text(image)?;
        if !source.contains("\n.version ") {
            return Err(INVALID_PTX);
        }
        let handle = w.handle();
        w.modules.insert(handle, source.to_owned());
        put(module, handle)
    };
    cuModuleUnload(module: usize) |w| drop_from(&mut w.modules, module);
    cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) |w| {
        let name = text(name)?;
        let source = w.modules.get(&module).ok_or(INVALID_HANDLE)?;
        let kernel = match name {
            "touch" => Kernel::Touch,
            "spin" => Kernel::Spin,
            _ => return Err(NOT_FOUND),
        };
        if !source.contains(&format!(".visible .entry {name}(")) {
            return Err(NOT_FOUND);
        }
        let handle = w.handle();
        w.functions.insert(handle, kernel);
        put(function, handle)
    };
    cuLaunchKernel(
        function: usize,
        _grid_x: c_uint, _grid_y: c_uint, _grid_z: c_uint,
        _block_x: c_uint, _block_y: c_uint, _block_z: c_uint,
        _shared: c_uint, stream: usize, arguments: *mut *mut c_void, _extra: *mut *mut c_void
    ) |w| {
        let kernel = *w.functions.get(&function).ok_or(INVALID_HANDLE)?;
        w.launch(kernel, argument(arguments, 0), argument(arguments, 1), stream)
    };

    cuMemHostAlloc(place: *mut usize, bytes: usize, _flags: c_uint) |w| {
        let memory = vec![0xa5; bytes];
        let address = memory.as_ptr() as usize;
        w.pinned.insert(address, memory);
        put(place, address)
    };
    cuMemFreeHost(address: usize) |w| w.pinned.remove(&address).map(drop).ok_or(INVALID_VALUE);
    cuMemAlloc_v2(place: *mut u64, bytes: usize) |w| allocate(w, place, bytes);
    cuMemAllocAsync(place: *mut u64, bytes: usize, _stream: usize) |w| allocate(w, place, bytes);
    cuMemFree_v2(address: u64) |w| w.device.remove(&address).map(drop).ok_or(INVALID_VALUE);
    cuMemFreeAsync(address: u64, _stream: usize) |w| w.device.remove(&address).map(drop).ok_or(INVALID_VALUE);
    cuMemsetD8Async(address: u64, value: u8, bytes: usize, _stream: usize) |w| {
        w.memory(address, bytes).ok_or(INVALID_VALUE)?.fill(value);
        Ok(())
    };
}

fn allocate(world: &mut World, place: *mut u64, bytes: usize) -> Answer {
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let memory = vec![0xa5; bytes];
    let address = memory.as_ptr() as u64;
    world.device.insert(address, memory);
    put(place, address)
}

waiting! {
    cuMemcpyHtoDAsync_v2(target: u64, source: *const u8, bytes: usize, stream: usize) |w| {
        if source.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: as in `put`.
        let source = unsafe { slice::from_raw_parts(source, bytes) };
        w.copy(target, source, stream)
    };
    cuCtxSynchronize() |w| Ok(w.streams.values().copied().max().unwrap_or(0));
    cuStreamSynchronize(stream: usize) |w| w.stream(stream).copied();
    cuEventSynchronize(event: usize) |w| Ok(w.events.get(&event).ok_or(INVALID_HANDLE)?.unwrap_or(0));
}
