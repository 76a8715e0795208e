//! What can be asked of `pipetop replay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Watch, value};
use crate::error::Hinted;
use crate::verdict::Kind;

/// Look at a recording: the same screen, and the same reports, of what was written with --record.
///
/// Times are counted from the begin of the recording, as in `90s` or `1h 2min`. A file that was cut off, also by a
/// kill, is shown up to its last whole reading.
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "The recording")]
pub struct Replay {
    /// A file that --record has written
    pub file: PathBuf,

    /// Leave out what lies before
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    pub from: Option<Duration>,

    /// Leave out what lies behind
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    pub to: Option<Duration>,

    /// How fast the screen begins: 1 is as it was, 10 is ten times as fast
    #[arg(long, value_name = "FACTOR", value_parser = value::speed)]
    pub speed: Option<f64>,

    /// Print one report on all of it and exit
    #[arg(long)]
    pub once: bool,

    /// Print JSON: with --once one document, else one line per reading
    #[arg(long)]
    pub json: bool,

    /// Colours, by the name of a theme
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,

    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,

    /// Exit with code 3 when the last verdict is one of these
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = value::kinds())]
    pub fail_if: Vec<Kind>,
}

impl Replay {
    /// # Errors
    /// Where what was typed cannot go together.
    pub(super) fn check(&self) -> Result<(), Hinted> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if to <= from => Err(Hinted::new(
                "--to is not behind --from",
                "both count from the begin of the recording, as in --from 10min --to 12min",
            )),
            _ => Ok(()),
        }
    }

    /// How the same would be watched live.
    pub fn watch(&self) -> Watch {
        Watch {
            once: self.once,
            json: self.json,
            theme: self.theme.clone(),
            ascii: self.ascii,
            fail_if: self.fail_if.clone(),
            ..Watch::default()
        }
    }
}
