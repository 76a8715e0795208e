//! For `LD_PRELOAD`: a process that loads this cannot attach to others, as under Yama's `ptrace_scope` 1.
//!
//! Yama denies `PTRACE_MODE_ATTACH` and allows `PTRACE_MODE_READ`: so `ptrace`, the `process_vm_*` calls and the
//! files `mem`, `syscall`, `stack`, `personality` of `/proc/PID` and of its tasks are denied here, and nothing else.
//! A process may always inspect itself. Calls that bypass the C library are not intercepted.

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};

use libc::{iovec, mode_t, pid_t, ssize_t};

fn deny(errno: c_int) -> c_int {
    // SAFETY: the address is this thread's errno, valid as long as the thread.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// Returns the error of opening `path` under `ptrace_scope` 1. The kernel checks `mem` at open and the others at read; a
/// reader cannot go on either way, so all fail at open here, each with its own error.
fn denied(path: &[u8]) -> Option<c_int> {
    let path = std::str::from_utf8(path).ok()?;
    let (pid, inside) = path.strip_prefix("/proc/")?.split_once('/')?;
    let own = pid == "self" || pid == "thread-self" || pid.parse() == Ok(std::process::id());
    if own || pid.parse::<u32>().is_err() {
        return None;
    }
    let file = match inside.strip_prefix("task/") {
        Some(task) => task.split_once('/')?.1,
        None => inside,
    };
    match file {
        "mem" => Some(libc::EACCES),
        "syscall" | "stack" | "personality" => Some(libc::EPERM),
        _ => None,
    }
}

/// # Safety
/// As `openat(2)`: `path` is a C string.
unsafe fn checked_open(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller passes a C string.
    let name = unsafe { CStr::from_ptr(path) };
    match denied(name.to_bytes()) {
        Some(errno) => deny(errno),
        // SAFETY: the arguments are the caller's own; the kernel checks them.
        #[expect(clippy::cast_possible_truncation, reason = "a descriptor is an int")]
        None => unsafe { libc::syscall(libc::SYS_openat, dir, path, flags, mode) as c_int },
    }
}

// The open family is variadic in C. On x86-64 and aarch64 Linux a variadic integer is passed like a named one, and the
// kernel ignores `mode` if nothing is created.

/// # Safety
/// As `open(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: passed on as given.
    unsafe { checked_open(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// As `open(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: passed on as given.
    unsafe { checked_open(libc::AT_FDCWD, path, flags | libc::O_LARGEFILE, mode) }
}

/// # Safety
/// As `openat(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: passed on as given.
    unsafe { checked_open(dir, path, flags, mode) }
}

/// # Safety
/// As `openat(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: passed on as given.
    unsafe { checked_open(dir, path, flags | libc::O_LARGEFILE, mode) }
}

#[unsafe(no_mangle)]
pub extern "C" fn ptrace(
    _request: c_long,
    _pid: pid_t,
    _address: *mut c_void,
    _data: *mut c_void,
) -> c_long {
    c_long::from(deny(libc::EPERM))
}

#[unsafe(no_mangle)]
pub extern "C" fn process_vm_readv(
    _pid: pid_t,
    _local: *const iovec,
    _locals: c_ulong,
    _remote: *const iovec,
    _remotes: c_ulong,
    _flags: c_ulong,
) -> ssize_t {
    deny(libc::EPERM) as ssize_t
}

#[unsafe(no_mangle)]
pub extern "C" fn process_vm_writev(
    _pid: pid_t,
    _local: *const iovec,
    _locals: c_ulong,
    _remote: *const iovec,
    _remotes: c_ulong,
    _flags: c_ulong,
) -> ssize_t {
    deny(libc::EPERM) as ssize_t
}

#[cfg(test)]
mod tests {
    use super::denied;

    #[test]
    fn denies_what_yama_denies() {
        assert_eq!(denied(b"/proc/1/mem"), Some(libc::EACCES));
        assert_eq!(denied(b"/proc/1/syscall"), Some(libc::EPERM));
        assert_eq!(denied(b"/proc/1/task/2/syscall"), Some(libc::EPERM));
    }

    #[test]
    fn leaves_the_rest() {
        let own = format!("/proc/{}/mem", std::process::id());
        for path in [
            "/proc/self/mem",
            &own,
            "/proc/1/wchan",
            "/proc/1/fd/3",
            "/proc/sys/mem",
            "/data/1/mem",
        ] {
            assert_eq!(denied(path.as_bytes()), None, "{path}");
        }
    }
}
