//! The built-in job in real time: its highest speed, whether it keeps the pace of its simulation, and the verdict on it
//! with a busy GPU.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use pipetop::testing::lab::experiments::simulate;
use pipetop::testing::lab::workload::presets::preset;
use pipetop::testing::lab::workload::settings::{DeviceKind, JobSettings, Load, StepTime, word};
use pipetop::testing::probe::{self, Step};
use pipetop::testing::source::probe::Listener;
use pipetop::units::Pid;
use serde_json::Value;
use support::machine::{self, Share, note};
use support::measured::median_of;
use support::traces::Place;
use support::waiting::{ToEnd, ended};

/// Returns the one document of a run that succeeded.
fn document(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn its_own_overhead_is_no_bottleneck() {
    let _machine = machine::Place::take(Share::Whole);
    let place = Place::new();
    let line = "demo --load-ms 0 --step-ms 0 --batch-size 64 --image-size 32 --workers 2 \
                --device sim --once --for 4s --json";
    let rate = median_of(3, || {
        let output = place.command(line).to_end();
        let report = document(&output);
        let rate = number(&report["job"]["ranks"][0]["step"]["batches_per_s"]);
        note(&format!("{rate:.0} batches/s"));
        rate
    });
    assert!(rate >= 2000.0, "{rate:.0} batches/s");
}

/// Returns the steps that a job reports while it runs.
fn steps(settings: &JobSettings) -> Vec<Step> {
    let listener = Listener::bind().expect("a socket");
    // Ends with this thread, even if the thread fails.
    let mut trainer = Command::new(env!("CARGO_BIN_EXE_pipetop"))
        .arg("builtin-trainer")
        .arg(word(settings))
        .env(probe::VARIABLE, listener.address())
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let pid = Pid(i32::try_from(trainer.id()).expect("a number"));
    assert!(ended(&mut trainer).success());
    let report = listener.take(pid).expect("it reports");
    assert_eq!((report.dropped, report.totals.lost), (0, 0));
    report.steps.into()
}

/// Returns the number of steps done within `time` of the first batch.
fn done_in(steps: &[Step], time: Duration) -> usize {
    let first = steps.first().expect("steps").wait_to;
    let end = first + u64::try_from(time.as_nanos()).expect("short");
    assert!(
        steps.last().is_some_and(|step| step.step_to >= end),
        "too short a run"
    );
    steps.iter().filter(|step| step.step_to < end).count()
}

fn simulated(live: &JobSettings, time: Duration, seed: u64) -> u64 {
    let (Load::Time(load), StepTime::Fixed(step)) = (live.load, live.step) else {
        panic!("times are set");
    };
    let mut settings = simulate::SimulationSettings {
        workers: live.workers,
        prefetch_factor: live.prefetch_factor,
        load,
        load_jitter: live.load_jitter,
        step,
        in_order: live.in_order,
        ..simulate::SimulationSettings::default()
    };
    let first = simulate::run(&settings, seed).first_batch.expect("a batch");
    settings.span = first + time;
    simulate::run(&settings, seed).batches
}

#[test]
fn the_three_known_pipelines_do_as_many_steps_as_simulated() {
    // Ends between two bursts of the starved job, so that the count does not depend on chance.
    const TIME: Duration = Duration::from_millis(9400);
    const LIVE: u64 = 3;
    const SIMULATED: u64 = 30;
    let _machine = machine::Place::take(Share::Whole);
    let names = ["blog-starved", "blog-matched", "blog-free"];
    std::thread::scope(|scope| {
        let runs = names.map(|name| {
            let preset = preset(name).expect("a preset");
            let seeds = 1..=LIVE;
            let runs = seeds.map(|seed| JobSettings {
                duration: Some(Duration::from_millis(12_500)),
                device: DeviceKind::Sim,
                seed,
                ..preset.settings()
            });
            let runs = runs.map(|settings| scope.spawn(move || steps(&settings)));
            (name, preset.settings(), runs.collect::<Vec<_>>())
        });
        for (name, settings, runs) in runs {
            let live = runs
                .into_iter()
                .map(|run| done_in(&run.join().expect("it runs"), TIME));
            let live = live.sum::<usize>() as f64 / LIVE as f64;
            let seeds = 0..SIMULATED;
            let simulated = seeds.map(|seed| simulated(&settings, TIME, seed));
            let simulated = simulated.sum::<u64>() as f64 / SIMULATED as f64;
            let off = live / simulated - 1.0;
            note(&format!(
                "{name}: {live:.1} live, {simulated:.1} simulated, {:+.1} %",
                100.0 * off
            ));
            assert!(
                off.abs() <= 0.03,
                "{name}: {live} live, {simulated} simulated"
            );
        }
    });
}

#[test]
fn on_a_gpu_that_works_the_verdict_is_compute_bound() {
    let _machine = machine::Place::take(Share::Whole);
    let place = Place::new();
    let driver = place.path().join("driver");
    fs::create_dir(&driver).expect("ours");
    fake_cuda::install(&driver);
    let line = "demo --device cuda --once --json --preset compute --for 13s";
    let mut command = place.command(line);
    command.env("LD_LIBRARY_PATH", &driver);
    let report = document(&command.to_end());
    assert_eq!(report["verdict"]["kind"], "compute-bound", "{report:#}");
    let device = &report["job"]["ranks"][0]["device"];
    assert!(number(&device["busy_share"]) > 0.9, "{device}");
}
