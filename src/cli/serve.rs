//! The arguments of `pipetop serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::job::Target;
use crate::options::{Web, value};

/// Serve metrics of training jobs to Prometheus.
///
/// Metrics are at /metrics, JSON reports at /report (?pid=PID for one job); /-/healthy and /-/ready are for supervisors.
/// Without --web.listen-address and --textfile it listens on 127.0.0.1:9977.
/// Without a target it watches one job at a time: when that ends, the next.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct ServeArgs {
    /// The job to watch: a PID, or text from its command line
    #[arg(help_heading = None, value_parser = value::target, conflicts_with = "all")]
    pub target: Option<Target>,

    /// Watch all training jobs of this machine, including those that start later
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub web: Web,

    /// Write the metrics to this file, for the node exporter's textfile collector; opens no port without --web.listen-address
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,

    /// Time between samples, e.g. `1s` or `500ms`
    #[arg(long, value_name = "DURATION", value_parser = value::interval)]
    pub interval: Option<Duration>,
}
