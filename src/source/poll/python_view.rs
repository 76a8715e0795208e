//! The stacks of one process, attached when they are first needed, and again after a pause where that
//! did not work.

use std::path::Path;
use std::time::Duration;

use crate::source::python::{PythonError, Stacks};
use crate::units::Pid;

/// After an attempt that failed: a process that starts is soon ready.
const RETRY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct PythonView {
    pid: Pid,
    /// Memory is read by number: below another proc root that may be a stranger's.
    own_proc: bool,
    stacks: Option<Stacks>,
    retry_at: Duration,
    /// Trying again will not help.
    refused: bool,
    error: Option<PythonError>,
}

impl PythonView {
    pub(super) fn new(proc_root: &Path, pid: Pid) -> Self {
        Self {
            pid,
            own_proc: proc_root == Path::new("/proc"),
            stacks: None,
            retry_at: Duration::ZERO,
            refused: false,
            error: None,
        }
    }

    /// There is no Python to attach to.
    pub(super) fn refuse(&mut self) {
        self.refused = true;
        self.error = None;
    }

    /// The stacks, if they are attached or can be now. A forked process is attached to quickly with the
    /// stacks of its parent as a model.
    pub(super) fn stacks(&mut self, now: Duration, parent: Option<&Stacks>) -> Option<&mut Stacks> {
        if self.stacks.is_none() && self.own_proc && !self.refused && now >= self.retry_at {
            let attached = match parent {
                Some(parent) => Stacks::attach_like(self.pid, parent),
                None => Stacks::attach(self.pid),
            };
            match attached {
                Ok(stacks) => {
                    self.stacks = Some(stacks);
                    self.error = None;
                }
                Err(error) => {
                    self.refused = matches!(
                        error,
                        PythonError::NoRight(_)
                            | PythonError::Unsupported { .. }
                            | PythonError::Gone(_)
                    );
                    self.retry_at = now + RETRY;
                    self.error = Some(error);
                }
            }
        }
        self.stacks.as_mut()
    }

    pub(super) fn attached(&self) -> Option<&Stacks> {
        self.stacks.as_ref()
    }

    pub(super) fn attached_mut(&mut self) -> Option<&mut Stacks> {
        self.stacks.as_mut()
    }

    /// Why there are no stacks.
    pub(super) fn error(&self) -> Option<&PythonError> {
        self.error.as_ref()
    }
}
