//! Who a job is among all those of a cluster, as its environment and its control group tell.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who a job is. null: does not apply, or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The same on every node of the run: `slurm-JOB`, `pod-UID` (its first eight digits) or `torchrun-ID`. Else
    /// HOST-PID-START, which no other process has.
    pub id: String,
    /// What `id` is made of.
    pub source: RunSource,
    /// Name of the machine.
    pub host: String,
    /// Who owns the trainer; the number where no name is known.
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
