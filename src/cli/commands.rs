//! The arguments of the commands, and their checks.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::error::Hinted;
use crate::job::Target;
use crate::options::{LookArgs, WatchArgs, Web, Words, value};
use crate::units::Share;
use crate::verdict::Kind;

/// Exit codes of `run`.
const CODES: &str = "Exit codes: the command's own, or 128 plus the signal number if a signal ended it; 0 if pipetop \
stopped it or left it running; 3 if it succeeded and the verdict matches --fail-if; 126 if it is not executable; \
127 if it is not found.";

/// Start a training command and watch it, with exact steps and waits.
///
/// The command gets its arguments unchanged, environment variables given before it (`NAME=VALUE`, as with `env`), and
/// the signals that pipetop receives. Its output appears in a pane of the screen. If standard output is not a terminal,
/// the output passes through, to standard error with --json.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Running", after_help = CODES)]
pub(crate) struct RunArgs {
    /// Also append the command's output to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Pass standard input to the command
    #[arg(long)]
    pub stdin: bool,

    /// Stop the command after the --once report, or after the --for time. Without a screen, one that never trains
    /// is stopped after 1 to 5 minutes
    #[arg(long)]
    pub stop: bool,

    /// Load no hook into Python; estimate steps and waits from outside
    #[arg(long)]
    pub no_hook: bool,

    #[command(flatten, next_help_heading = "Watching")]
    pub watch: WatchArgs,

    #[command(flatten)]
    pub words: Words,
}

impl RunArgs {
    /// # Errors
    /// Returns an error if the arguments conflict.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        self.words.check("run")?;
        if self.stop && !self.watch.once && self.watch.span.is_none() {
            return Err(Hinted::new(
                "--stop needs --once or --for",
                "add --once, or --for with a duration, as in --for 2min",
            ));
        }
        Ok(())
    }
}

/// Play back a recording, with the same screen and the same reports.
///
/// Times count from the start of the recording, e.g. `90s` or `1h 2min`. A truncated file plays up to its last complete
/// sample.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Recording")]
pub(crate) struct ReplayArgs {
    /// Recording made with --record
    #[arg(help_heading = None)]
    pub file: PathBuf,

    /// Start at this time
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    pub from: Option<Duration>,

    /// End at this time
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    pub to: Option<Duration>,

    /// Initial playback speed: 1 is real time, 10 is ten times as fast
    #[arg(long, value_name = "FACTOR", conflicts_with_all = ["once", "json"], value_parser = value::speed)]
    pub speed: Option<f64>,

    /// Print one report on the whole recording and exit
    #[arg(long)]
    pub once: bool,

    /// Print JSON: one document with --once, otherwise one line per sample
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub look: LookArgs,

    /// Exit with code 3 if the last verdict is one of these
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = value::kinds())]
    pub fail_if: Vec<Kind>,
}

impl ReplayArgs {
    /// # Errors
    /// Returns an error if the arguments conflict.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if to <= from => Err(Hinted::new(
                "--to must be later than --from",
                "both count from the start of the recording, as in --from 10min --to 12min",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the same options for watching a running job.
    pub(crate) fn watch(&self) -> WatchArgs {
        WatchArgs {
            once: self.once,
            json: self.json,
            look: self.look,
            fail_if: self.fail_if.clone(),
            ..WatchArgs::default()
        }
    }
}

/// Compare two runs: did the change help?
///
/// Use two recordings made with --record, or two reports made with --once --json. Only recordings show whether a difference
/// may be chance.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct DiffArgs {
    /// Recording or JSON report from before the change
    #[arg(help_heading = None)]
    pub before: PathBuf,

    /// Recording or JSON report from after the change
    #[arg(help_heading = None)]
    pub after: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Exit with code 3 if AFTER is significantly slower, by more than this, e.g. 5%
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    pub fail_if_slower: Option<Share>,
}

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
