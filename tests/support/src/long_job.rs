//! A recording of a job that has trained for a long time: two ranks with a GPU each.

use std::path::Path;
use std::time::Duration;

use pipetop::testing::record::{RecordOptions, Writer};

use crate::noise::Noise;

/// Records this many seconds of a job with this many workers and batches per second.
pub fn record(workers: u32, batches_per_s: u64, seconds: u32, path: &Path) {
    let options = RecordOptions {
        path: path.to_owned(),
        size: 1 << 30,
        command_lines: true,
        interval: Duration::from_secs(1),
    };
    let mut noise = Noise::of(workers, 2);
    (noise.ranks, noise.batches_per_s, noise.restless) = (2, batches_per_s, true);
    let mut writer = Writer::create(&options).expect("the folder is ours");
    for second in 0..=u64::from(seconds) {
        let mut sample = noise.sample(second);
        sample.at.since_start = Duration::from_secs(second);
        writer.write(&sample).expect("there is room");
    }
    writer.finish().expect("there is room");
}
