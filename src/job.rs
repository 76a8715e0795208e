//! Which processes are the job: who trains, who loads for whom, and which job is meant.
//!
//! Pure: works on [`Process`] facts that a source read. Knows nothing of how they are read, of rates or
//! of screens.

mod candidates;
mod command;
mod loaders;
mod process;
mod tree;

pub use candidates::{Candidate, NoTarget, Target, below, resolve};
pub use command::{leaves_site_out, script};
pub use loaders::{Loader, ResultPipe, loaders};
pub use process::{
    BUILTIN_COMMAND, BUILTIN_MESSAGE, BUILTIN_TRAINER, BUILTIN_WORKER, PipeEnd, Process, Tree,
};
pub use tree::{ProcessTree, ancestors, descendants};

#[cfg(test)]
mod tests;
