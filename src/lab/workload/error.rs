//! Why the built-in job cannot go on, each with a hint.

use thiserror::Error;

use super::dataset::DatasetError;

#[derive(Debug, Error)]
pub enum WorkloadError {
    #[error("cannot get shared memory for the batches: {0}")]
    SharedMemory(String),
    #[error("cannot start a process: {0}")]
    Process(String),
    #[error("loader worker {worker} ended unexpectedly: {how}")]
    WorkerEnded { worker: u32, how: String },
    #[error("the pipe to a loader worker failed: {0}")]
    Pipe(String),
    #[error("the parent process is gone")]
    Orphan,
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl WorkloadError {
    /// Returns what the user can do.
    pub fn hint(&self) -> String {
        match self {
            Self::SharedMemory(_) => {
                "use smaller batches: --batch-size, --image-size, --workers, --prefetch-factor"
                    .into()
            }
            Self::Process(_) => "raise the process limit (ulimit -u)".into(),
            Self::WorkerEnded { .. } | Self::Pipe(_) => {
                "check `dmesg` for an out-of-memory kill".into()
            }
            Self::Orphan => "use `pipetop demo`".into(),
            Self::Dataset(error) => error.hint(),
        }
    }
}
