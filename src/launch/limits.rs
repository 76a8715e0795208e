//! Resource limits: pipetop raises its limit of open files, survives that of file sizes, and says that it cannot start
//! if there is too little memory. What it launches starts with the limits that the user has set.

use std::collections::TryReserveError;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit, setrlimit};
use signal_hook::flag;

/// Address space, in bytes, that pipetop and its threads need in addition to the program itself.
const MEMORY: usize = 64 << 20;

/// Open files of a screen that watches a job with a few processes.
const SCREEN_FILES: usize = 24;

/// The limit of open files when pipetop started. Empty if pipetop has not changed it.
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

/// Checks that there is enough memory to start: an allocation that fails later aborts the program.
///
/// # Errors
/// Returns an error if there is not.
pub fn have_memory() -> Result<(), TryReserveError> {
    if getrlimit(Resource::As).current.is_some() {
        share_one_arena();
    }
    // The memory is reserved but not used, so it costs nothing.
    Vec::<u8>::new().try_reserve_exact(MEMORY)
}

/// Checks that the screen, its readers and what they read of a small job can have their files open: without them, keys
/// and figures would be missing without a word.
///
/// # Errors
/// Returns an error if they cannot.
pub fn have_open_files() -> std::io::Result<()> {
    let output = std::io::stdout();
    let copies = (0..SCREEN_FILES).map(|_| output.as_fd().try_clone_to_owned());
    copies.collect::<std::io::Result<Vec<_>>>().map(drop)
}

/// Makes all threads allocate from one arena. By default glibc reserves 64 MiB or more of address space for each of the
/// first threads, as long as there is room. Under a limit, the space left for the stacks of further threads would
/// depend on timing.
#[expect(unsafe_code, reason = "a setting of the C library's allocator")]
fn share_one_arena() {
    // Safety: takes two numbers, and locks the allocator itself.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives a process that pipetop started the limit of open files that pipetop was started with.
pub(super) fn restore_open_files(pid: Pid) {
    if let Some(before) = BEFORE.get() {
        // A process that has ended meanwhile does not need it.
        let _ = prlimit(Some(pid), Resource::Nofile, *before);
    }
}
