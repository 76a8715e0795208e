//! The speed of the simulation against its target: `cargo bench --bench simulate`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use pipetop::testing::lab::experiments::simulate::{SimulationSettings, Study, run};

/// Number of runs; the fastest counts, since other load only makes them slower.
const TRIES: u32 = 5;

fn best(work: impl Fn() -> u64) -> (Duration, u64) {
    let tries = (0..TRIES).map(|_| {
        #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
        let began = Instant::now();
        let batches = black_box(work());
        (began.elapsed(), batches)
    });
    tries.min().unwrap_or_default()
}

fn report(name: &str, limit: Duration, work: impl Fn() -> u64) {
    let (time, batches) = best(work);
    let per_second = batches as f64 / time.as_secs_f64();
    let part = time.as_secs_f64() / limit.as_secs_f64() * 100.0;
    println!(
        "{name:<44} {batches:>8} batches  {:>9.3} ms  {per_second:>10.0} batches/s  {part:>5.1} % of {limit:?}",
        time.as_secs_f64() * 1e3
    );
}

fn main() {
    let starved = SimulationSettings {
        load_jitter: 0.05,
        in_order: false,
        clock: Some(Duration::from_millis(100)),
        ..SimulationSettings::default()
    };
    let short = Duration::from_millis(20);
    report("30 s, one run", short, || run(&starved, 0).batches);
    report("30 s, ten runs and other worker counts", short, || {
        let study = Study::of(&starved, 0, 10);
        study.runs.iter().map(|run| run.batches).sum()
    });
    let million = |in_order, load_jitter| SimulationSettings {
        load: Duration::from_micros(6900),
        step: Duration::from_millis(1),
        load_jitter,
        in_order,
        clock: None,
        span: Duration::from_secs(1001),
        ..SimulationSettings::default()
    };
    let long = Duration::from_secs(2);
    for (name, in_order, jitter) in [
        ("a million batches, in order, exact", true, 0.0),
        ("a million batches, in order, jitter", true, 0.3),
        ("a million batches, any order, jitter", false, 0.3),
    ] {
        let settings = million(in_order, jitter);
        report(name, long, || run(&settings, 0).batches);
    }
}
