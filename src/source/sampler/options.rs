//! Where and what the sampler reads.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::job::Target;
use crate::record::Recorder;
use crate::sample::{Gap, Sample};
use crate::source::probe::Listener;

/// Sees each sample, on the sampler's thread.
#[derive(Clone)]
pub struct Tee(pub Arc<dyn Fn(&Sample) + Send + Sync>);

impl std::fmt::Debug for Tee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tee")
    }
}

/// Where and what to read.
#[derive(Debug, Clone)]
pub struct Options {
    /// `/proc`, or what stands for it.
    pub proc_root: PathBuf,
    /// `/sys`, or what stands for it.
    pub sys_root: PathBuf,
    /// The NVML library to load. `None` = the driver's own.
    pub nvml_lib: Option<PathBuf>,
    /// GPUs to show, by index or UUID. `None` = those that the job may use; all without a job.
    pub gpus: Option<Vec<String>>,
    /// From one sample to the next.
    pub interval: Duration,
    /// The job to watch where none was resolved before, and after the end of one that was not launched.
    pub target: Target,
    /// Where the job reports its steps, if it was launched to. Whoever launches the job binds it; who wants
    /// to read the reports alone leaves this out, as each step is handed over once.
    pub probe: Option<Arc<Listener>>,
    /// Where each sample goes beside. `None` = nothing is recorded.
    pub recorder: Option<Arc<Recorder>>,
    /// Who sees each sample beside. `None` = nobody.
    pub tee: Option<Tee>,
    /// What is known to be missing from the start.
    pub lacking: Vec<Gap>,
}
