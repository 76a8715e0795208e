//! The identity of a job in a cluster, from its environment and its control group.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The identity of a job. null: does not apply, or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The same on every node of the run: `slurm-JOB`, `pod-UID` (its first eight digits) or `torchrun-ID`. Else
    /// HOST-PID-START, which no other process has.
    pub id: String,
    /// What `id` is made of.
    pub source: RunSource,
    /// Name of the machine.
    pub host: String,
    /// The owner of the trainer; the number if no name is known.
    pub user: Option<String>,
    pub slurm_job_id: Option<String>,
    pub slurm_step_id: Option<String>,
    pub k8s_pod_uid: Option<String>,
    pub k8s_pod_name: Option<String>,
    pub k8s_namespace_name: Option<String>,
    /// `--rdzv-id` of torchrun.
    pub torchrun_id: Option<String>,
}

/// What names a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunSource {
    Slurm,
    Kubernetes,
    Torchrun,
    #[default]
    Process,
}

impl fmt::Display for RunSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
