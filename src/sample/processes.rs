//! All processes of the job other than its ranks and workers, and the threads of some: read only while they are on
//! screen.
//!
//! As everywhere in a sample: cumulative counters as they were read, `None` if not known. Never recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sample::ProcessSample;
use crate::units::{Pid, ProcessKey};

/// The job's processes at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProcessesSample {
    /// Parents before their children.
    pub processes: Vec<ProcessSeen>,
    /// Number of processes that were not read because there were too many.
    pub left_out: usize,
    /// Threads of the processes for which they were requested, as they were last read.
    pub threads: BTreeMap<ProcessKey, ThreadsSample>,
}

/// A rank, a process below a rank, or a launcher of ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessSeen {
    pub key: ProcessKey,
    pub parent: Pid,
    /// The kernel's name of its main thread, at most 15 bytes, control characters replaced.
    pub name: String,
    pub role: ProcessRole,
    pub process: ProcessSample,
}

/// The purpose of a process, as shown by its name and arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProcessRole {
    /// It launched a rank, directly or through another process.
    Launcher,
    /// Starts workers for `multiprocessing`.
    ForkServer,
    /// Cleans up after `multiprocessing`.
    ResourceTracker,
    #[default]
    Other,
}

/// The threads of one process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadsSample {
    /// When they were read, measured from when pipetop started: not every round reads all of them.
    pub at: Duration,
    /// Ordered by thread id; the main thread has the id of the process.
    pub threads: Vec<ThreadSample>,
    /// Number of threads that were not read because there were too many.
    pub left_out: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSample {
    pub key: ProcessKey,
    /// The kernel's name of the thread, at most 15 bytes, control characters replaced.
    pub name: String,
    /// Its own counters: the state, the time on a CPU, and the time that it was runnable but not running.
    pub process: ProcessSample,
}
