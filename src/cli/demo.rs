//! What can be asked of `pipetop demo`.

use clap::Args;

use super::{Extent, Watch, Workload};
use crate::error::Hinted;
use crate::workload::settings::Settings;

/// Launch the built-in loader workload and watch it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
#[derive(Debug, PartialEq, Args)]
pub struct Demo {
    /// Describe the presets
    #[arg(long, conflicts_with_all = ["calibrate", "remove_dataset"])]
    pub list: bool,

    /// Run every preset, and compare what is estimated from outside with what the job itself reports
    #[arg(long, conflicts_with = "remove_dataset")]
    pub calibrate: bool,

    /// Let the job report nothing: what is shown is seen from outside, as of any other job
    #[arg(long)]
    pub no_probe: bool,

    /// Remove the image files that were made for it, and exit
    #[arg(long)]
    pub remove_dataset: bool,

    #[command(flatten)]
    pub workload: Workload,

    #[command(flatten)]
    pub extent: Extent,

    #[command(flatten, next_help_heading = "Watching")]
    pub watch: Watch,
}

impl Demo {
    /// The job to run.
    ///
    /// # Errors
    /// Where what was typed cannot go together.
    pub fn settings(&self) -> Result<Settings, Hinted> {
        Ok(self.extent.of(self.workload.settings()?))
    }
}
