//! Options that several commands share: how to watch, what to read, which command to run.
//!
//! Depends on the command line only, not on the commands.

mod command;
pub(crate) mod value;

use std::path::PathBuf;
use std::time::Duration;

use crate::config::ThemeName;
use crate::verdict::Kind;

pub(crate) use command::Words;

/// How to watch.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
pub struct WatchArgs {
    /// Print one report and exit
    #[arg(long)]
    pub once: bool,

    /// Print JSON: one document with --once, otherwise one line per interval
    #[arg(long)]
    pub json: bool,

    /// How long to watch, rounded up to whole intervals, e.g. `14s` or `2min`; a number alone is seconds
    #[arg(long = "for", value_name = "DURATION", value_parser = value::span)]
    pub span: Option<Duration>,

    /// Time between samples, e.g. `1s` or `500ms`
    #[arg(long, value_name = "DURATION", value_parser = value::interval)]
    pub interval: Option<Duration>,

    /// GPUs to show: comma-separated indices or UUIDs
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value::gpu)]
    pub gpu: Vec<String>,

    #[command(flatten)]
    pub look: LookArgs,

    /// Exit with code 3 if the verdict is one of these
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = value::kinds())]
    pub fail_if: Vec<Kind>,

    /// Record every sample to a new file, for `pipetop replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Rotate the recording at this size, keeping the full file as FILE.1 [default: 1GiB]
    #[arg(long, value_name = "SIZE", requires = "record", value_parser = value::file_size)]
    pub record_size: Option<u64>,

    /// Omit command lines from the recording
    #[arg(long, requires = "record")]
    pub no_command_lines: bool,

    #[command(flatten)]
    pub web: Web,
}

/// How to draw.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, clap::Args)]
pub struct LookArgs {
    /// Colour theme
    #[arg(long, value_name = "NAME")]
    pub theme: Option<ThemeName>,

    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
}

/// Where to serve metrics.
#[derive(Debug, Default, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Serving")]
pub struct Web {
    /// Serve metrics to Prometheus on this address; may be repeated. Without a host: on all addresses
    #[arg(long = "web.listen-address", value_name = "[HOST]:PORT", value_parser = value::address)]
    pub listen: Vec<String>,

    /// Path of the metrics [default: /metrics]
    #[arg(long = "web.telemetry-path", value_name = "PATH", value_parser = value::telemetry_path)]
    pub metrics: Option<String>,

    /// Read the certificate and passwords from this Prometheus web configuration file
    #[arg(long = "web.config.file", value_name = "FILE")]
    pub config_file: Option<PathBuf>,
}

/// Which files and directories to read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Paths")]
pub(crate) struct PathArgs {
    /// Use this configuration file instead of the default one
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,

    /// Read processes from this directory instead of /proc
    #[arg(long, value_name = "DIR", default_value = "/proc", global = true)]
    pub proc_root: PathBuf,

    /// Read devices and control groups from this directory instead of /sys
    #[arg(long, value_name = "DIR", default_value = "/sys", global = true)]
    pub sys_root: PathBuf,

    /// Load this NVML library instead of the system's
    #[arg(long, value_name = "PATH", global = true)]
    pub nvml_lib: Option<PathBuf>,
}
