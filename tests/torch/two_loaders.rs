//! Two loaders that each provide a batch for a step: each is shown with its own figures, against the script's marks.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::machine::{Python, Share, each_torch, last_torch, note};
use support::run_folder::RunFolder;
use support::waiting::ToEnd;

use crate::clock::now;
use crate::job::Job;
use crate::trial::PIPETOP;
use crate::truth::Truth;

const SECONDS: &str = "10";
/// Tolerance of shares and of rates.
const WITHIN: f64 = 0.08;
/// Tolerance if both start new workers every few seconds: their iterators have to be found again.
const WITHIN_ANEW: f64 = 0.2;

fn script() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/torch/run/two_loaders.py"
    ))
}

#[test]
fn two_loaders_of_a_running_job() {
    each_torch(Share::Sixth, |python| {
        let (report, window, truths) = running(python, &["1", "2", "60"]);
        agrees(&report, &window, &truths, [1, 2]);
    });
}

#[test]
fn two_loaders_that_start_anew_every_few_seconds() {
    last_torch(Share::Sixth, |python| {
        let (report, window, truths) = running(python, &["1", "2", "60", "25"]);
        let rank = &report["job"]["ranks"][0];
        let pair = [
            (&rank["other_loaders"][0], &truths[0]),
            (&rank["loader"], &truths[1]),
        ];
        close(&pair, rank, &window, WITHIN_ANEW);
        // Both serve every step, so neither is a validation.
        let validation = rank["validation"]["share"].as_f64().unwrap_or(0.0);
        assert!(validation < 0.02, "{rank:#}");
    });
}

/// The workers of the validation are idle most of the time, but still too few.
#[test]
fn a_training_and_a_validation_that_both_wait() {
    last_torch(Share::Sixth, |python| {
        let script = script().with_file_name("validation_beside.py");
        let mut job = Job::script(&python.path, &[], Share::Sixth, &script, &["60".into()])
            .expect("the script starts");
        job.reach(30, Some(0)).expect("batches");
        let output = Command::new(PIPETOP)
            .args([&job.pid().to_string(), "--once", "--json", "--for", "14s"])
            .to_end();
        let report = report(&output.stdout);
        let advice = format!("{:#}", report["verdict"]["advice"]);
        note(&advice);
        let advised = |words: &str| advice.contains(words);
        assert!(advised("loader 1: num_workers 2 -> "), "{report:#}");
        assert!(
            advised("loader 2 (validation): num_workers 2 -> "),
            "{report:#}"
        );
        assert!(!advised("prefetch_factor"), "{report:#}");
    });
}

/// Each batch of the inner loader goes into one of the outer loader, and the trainer takes it only once.
#[test]
fn a_loader_within_the_dataset_of_another() {
    for workers in ["2", "0"] {
        last_torch(Share::Sixth, |python| {
            let script = script().with_file_name("nested_loader.py");
            let arguments = [workers.into(), "60".into()];
            let mut job = Job::script(&python.path, &[], Share::Sixth, &script, &arguments)
                .expect("the script starts");
            job.reach(10, None).expect("batches");
            let output = Command::new(PIPETOP)
                .args([&job.pid().to_string(), "--once", "--json", "--for"])
                .arg(format!("{SECONDS}s"))
                .to_end();
            let to = now();
            let (report, truth) = (report(&output.stdout), job.truth(None));
            let rank = &report["job"]["ranks"][0];
            let seconds = report["window"]["seconds"].as_f64().expect("a window");
            let rate = truth.rate(to - seconds, to).expect("batches");
            let told = rank["step"]["batches_per_s"].as_f64().expect("a rate");
            note(&format!("{workers} workers: rate {told} of {rate:.2}"));
            assert!((told / rate - 1.0).abs() < WITHIN, "{rate}: {rank:#}");
        });
    }
}

