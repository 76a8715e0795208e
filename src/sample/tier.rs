//! What pipetop has the right to read of the job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How deep the watched job can be looked into.
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
    /// The right to attach: system call arguments and memory, so Python stacks.
    T2,
    /// The job reports its own steps.
    T3,
}
