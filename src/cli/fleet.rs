//! The command `fleet`.

use std::path::PathBuf;

use clap::Args;

use crate::error::Hinted;
use crate::options::{LookArgs, value};

/// Show all runs known to a Prometheus server, worst first.
///
/// Prometheus has to scrape `pipetop serve` on each node. Credentials come from the environment:
/// `PIPETOP_PROMETHEUS_TOKEN`, or `PIPETOP_PROMETHEUS_BASIC` as USER:PASSWORD.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// Address of Prometheus, e.g. `http://prometheus:9090`
    #[arg(long, value_name = "URL")]
    pub prometheus: String,

    /// Show only this run, all its ranks
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,

    /// Print the runs once and exit; the default if standard output is not a terminal
    #[arg(long)]
    pub once: bool,

    /// Print the runs once as JSON and exit
    #[arg(long)]
    pub json: bool,

    /// Read a bearer token from this file
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    #[command(flatten)]
    pub look: LookArgs,
}

impl FleetArgs {
    /// # Errors
    /// Returns an error if the address is not a valid URL, or the name of the run is empty.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        if self.run.as_ref().is_some_and(|run| run.trim().is_empty()) {
            return Err(Hinted::new(
                "--run needs the name of a run",
                "omit --run to see all runs",
            ));
        }
        let plain = |hint| Err(Hinted::new("--prometheus needs an address", hint));
        let below = ["http://", "https://"].map(|scheme| self.prometheus.strip_prefix(scheme));
        let Some(host) = below.into_iter().flatten().next() else {
            return plain("begin it with http:// or https://, as in http://prometheus:9090");
        };
        if host.contains(['?', '#']) {
            return Err(Hinted::new(
                "--prometheus takes an address without `?` and `#`",
                "use one like http://prometheus:9090",
            ));
        }
        let host = host.split('/').next().unwrap_or_default();
        if host.contains('@') {
            return Err(Hinted::new(
                "--prometheus takes an address without a user or password",
                "set PIPETOP_PROMETHEUS_BASIC to USER:PASSWORD: all users can read a command line",
            ));
        }
        // A host in brackets has colons of its own.
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let address = if has_port {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        let is_address = value::address(&address).is_ok() && !address.starts_with(':');
        if !is_address || !self.prometheus.bytes().all(|byte| byte.is_ascii_graphic()) {
            return plain("use one like http://prometheus:9090");
        }
        Ok(())
    }
}
