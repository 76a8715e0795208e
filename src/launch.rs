//! Launching a command of the user's, training somewhere below it, so that it tells of its own steps and ends with
//! us or goes on without us.
//!
//! ```text
//! pipetop ── commands ──> supervisor ── starts, signals, ends ──> command and all below it
//!         <── events ────           └─ the hook's directory
//! ```
//!
//! The supervisor is a process of our own that outlives a killed pipetop just long enough to end what it started.
//! Holds what the command gets that it would not have had without us. Knows nothing of what is made of the
//! reports, or of how it is shown.

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
pub use hook::{Cache, Hook, LoaderOverrides};
pub use limits::{raise_open_files, survive_the_limit_of_file_sizes};
pub use log::{Kept, Log};
pub use protocol::{Ending, LaunchSpec, SupervisorEvent};
pub use running::{CommandHandle, LaunchError, OutputTarget, Running};
pub use signals::{Forward, Interrupt};
pub use supervisor::{OWN_PROGRAM, supervise};
