//! The options of the sampler: where and what it reads.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::job::Target;
use crate::record::Recorder;
use crate::sample::{Gap, Sample};
use crate::source::probe::Listener;

/// A function that receives each sample, on the sampler's thread.
#[derive(Clone)]
pub struct Tee(pub Arc<dyn Fn(&Sample) + Send + Sync>);

impl std::fmt::Debug for Tee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tee")
    }
}

/// Where and what to read. By default the real machine, each second.
#[derive(Debug, Clone)]
pub struct Options {
    /// `/proc`, or a folder that replaces it.
    pub proc_root: PathBuf,
    /// `/sys`, or a folder that replaces it.
    pub sys_root: PathBuf,
    /// The NVML library to load. `None` = the driver's own.
    pub nvml_lib: Option<PathBuf>,
    /// GPUs to show, by index or UUID. `None` = those that the job may use; all without a job.
    pub gpus: Option<Vec<String>>,
    /// Time from one sample to the next.
    pub interval: Duration,
    /// The job to watch if none was resolved before, and after the end of one that was not launched.
    pub target: Target,
    /// Where the job reports its steps, if it was launched to do so. The launcher binds it. A caller that reads the
    /// reports itself must leave this out, because each step is returned only once.
    pub probe: Option<Arc<Listener>>,
    /// Also records each sample. `None` = nothing is recorded.
    pub recorder: Option<Arc<Recorder>>,
    /// Also receives each sample, if set.
    pub tee: Option<Tee>,
    /// Gaps that are known from the start.
    pub lacking: Vec<Gap>,
}
