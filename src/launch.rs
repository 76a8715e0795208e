//! Launching a command of the user's, training somewhere below it, so that it tells of its own steps and ends with
//! us or goes on without us.
//!
//! ```text
//! pipetop ── orders ──> guard ── starts, signals, ends ──> command and all below it
//!         <── news ───        └─ the hook's directory
//! ```
//!
//! The guard is a process of our own that outlives a killed pipetop just long enough to end what it started.
//! Holds what the command gets that it would not have had without us. Knows nothing of what is made of the
//! reports, or of how it is shown.

mod forward;
mod guard;
mod hook;
mod interrupt;
mod leftovers;
mod log;
mod order;
mod rest;
mod running;
mod tree;

pub use forward::Forward;
pub use guard::guard;
pub use hook::{Cache, Hook, Overrides};
pub use interrupt::Interrupt;
pub use log::{Kept, Log};
pub use order::{Ending, News, Request};
pub use rest::Rest;
pub use running::{LaunchError, Orders, Output, Running};
