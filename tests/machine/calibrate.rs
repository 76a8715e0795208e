//! Every preset of the built-in job gets the verdict that it is made for, and the wait share seen from outside agrees
//! with the one that the job measures. Runs on the simulated device, in real time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::path::Path;
use std::process::Command;

use pipetop::testing::lab::workload::presets::{PRESETS, Preset};
use pipetop::testing::lab::workload::settings::Load;
use serde_json::Value;
use support::machine::{Place, Share};

/// Presets that are made for a cause, with that cause.
const CAUSES: [(&str, &str); 4] = [
    ("decode", "cpu-preprocess"),
    ("disk", "disk"),
    ("transfer", "transfer"),
    ("slow-worker", "head-of-line"),
];
/// The preset that waits for copies to the device. From outside, the simulated device cannot be seen.
const HIDDEN_FROM_OUTSIDE: &str = "transfer";
/// Most by which the two wait shares may differ.
const OFF: f64 = 0.05;
/// A preset that is watched longer. Its steps are shorter than the time between two polls of the trainer, so its wait
/// share is an estimate from polls, of which it needs more.
const LONGER: (&str, &str) = ("disk", "60s");
/// Jobs that only sleep leave the CPUs to others: this many run side by side.
const TOGETHER: usize = 4;

fn pipetop(cache: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_pipetop"))
        .args(arguments)
        .env("XDG_CACHE_HOME", cache)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    output.stdout
}

/// Returns what is wrong with a preset's verdict.
fn wrong(cache: &Path, preset: &str) -> Result<(), String> {
    let arguments = [
        "demo",
        "--calibrate",
        "--json",
        "--dataset-size",
        "8MiB",
        "--device",
        "sim",
    ];
    let span = if preset == LONGER.0 { LONGER.1 } else { "15s" };
    let more = ["--preset", preset, "--for", span];
    let document = pipetop(cache, &[&arguments[..], &more].concat());
    let document: Value = serde_json::from_slice(&document).unwrap();
    let row = &document["rows"][0];
    println!("{row}");
    let fault = |what: &str| Err(format!("{preset}: {what}: {row}"));
    assert_eq!(row["preset"], preset);
    if row["right"] != true || row["kind"] != row["expected"] {
        return fault("another verdict than expected");
    }
    let (Some(seen), Some(exact)) = (row["wait_share"].as_f64(), row["wait_share_exact"].as_f64())
    else {
        return fault("no wait share");
    };
    if (seen - exact).abs() > OFF {
        return fault("the wait share from outside is off");
    }
    if preset != HIDDEN_FROM_OUTSIDE && row["kind_from_outside"] != row["expected"] {
        return fault("another verdict from outside");
    }
    match CAUSES.iter().find(|(name, _)| *name == preset) {
        Some((_, cause)) if row["cause"] != *cause => fault("another cause"),
        _ => Ok(()),
    }
}

fn sleeps(preset: &Preset) -> bool {
    // The preset that is watched longer mostly waits for the disk.
    matches!(preset.settings().load, Load::Time(_)) || preset.name == LONGER.0
}

#[test]
fn every_busy_preset_gets_its_verdict_and_is_seen_rightly_from_outside() {
    let _machine = Place::take(Share::Whole);
    let cache = tempfile::tempdir().unwrap();
    let busy = PRESETS.iter().filter(|preset| !sleeps(preset));
    let faults: Vec<_> = busy
        .filter_map(|preset| wrong(cache.path(), preset.name).err())
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_preset_that_sleeps_gets_its_verdict_and_is_seen_rightly_from_outside() {
    let _machine = Place::take(Share::Quarter);
    let cache = tempfile::tempdir().unwrap();
    let fault = |preset: &Preset| wrong(cache.path(), preset.name).err();
    let asleep = PRESETS.iter().filter(|preset| sleeps(preset));
    let (longer, others): (Vec<&Preset>, Vec<_>) =
        asleep.partition(|preset| preset.name == LONGER.0);
    let faults = std::thread::scope(|scope| {
        let start = |preset: &&'static Preset| {
            let preset = *preset;
            scope.spawn(move || fault(preset))
        };
        let longer: Vec<_> = longer.iter().map(start).collect();
        let mut faults = Vec::new();
        for together in others.chunks(TOGETHER) {
            let trials: Vec<_> = together.iter().map(start).collect();
            faults.extend(trials.into_iter().filter_map(|trial| trial.join().unwrap()));
        }
        faults.extend(longer.into_iter().filter_map(|trial| trial.join().unwrap()));
        faults
    });
    assert!(faults.is_empty(), "{faults:#?}");
}
