//! Start of each process of the built-in job: sets its name, and makes sure that it ends with its parent.

use std::ffi::CString;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::set_name;

use super::error::WorkloadError;

/// Names this process `name`, and ends it when its parent ends, even if that is killed. It must be the child of
/// `parent`; `None` = any.
///
/// # Errors
/// Returns an error if the parent has already ended, or the kernel refuses.
pub(super) fn set_up_process(name: &str, parent: Option<i32>) -> Result<(), WorkloadError> {
    let failed = |error: rustix::io::Errno| WorkloadError::Process(error.to_string());
    let name = CString::new(name).unwrap_or_default();
    set_name(&name).map_err(failed)?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    // The parent may have ended before the line above.
    let now = getppid().map(Pid::as_raw_nonzero).map(i32::from);
    if parent.is_some() && parent != now {
        return Err(WorkloadError::Orphan);
    }
    Ok(())
}
