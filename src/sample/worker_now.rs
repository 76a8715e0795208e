//! The state of a loader's worker at a moment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerNow {
    #[default]
    Unknown,
    /// Waiting for an index.
    Idle,
    Cpu,
    /// Runnable, not running.
    Runnable,
    /// Reading from a disk.
    Read,
    Network,
    Handover,
    /// Asleep while it has a batch to make.
    Sleep,
    Stopped,
    /// Importing, before its first batch.
    Starting,
    Gone,
}
