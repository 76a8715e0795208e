//! The arguments of `pipetop demo`.

use clap::Args;

use super::{ExtentArgs, WorkloadArgs};
use crate::error::Hinted;
use crate::lab::workload::settings::JobSettings;
use crate::options::WatchArgs;

/// Start a demo training job and watch it.
///
/// The built-in job has loader worker processes, a queue, a trainer, a device (simulated if there is no GPU) and a
/// bottleneck of your choice. pipetop watches it like any other job and stops it when you quit.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that can be typed"
)]
#[derive(Debug, PartialEq, Args)]
#[command(next_help_heading = "Demo")]
pub struct DemoArgs {
    /// List the available bottlenecks and exit
    #[arg(long, conflicts_with_all = ["calibrate", "remove_dataset", "record", "json", "once"])]
    pub list: bool,

    /// Show every bottleneck for ten seconds, with a sentence on what to look at; any key shows the next
    #[arg(long, conflicts_with_all = ["list", "calibrate", "remove_dataset", "record", "preset"])]
    pub tour: bool,

    /// Watch every preset without a screen; check the verdicts, and compare the waits estimated from outside with those
    /// the job reports
    #[arg(long, conflicts_with_all = ["remove_dataset", "record"])]
    pub calibrate: bool,

    /// Disable the job's reports, so that it is observed from outside like any other job
    #[arg(long)]
    pub no_probe: bool,

    /// Remove the generated image files and exit
    #[arg(long, conflicts_with_all = ["record", "json", "once"])]
    pub remove_dataset: bool,

    #[command(flatten)]
    pub workload: WorkloadArgs,

    #[command(flatten)]
    pub extent: ExtentArgs,

    #[command(flatten, next_help_heading = "Watching")]
    pub watch: WatchArgs,
}

impl DemoArgs {
    /// Returns the settings of the job.
    ///
    /// # Errors
    /// Returns an error if the arguments conflict.
    pub fn settings(&self) -> Result<JobSettings, Hinted> {
        Ok(self.extent.of(self.workload.settings()?))
    }
}
