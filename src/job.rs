//! Which processes belong to a job (the trainers and the loaders of each), and which job the user means.
//!
//! Pure: works on [`Process`] facts that a source has read. Must not depend on how they are read, on rates or on
//! screens.

mod candidates;
mod command;
mod loaders;
mod process;
mod tree;

pub use candidates::{Candidate, NoTarget, Target, below, resolve};
pub use command::{keeps_hook_out, script, script_name};
pub use loaders::{Loader, ResultPipe, loaders};
pub use process::{BUILTIN_COMMAND, BUILTIN_MESSAGE, PipeEnd, Process, Tree};
#[cfg(feature = "lab")]
pub use process::{BUILTIN_TRAINER, BUILTIN_WORKER};
pub use tree::{ProcessTree, ancestors, descendants};

#[cfg(test)]
mod tests;
