//! The runs that a Prometheus knows of, worst first: what `pipetop serve` exports on each node, put together.
//!
//! Reads the server alone; knows nothing of the jobs of this machine.

mod answer;
mod client;
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

/// Which server, which run.
#[derive(Debug, Clone)]
pub(crate) struct Fleet {
    pub url: String,
    pub credentials: Option<Credentials>,
    /// Only this one, with all of its ranks.
    pub run: Option<String>,
}

impl Fleet {
    /// Reads everything once.
    ///
    /// # Errors
    /// Where the server cannot be reached, refuses, or is no Prometheus.
    pub(crate) fn read(&self) -> Result<FleetReport, Hinted> {
        let client = client::Client::new(&self.url, self.credentials.clone());
        read::read(&client, self.run.as_deref())
    }
}
