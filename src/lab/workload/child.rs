//! Start of each process of the built-in job: sets its name, and makes sure that it ends with its parent.

use std::ffi::CString;

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::set_name;

use crate::error::{Explain as _, Hinted};

/// What to do if a process cannot be started.
pub(super) const MORE_PROCESSES: &str = "raise the process limit (ulimit -u)";

/// Names this process `name`, and ends it when its parent ends, even if the parent is killed.
///
/// # Errors
/// Returns an error if the kernel refuses.
pub(super) fn set_up_process(name: &str) -> Result<(), Hinted> {
    let name = CString::new(name).unwrap_or_default();
    let set_up = set_name(&name);
    let set_up = set_up.and_then(|()| set_parent_process_death_signal(Some(Signal::KILL)));
    set_up.explain("cannot start a process", MORE_PROCESSES)
}