/// Runs the script, and returns the report, the time that it covers, and the truth of each loader.
fn running(python: &Python, arguments: &[&str]) -> (Value, Range<f64>, [Truth; 2]) {
    let arguments: Vec<String> = arguments.iter().copied().map(String::from).collect();
    let mut job = Job::script(&python.path, &[], Share::Sixth, script(), &arguments)
        .expect("the script starts");
    job.reach(10, Some(0)).expect("batches");
    let began = now();
    let output = Command::new(PIPETOP)
        .args([&job.pid().to_string(), "--once", "--json", "--for"])
        .arg(format!("{SECONDS}s"))
        .to_end();
    let truths = [0, 1].map(|place| job.truth(Some(place)));
    let report = report(&output.stdout);
    let window = window(&report, began);
    (report, window, truths)
}

fn report(out: &[u8]) -> Value {
    serde_json::from_slice(out).expect("a report")
}

#[test]
fn two_loaders_with_as_many_workers_in_a_launched_job() {
    each_torch(Share::Sixth, |python: &Python| {
        let place = RunFolder::new();
        let folder = place.path().display().to_string();
        let script = script().display().to_string();
        let words = [
            "--once",
            "--json",
            "--stop",
            "--for",
            "14s",
            "--",
            &python.path,
        ];
        let began = now();
        let output = place.run(&[&words[..], &[&script, &folder, "1", "1", "60"]].concat());
        let truths = [0, 1].map(|rank| Truth::read(&place.path().join(format!("truth.{rank}"))));
        let report = report(&output.stdout);
        agrees(&report, &window(&report, began), &truths, [1, 1]);
    });
}

/// Returns the time that a report covers, if pipetop was started at `began`. If workers start in that time, their first
/// batches take long.
fn window(report: &Value, began: f64) -> Range<f64> {
    let seconds = |pointer| report.pointer(pointer).and_then(Value::as_f64);
    let to = began + seconds("/latest/at_seconds").expect("it has watched");
    to - seconds("/window/seconds").expect("a window")..to
}

fn agrees(report: &Value, window: &Range<f64>, truths: &[Truth; 2], workers: [usize; 2]) {
    let rank = &report["job"]["ranks"][0];
    note(&format!("{:#}", report["verdict"]["advice"]));
    let (slow, other) = (&rank["loader"], &rank["other_loaders"][0]);
    assert_eq!(
        (&slow["number"], &other["number"]),
        (&2.into(), &1.into()),
        "{rank:#}"
    );
    let count = |workers: &Value| workers.as_array().map(Vec::len);
    assert_eq!(count(&rank["workers"]), Some(workers[1]), "{rank:#}");
    assert_eq!(count(&other["workers"]), Some(workers[0]), "{rank:#}");
    close(
        &[(other, &truths[0]), (slow, &truths[1])],
        rank,
        window,
        WITHIN,
    );
    let advice: Vec<&str> = report["verdict"]["advice"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        advice.iter().all(|line| line.starts_with("loader 2: ")) && !advice.is_empty(),
        "{advice:?}"
    );
}

/// Checks that each loader has the rate and the waits of its truth.
fn close(pair: &[(&Value, &Truth)], rank: &Value, window: &Range<f64>, within: f64) {
    for (loader, truth) in pair {
        let seen = |key: &str| {
            loader[key]
                .as_f64()
                .unwrap_or_else(|| panic!("{key}: {rank:#}"))
        };
        let rate = truth.rate(window.start, window.end).expect("batches");
        let wait = truth.wait_share(window.start, window.end);
        note(&format!(
            "rate {} of {rate:.2}, wait {} of {wait:.3}",
            seen("batches_per_s"),
            seen("wait_share")
        ));
        assert!(
            (seen("batches_per_s") / rate - 1.0).abs() < within,
            "{rate}: {rank:#}"
        );
        assert!(
            (seen("wait_share") - wait).abs() < within,
            "{wait}: {rank:#}"
        );
    }
}
