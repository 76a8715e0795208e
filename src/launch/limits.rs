//! Limits of open files, of file sizes and of memory: pipetop takes what it may have and survives the rest, or says that
//! it cannot start; what it launches starts with what the user has set.

use std::collections::TryReserveError;
use std::sync::{Arc, OnceLock};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit, setrlimit};
use signal_hook::flag;

/// In bytes, of address space: what it takes beside the program itself, with its threads.
const MEMORY: usize = 64 << 20;

/// What was set when pipetop started. Empty where it was left as it was.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit of open files to the hard one: a job of many processes must not be missed for lack of
/// descriptors. Must not be called in a process that runs other programs' code, which may not support descriptors above
/// 1023.
pub fn raise_open_files() {
    let before = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    if before.current != before.maximum && setrlimit(Resource::Nofile, wanted).is_ok() {
        let _ = BEFORE.set(before);
    }
}

/// Makes a write beyond the limit of file sizes fail as on a full disk, instead of ending pipetop. Uses a handler and
/// not `SIG_IGN`, which launched programs would inherit.
pub fn survive_the_limit_of_file_sizes() {
    // If it cannot be set, such a write ends pipetop.
    let _ = flag::register(Signal::XFSZ.as_raw(), Arc::default());
}

/// There is enough memory to start with: where an allocation fails later, the program is aborted.
///
/// # Errors
/// Where there is not.
pub fn have_memory() -> Result<(), TryReserveError> {
    if getrlimit(Resource::As).current.is_some() {
        share_one_arena();
    }
    // Reserved and not used, so that it costs nothing.
    Vec::<u8>::new().try_reserve_exact(MEMORY)
}

/// Makes all threads allocate from one arena. By default glibc reserves 64 MiB or more of address space for each of the
/// first threads, as long as there is room, so that what a limit leaves for the stacks of others depends on timing.
#[expect(unsafe_code, reason = "a setting of the C library's allocator")]
fn share_one_arena() {
    // Safety: takes two numbers, and locks the allocator itself.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives a process that we started the limit that we were started with.
pub(super) fn restore_open_files(pid: Pid) {
    if let Some(before) = BEFORE.get() {
        // A process that has ended meanwhile does not need it.
        let _ = prlimit(Some(pid), Resource::Nofile, *before);
    }
}
