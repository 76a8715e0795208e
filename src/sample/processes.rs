//! All processes of the job beside its ranks and workers, and the threads of some: read only while somebody looks.
//!
//! As all of a sample: cumulative counters as they were read, `None` where not known. Never recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sample::ProcessSample;
use crate::units::{Pid, ProcessKey};

/// The job's processes as they stood at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProcessesSample {
    /// Parents before their children.
    pub processes: Vec<ProcessSeen>,
    /// Processes that were too many to be read.
    pub left_out: usize,
    /// Of the processes whose threads were asked for, as they were last read.
    pub threads: BTreeMap<ProcessKey, ThreadsSample>,
}

/// A process below a rank, a rank, or one that ranks were launched by.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessSeen {
    pub key: ProcessKey,
    pub parent: Pid,
    /// The kernel's name of its main thread, at most 15 bytes, control characters replaced.
    pub name: String,
    pub role: ProcessRole,
    pub process: ProcessSample,
}

/// What a process is there for, as far as its name and its arguments tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProcessRole {
    /// A rank was started by it, or by one that it started.
    Launcher,
    /// Starts workers for `multiprocessing`.
    ForkServer,
    /// Clears away what `multiprocessing` leaves.
    ResourceTracker,
    #[default]
    Other,
}

/// The threads of one process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadsSample {
    /// When they were read, since pipetop started: not every reading reads all.
    pub at: Duration,
    /// Ordered by number; the main thread has the number of the process.
    pub threads: Vec<ThreadSample>,
    /// Threads that were too many to be read.
    pub left_out: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSample {
    pub key: ProcessKey,
    /// The kernel's name of it, at most 15 bytes, control characters replaced.
    pub name: String,
    pub state: char,
    pub cpu: Option<Duration>,
    /// Time that it was runnable but not running.
    pub run_delay: Option<Duration>,
}
