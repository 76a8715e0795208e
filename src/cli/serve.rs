//! The arguments of `pipetop serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::error::Hinted;
use crate::options::{Target, value};

/// Paths that are taken.
const TAKEN: [&str; 4] = ["/", "/report", "/-/healthy", "/-/ready"];

/// Serve metrics of training jobs to Prometheus.
///
/// Metrics are at /metrics, JSON reports at /report (?pid=PID for one job); /-/healthy and /-/ready are for supervisors.
/// Without a target it watches one job at a time, and the next one after its end.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct Serve {
    /// The job to watch: a PID, or text from its command line
    #[arg(value_parser = value::target, conflicts_with = "all")]
    pub target: Option<Target>,

    /// Watch every training job of this machine, also those that start later
    #[arg(long)]
    pub all: bool,

    /// Listen here; repeat it for several. Without a host, on all addresses [default: 127.0.0.1:9977]
    #[arg(long = "web.listen-address", value_name = "[HOST]:PORT")]
    pub listen: Vec<String>,

    /// Path of the metrics
    #[arg(
        long = "web.telemetry-path",
        value_name = "PATH",
        default_value = "/metrics"
    )]
    pub metrics: String,

    /// Write the metrics to this file, for the node exporter's textfile collector; listens only where told to
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,

    /// Time between samples, e.g. `1s` or `500ms`
    #[arg(long, value_name = "DURATION", value_parser = value::interval)]
    pub interval: Option<Duration>,
}

impl Serve {
    /// # Errors
    /// If a value cannot be used.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        let path = &*self.metrics;
        let plain = path.bytes().all(|byte| byte.is_ascii_graphic());
        if TAKEN.contains(&path) || !path.starts_with('/') || !plain || path.contains(['?', '#']) {
            return Err(Hinted::new(
                format!("--web.telemetry-path cannot be `{path}`"),
                "give a path of its own, as in /metrics",
            ));
        }
        Ok(())
    }
}
