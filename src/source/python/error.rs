//! The reasons why nothing could be read from a Python process.

use crate::units::Pid;

/// Why nothing could be read from a Python process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PythonError {
    #[error("no permission to read the memory of process {0}")]
    NoRight(Pid),
    /// Memory is read by PID, which below the given proc root may belong to another process.
    #[error("process {0} may have another PID here, so its memory is not read")]
    OtherNumbers(Pid),
    #[error("process {0} does not run Python")]
    NotPython(Pid),
    #[error("process {pid} runs Python {version}, which is not supported")]
    Unsupported { pid: Pid, version: String },
    #[error("process {0} has ended")]
    Gone(Pid),
    /// Often a process that is still starting; a later attempt may succeed.
    #[error("cannot find the interpreter of process {pid}: {reason}")]
    Attach { pid: Pid, reason: String },
    /// The process changed what was being read; the next poll may succeed.
    #[error("process {0} changed while it was being read")]
    Torn(Pid),
    /// The loader's iterator was dropped or its attributes moved; it must be found again.
    #[error("the loader iterator of process {0} is gone")]
    IteratorGone(Pid),
}

impl PythonError {
    /// Returns what would solve the problem; empty if nothing would.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoRight(_) => {
                "run as root or with CAP_SYS_PTRACE, or set sysctl kernel.yama.ptrace_scope=0"
            }
            Self::OtherNumbers(_) => "run pipetop in the PID namespace of that /proc",
            Self::Unsupported { .. } => "supported: Python 3.8 to 3.15 with the GIL",
            _ => "",
        }
    }
}
