//! What a recording holds while it is being written: the readings of a program that prints nothing yet can be counted.

use std::path::Path;
use std::time::Duration;

use pipetop::testing::record::Recording;

use crate::waiting::wait;

/// Readings in the file by now; 0 until it holds a whole one.
pub fn readings(path: &Path) -> u64 {
    Recording::open(path).map_or(0, |recording| recording.len())
}

/// Waits until the file holds so many readings.
pub fn wait_for_readings(path: &Path, count: u64) {
    wait("readings", || (readings(path) >= count).then_some(()));
}

/// Waits until two readings in the file have a job that has reported a step.
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

/// Time of the newest reading, since the program began; zero until there is one.
pub fn newest(path: &Path) -> Duration {
    Recording::open(path).map_or(Duration::ZERO, |recording| recording.span().1)
}
