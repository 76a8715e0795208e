//! Reads a recording while it is being written, to see how far a program is that has printed nothing yet.

use std::path::Path;
use std::time::Duration;

use pipetop::testing::record::Recording;

use crate::waiting::wait;

/// Returns the number of samples in the file; 0 until there is a complete one.
pub fn readings(path: &Path) -> u64 {
    Recording::open(path).map_or(0, |recording| recording.len())
}

/// Waits until the file has this many samples.
pub fn wait_for_readings(path: &Path, count: u64) {
    wait("readings", || (readings(path) >= count).then_some(()));
}

/// Waits until the file has two samples of a job that has reported a step.
pub fn wait_for_steps(path: &Path) {
    let with_steps = || {
        let mut recording = Recording::open(path).ok()?;
        let numbers = 0..recording.len();
        let count = numbers.filter(|number| {
            let job = recording
                .read(*number)
                .ok()
                .and_then(|(sample, _)| sample.job);
            let ranks = job.iter().flat_map(|job| &job.ranks);
            let mut reported = ranks.filter_map(|rank| rank.reported.as_ref());
            reported.any(|reported| reported.steps > 0)
        });
        (count.count() >= 2).then_some(())
    };
    wait("readings with steps", with_steps);
}

/// Returns the time of the newest sample, since the program started; zero until there is one.
pub fn newest(path: &Path) -> Duration {
    Recording::open(path).map_or(Duration::ZERO, |recording| recording.span().1)
}
