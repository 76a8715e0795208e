//! The report on the runs, which the table and the JSON show. Does no I/O.

use serde::Serialize;

/// All runs, worst first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct FleetReport {
    pub runs: Vec<RunReport>,
    /// Warnings of the server: what it could not read.
    pub warnings: Vec<String>,
}

/// One run, over all of its nodes, in the last two minutes. null: not known.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct RunReport {
    pub run: String,
    pub user: Option<String>,
    pub nodes: u64,
    pub ranks: u64,
    /// The verdict of most of its nodes.
    pub verdict: Option<String>,
    /// Nodes with that verdict.
    pub agree: u64,
    /// The cause that it loses most time to.
    pub cause: Option<String>,
    /// Share of the time of all ranks that is lost to data.
    pub lost_share: Option<f64>,
    /// The same share over the last hour, oldest first. null: not measured at that time.
    pub history: Vec<Option<f64>>,
    /// Time lost, in ranks: with one GPU per rank, the number of GPUs lost.
    #[serde(rename = "gpus_lost")]
    pub ranks_lost: Option<f64>,
    pub batches_per_s: Option<f64>,
    /// The rank that waits longest.
    pub slowest: Option<FleetRank>,
    /// Age of the newest sample, in seconds.
    pub age_seconds: Option<f64>,
    /// All of its ranks if the run was requested by name, the one that waits longest first.
    pub all_ranks: Vec<FleetRank>,
}

/// One rank of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct FleetRank {
    pub rank: String,
    /// The scrape target in Prometheus: host and port.
    pub instance: String,
    /// Share of its time that it waits for data.
    pub wait_share: Option<f64>,
    /// Batches that are ready, as a share of its queue's capacity. Read if the run was requested by name.
    pub queue_occupancy: Option<f64>,
    /// Share of time in which its GPU ran a kernel; of several, the mean. Read if the run was requested by name.
    pub gpu_busy_share: Option<f64>,
    /// It waits longer than the median rank of its run, so that the others wait for it.
    pub straggler: bool,
}

impl FleetRank {
    /// Returns the machine: the scrape target without its port.
    pub(super) fn host(&self) -> &str {
        let address = &self.instance;
        address.rsplit_once(':').map_or(address, |(host, _)| host)
    }
}
