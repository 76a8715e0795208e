//! The arguments of `pipetop diff`.

use std::path::PathBuf;

use clap::Args;

use crate::options::value;
use crate::units::Share;

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
