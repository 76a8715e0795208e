//! Counters of every process, as the kernel reports them. `None` if not known.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Counters of every process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessSample {
    /// State (`R`, `S`, `D`, `T`, `Z`, ...) of the main thread; `None` once gone.
    pub state: Option<char>,
    /// CPU time of all its threads (`utime + stime`).
    pub cpu: Option<Duration>,
    /// CPU time of the children that have ended and that it has waited for (`cutime + cstime`). `None` in recordings of
    /// older versions.
    pub children_cpu: Option<Duration>,
    /// Time on a CPU of the main thread, from its `schedstat`.
    pub main_cpu: Option<Duration>,
    /// Time that the main thread was runnable but not running, from its `schedstat`.
    pub main_run_delay: Option<Duration>,
    pub io: Option<IoSample>,
    pub major_faults: Option<u64>,
    pub threads: Option<u32>,
    /// CPUs that the main thread may run on.
    pub cpus_allowed: Option<u32>,
    pub rss: Option<Bytes>,
}

/// `/proc/PID/io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoSample {
    /// Bytes requested by read calls, from any source (page cache, pipes, devices).
    pub rchar: Bytes,
    pub wchar: Bytes,
    /// Bytes fetched from a block device for this process.
    pub read_bytes: Bytes,
    pub write_bytes: Bytes,
}
