//! What is known of the runs: one value, which the table and the JSON show. Pure.

use serde::Serialize;

/// All runs, worst first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct FleetReport {
    pub runs: Vec<RunReport>,
    /// What the server could not read of it.
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
    /// What it loses most time to.
    pub cause: Option<String>,
    /// Share of the time of all ranks that is lost to data.
    pub lost_share: Option<f64>,
    /// The same over the last hour, oldest first. null: not measured then.
    pub history: Vec<Option<f64>>,
    /// Ranks' worth of time that is lost: with one GPU for each, how many GPUs.
    pub gpus_lost: Option<f64>,
    pub batches_per_s: Option<f64>,
    /// The rank that waits longest.
    pub slowest: Option<FleetRank>,
    /// Since the newest sample.
    pub age_seconds: Option<f64>,
    /// All of its ranks, where the run was asked for; the one that waits longest first.
    pub all_ranks: Vec<FleetRank>,
}

/// One rank of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct FleetRank {
    pub rank: String,
    /// Where Prometheus reads it: host and port.
    pub instance: String,
    /// Share of its time that it waits for data.
    pub wait_share: Option<f64>,
    /// It waits longer than the middle one of its run, so that the others wait for it.
    pub straggler: bool,
}

impl FleetRank {
    /// The machine: what is scraped, without its port.
    pub(super) fn host(&self) -> &str {
        let address = &self.instance;
        address.rsplit_once(':').map_or(address, |(host, _)| host)
    }
}
