//! All runs that a Prometheus server knows, worst first: combines the metrics that `pipetop serve` exports on each
//! node.
//!
//! Reads only the server; does not depend on the jobs of this machine.

mod answer;
mod client;
mod queries;
mod read;
mod report;
mod screen;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use client::Credentials;
pub(crate) use report::FleetReport;
pub(crate) use screen::show;
pub(crate) use table::text;

use crate::error::Hinted;

/// The Prometheus server to read, and the run to show.
#[derive(Debug, Clone)]
pub(crate) struct Fleet {
    pub url: String,
    pub credentials: Option<Credentials>,
    /// Show only this run, with all of its ranks. `None` = show all runs.
    pub run: Option<String>,
}

impl Fleet {
    /// Reads everything once.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached, refuses the request, or is not a Prometheus server.
    pub(crate) fn read(&self) -> Result<FleetReport, Hinted> {
        let client = client::Client::new(&self.url, self.credentials.clone());
        read::read(|query| client.series(query), self.run.as_deref())
    }
}
