//! The stacks of one process: attached when first needed, and again after a pause if that failed.

use std::path::Path;
use std::time::Duration;

use super::priority;
use crate::source::process::numbers_as_here;
use crate::source::python::{PythonError, Stacks};
use crate::units::Pid;

/// Pause after a failed attempt: a process that is starting is ready soon.
const RETRY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct PythonView {
    pid: Pid,
    stacks: Option<Stacks>,
    retry_at: Duration,
    /// Whether another attempt cannot succeed.
    refused: bool,
    error: Option<PythonError>,
}

impl PythonView {
    pub(super) fn new(proc_root: &Path, pid: Pid) -> Self {
        let other = !numbers_as_here(proc_root);
        Self {
            pid,
            stacks: None,
            retry_at: Duration::ZERO,
            refused: other,
            error: other.then_some(PythonError::OtherNumbers(pid)),
        }
    }

    /// Never attaches: the process does not run Python.
    pub(super) fn refuse(&mut self) {
        self.refused = true;
        self.error = None;
    }

    /// Returns the stacks if they are attached or can be attached now. Attaching to a forked process is quick with the
    /// stacks of its parent as a model.
    pub(super) fn stacks(&mut self, now: Duration, parent: Option<&Stacks>) -> Option<&mut Stacks> {
        if self.stacks.is_none() && !self.refused && now >= self.retry_at {
            let attached = priority::in_turns(|| match parent {
                Some(parent) => Stacks::attach_like(self.pid, parent),
                None => Stacks::attach(self.pid),
            });
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

    /// Returns why there are no stacks.
    pub(super) fn error(&self) -> Option<&PythonError> {
        self.error.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_not_read_where_numbers_may_be_those_of_other_processes() {
        let pid = Pid(std::process::id().cast_signed());
        let other = tempfile::tempdir().unwrap();
        let mut view = PythonView::new(other.path(), pid);
        assert!(view.stacks(RETRY, None).is_none());
        assert!(matches!(view.error(), Some(PythonError::OtherNumbers(_))));
        assert_eq!(PythonView::new(Path::new("/proc"), pid).error(), None);
    }
}
