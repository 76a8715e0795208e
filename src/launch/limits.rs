//! Limits of open files and of file sizes: pipetop takes what it may have and survives the rest; what it launches starts
//! with what the user has set.

use std::sync::{Arc, OnceLock};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit, setrlimit};
use signal_hook::flag;

/// What was set when pipetop started. Empty where it was left as it was.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit of open files to the hard one: a job of many processes must not be lost for want of
/// descriptors. Not in a process that runs code of others, which may not bear numbers above 1023.
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

/// Lets a write beyond the limit of file sizes fail as on a full disk, in place of ending pipetop. A handler and not
/// `SIG_IGN`, which what is launched would inherit.
pub fn survive_the_limit_of_file_sizes() {
    // Where it cannot be set, such a write ends pipetop.
    let _ = flag::register(Signal::XFSZ.as_raw(), Arc::default());
}

/// Gives a process that we started the limit that we were started with.
pub(super) fn restore_open_files(pid: Pid) {
    if let Some(before) = BEFORE.get() {
        // One that has ended meanwhile needs none.
        let _ = prlimit(Some(pid), Resource::Nofile, *before);
    }
}
