//! The arguments of `pipetop replay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::error::Hinted;
use crate::options::{LookArgs, WatchArgs, value};
use crate::verdict::Kind;

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
