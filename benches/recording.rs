//! How long it takes to open a recording of a day, to seek in it and to write it: `cargo bench --bench recording`.
//!
//! It covers 24 hours with a sample per second, of a job with 16 workers on 8 GPUs. Each figure differs from sample to
//! sample.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::time::{Duration, Instant};

use pipetop::testing::engine::Engine;
use pipetop::testing::record::{RecordOptions, Recording, Writer};
use pipetop::testing::source::clock::thread_cpu;
use pipetop::testing::source::replay::past;

use support::noise::Noise;

const DAY: u64 = 86_400;
const WORKERS: u32 = 16;
const GPUS: u32 = 8;
/// Targets.
const OPEN: Duration = Duration::from_secs(1);
const SEEK: Duration = Duration::from_millis(100);

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let began = Instant::now();
    let done = work();
    (done, began.elapsed())
}

/// Returns a memory figure of this process by its name in `/proc/self/status`, such as the peak.
fn memory(field: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap_or(" n/a")
        .trim_start_matches(':')
        .trim()
        .to_owned()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let options = RecordOptions {
        path: folder.path().join("day.rec"),
        size: u64::MAX,
        command_lines: true,
        interval: Duration::from_secs(1),
    };
    let mut noise = Noise::of(WORKERS, GPUS);
    let mut writer = Writer::create(&options).unwrap();
    let mut writing = Duration::ZERO;
    for second in 1..=DAY {
        let sample = noise.sample(second);
        writing += timed(|| writer.write(&sample).unwrap()).1;
    }
    writer.finish().unwrap();
    let bytes = std::fs::metadata(&options.path).unwrap().len();
    println!(
        "written: {} MB, {} B and {:.0?} a reading",
        bytes / 1_000_000,
        bytes / DAY,
        writing / u32::try_from(DAY).unwrap()
    );
    let (mut recording, opening) = timed(|| Recording::open(&options.path).unwrap());
    println!(
        "opened: {opening:.1?} of {OPEN:?}, {} readings",
        recording.len()
    );
    assert!(opening < OPEN, "too slow to open");
    let mut chance = fastrand::Rng::with_seed(2);
    let mut times = vec![];
    for _ in 0..200 {
        let number = chance.u64(0..DAY);
        let begin = thread_cpu();
        let (samples, _) = past(&mut recording, 0, number).unwrap();
        let read = thread_cpu();
        let mut engine = Engine::new(Duration::from_secs(10));
        for sample in samples {
            engine.push(sample);
        }
        assert!(engine.state().verdict().is_some());
        let judged = thread_cpu();
        let spent = |to: Duration, from: Duration| to.saturating_sub(from);
        times.push((
            spent(judged, begin),
            spent(read, begin),
            spent(judged, read),
        ));
    }
    times.sort();
    // CPU time, as wall time would depend on other load of the machine.
    for (name, (all, read, judged)) in [("median", times[100]), ("worst", times[199])] {
        println!("sought, {name}: {all:.1?} of {SEEK:?}: read {read:.1?}, judged {judged:.1?}");
    }
    let median = times[100].0;
    println!("memory: {}, at most {}", memory("VmRSS"), memory("VmHWM"));
    assert!(median < SEEK, "too slow to seek");
}
