//! The only code that reads the machine: one file per kernel or driver interface, and the threads that read them. Must
//! not depend on what the numbers mean.

pub mod cgroup;
pub mod clock;
pub mod discovery;
pub mod disk;
mod events;
pub mod file;
pub mod gpu;
pub mod host;
mod interpreter;
pub mod job_view;
pub mod mounts;
pub mod nvml;
pub mod open_files;
mod other_programs;
pub mod poll;
pub mod probe;
pub mod process;
pub mod processes;
pub mod python;
pub mod replay;
mod run;
pub mod sampler;
pub mod shared_memory;
mod starters;
mod stream;

pub use stream::Source;

#[cfg(test)]
mod tests;
