//! All runs in a Prometheus, worst first: the metrics that `pipetop serve` exports on each node, combined.
//!
//! Reads the server only; does not depend on the jobs of this machine.

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

/// The server, and the run to show.
#[derive(Debug, Clone)]
pub(crate) struct Fleet {
    pub url: String,
    pub credentials: Option<Credentials>,
    /// Only this run, with all of its ranks.
    pub run: Option<String>,
}

impl Fleet {
    /// Reads everything once.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached, refuses the request, or is not a Prometheus.
    pub(crate) fn read(&self) -> Result<FleetReport, Hinted> {
        let client = client::Client::new(&self.url, self.credentials.clone());
        read::read(|query| client.series(query), self.run.as_deref())
    }
}
