//! What each process of the built-in job does first: it takes the name that it is known by, and sees to it that
//! it ends with its parent.

use std::ffi::CString;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::set_name;

use super::error::WorkloadError;

/// Names this process `name`, and ends it when its parent does: also where that is killed. `parent` is who that must be;
/// `None` = whoever it is.
///
/// # Errors
/// Where the parent is gone already, or the kernel refuses.
pub(super) fn become_one(name: &str, parent: Option<i32>) -> Result<(), WorkloadError> {
    let failed = |error: rustix::io::Errno| WorkloadError::Process(error.to_string());
    let name = CString::new(name).unwrap_or_default();
    set_name(&name).map_err(failed)?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    // It may have ended before the line above.
    let now = getppid().map(Pid::as_raw_nonzero).map(i32::from);
    if parent.is_some() && parent != now {
        return Err(WorkloadError::Orphan);
    }
    Ok(())
}
