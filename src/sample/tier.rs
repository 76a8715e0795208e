//! What pipetop has permission to read of the job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of the watched job can be read.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum Tier {
    /// What any user may read.
    #[default]
    T0,
    /// The same user: wait channels, descriptors, I/O counters.
    T1,
    /// Permission to attach: system call arguments and memory, and so Python stacks.
    T2,
    /// The job reports its own steps.
    T3,
}
