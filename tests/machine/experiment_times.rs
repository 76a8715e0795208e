//! The experiments in real time: a headspace that is known beforehand, one that is zero, and the knee of a sweep.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use serde_json::Value;
use support::machine::{self, Share, note};
use support::measured::median_of;
use support::traces::Place;
use support::waiting::ToEnd;

/// Returns the one document that a command prints.
fn document(place: &Place, line: &str) -> Value {
    let output = place.command(line).to_end();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let found = serde_json::from_slice(&output.stdout).expect("one JSON document");
    note(&format!("{found}"));
    found
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Returns the median of one figure of these documents.
fn median(found: &[Value], figure: impl Fn(&Value) -> f64) -> f64 {
    let mut figures = found.iter().map(figure);
    median_of(found.len(), || figures.next().expect("one of each"))
}

#[test]
fn a_known_headspace_is_measured() {
    let _machine = machine::Place::take(Share::Quarter);
    let place = Place::new();
    // 46 ms per step, of which 6 ms are waits.
    let line = "headspace --load-ms 184 --step-ms 40 --workers 4 --in-order --device sim \
                --after 30 --steps 60 --rounds 2 --run-steps 204000 --json";
    let found: Vec<Value> = (0..3).map(|_| document(&place, line)).collect();
    let [share, now, free] = ["gain_share", "step_ms_now", "step_ms_free"]
        .map(|key| median(&found, |found| number(&found[key])));
    assert!((share - 0.13).abs() <= 0.02, "{share}");
    assert!(
        (now - 46.0).abs() < 1.5 && (free - 40.0).abs() < 1.5,
        "{now} {free}"
    );
    let width = median(&found, |found| {
        number(&found["interval"][1]) - number(&found["interval"][0])
    });
    assert!(width < 0.1, "{width}");
}

#[test]
fn without_headspace_it_sends_to_the_model() {
    let _machine = machine::Place::take(Share::Whole);
    let place = Place::new();
    let line = "headspace --load-ms 20 --step-ms 10 --workers 4 --device sim \
                --after 10 --steps 20 --rounds 3 --run-steps 1000";
    let output = place.command(line).to_end();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("optimise the model"), "{text}");
    assert!(
        text.contains("over 1000 steps") && text.contains("CPU"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn a_sweep_of_decoding_workers_finds_the_cpus() {
    let _machine = machine::Place::take(Share::Whole);
    let place = Place::new();
    let line =
        "sweep --preset decode --dataset-size 2MiB --device sim --workers 1,2,4 --for 2s --json";
    let found: Vec<Value> = (0..3).map(|_| document(&place, line)).collect();
    let cpus = number(&found[0]["cpus_allowed"]);
    let figure = |found: &Value, row: usize, figure: &str| number(&found["rows"][row][figure]);
    let of_row = |row: usize, name: &str| median(&found, |found| figure(found, row, name));
    for found in &found {
        let advised = number(&found["advised"]);
        assert!(advised <= cpus, "{advised} workers advised: {found:#}");
    }
    // With all CPUs in use, more workers get no more of them. What they gain then depends on the machine's pace, which
    // changes even between two rows of one sweep.
    let cores = |found: &Value, row: usize| figure(found, row, "worker_cpu_cores");
    let beyond = median(&found, |found| cores(found, 2) / cores(found, 1));
    assert!(cpus > 2.0 || beyond < 1.25, "{beyond}");
    let all = median(&found, |found| cores(found, 2));
    assert!(all <= cpus + 0.1, "{all} CPUs");
    // Two workers share the work if there are CPUs for both.
    let (speedup, held) = (of_row(1, "speedup"), of_row(1, "worker_cpu_cores"));
    assert!(held < 1.5 || speedup > 1.2, "{speedup} on {held} CPUs");
    for row in found
        .iter()
        .flat_map(|found| found["rows"].as_array().expect("rows"))
    {
        let cores = number(&row["worker_cpu_cores"]);
        assert!(cores <= number(&row["workers"]) + 0.1, "{row}");
    }
}
