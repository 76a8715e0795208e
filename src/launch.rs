//! Launches the user's command, which trains or starts the training, so that the training reports its own steps. The
//! command ends with pipetop, or is released and continues without it.
//!
//! ```text
//! pipetop ── commands ──> supervisor ── starts, signals, ends ──> command and all below it
//!         <── events ────           └─ the hook's directory
//! ```
//!
//! The supervisor is a process of pipetop that outlives a killed pipetop just long enough to end what it started. This
//! module holds everything that the command gets only because pipetop launched it. It must not depend on how the
//! reports are used or shown.

mod descendants;
mod exit_tracker;
mod hook;
mod limits;
mod log;
mod protocol;
mod running;
mod signals;
mod supervisor;

pub use exit_tracker::ExitTracker;
pub use hook::{Hook, LoaderOverrides};
pub use limits::{have_memory, have_open_files, raise_open_files, survive_the_limit_of_file_sizes};
pub use log::{Kept, Log, LogStorage};
pub use protocol::{Ending, LaunchSpec, SupervisorEvent};
pub use running::{CommandHandle, LaunchError, OutputTarget, Running};
pub use signals::Forward;
pub use signals::before_the_end;
#[cfg(feature = "lab")]
pub use signals::not_ignored;
#[cfg(feature = "lab")]
pub use supervisor::OWN_PROGRAM;
pub use supervisor::supervise;
