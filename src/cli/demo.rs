//! What can be asked of `pipetop demo`.

use clap::Args;

use super::{Extent, Watch, Workload};
use crate::error::Hinted;
use crate::workload::settings::Settings;

/// Start a training job made for looking at, and watch it.
///
/// The built-in job has loader worker processes, a queue, a trainer and a device, a simulated one where there is no
/// GPU, and a bottleneck of your choice. pipetop watches it as it would watch your own, and ends it when you quit.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "The demonstration")]
pub struct Demo {
    /// Describe the bottlenecks that can be shown, and exit
    #[arg(long, conflicts_with_all = ["calibrate", "remove_dataset", "record"])]
    pub list: bool,

    /// Watch every preset in turn, without a screen: is the verdict right, and how far are the waits that are
    /// estimated from outside from those that the job itself reports?
    #[arg(long, conflicts_with_all = ["remove_dataset", "record"])]
    pub calibrate: bool,

    /// Let the job report nothing: what is shown is seen from outside, as of any other job
    #[arg(long)]
    pub no_probe: bool,

    /// Remove the image files that were made for it, and exit
    #[arg(long, conflicts_with = "record")]
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
