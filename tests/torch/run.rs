//! `pipetop run` on the real PyTorch.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use serde_json::Value;
use support::machine::{Share, each_torch, last_torch};
use support::run_folder::RunFolder;

const TRAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/torch/run/train.py");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the report of one run, and the script's own figures, a line for each rank.
fn trained(place: &RunFolder, arguments: &[&str]) -> (Value, Vec<Value>) {
    let run = place.run(arguments);
    let (out, errors) = (text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{out}\n{errors}");
    let report = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    let said = errors
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    (report, said.collect())
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Returns the wait share of the script's first `seconds`, by its own figures.
fn own_share(script: &Value, seconds: f64) -> f64 {
    let waits = script["waits"].as_array().into_iter().flatten();
    let waited = waits.map(|wait| {
        let [came, had] = [0, 1].map(|end| number(&wait[end]).min(seconds));
        had - came
    });
    waited.sum::<f64>() / seconds
}

#[test]
fn a_training_is_reported_exactly_and_runs_to_its_end() {
    each_torch(Share::Sixth, |python| {
        let place = RunFolder::new();
        // 20 ms of waits in each 50 ms. The report covers the time from the first batch.
        let words = ["--once", "--json", "--for", "5s", "--", &python.path, TRAIN];
        let (report, said) = trained(
            &place,
            &[&words[..], &["120", "1", "0.05", "0.03"]].concat(),
        );
        assert_eq!(report["window"]["access"], "T3", "{report:#}");
        // The verdict may be that of the reading before, if its cause is another one since.
        let seen = number(&report["job"]["ranks"][0]["wait_share"]);
        let [truth] = &said[..] else {
            panic!("it did not run to its end: {said:?}");
        };
        let truth = own_share(truth, number(&report["window"]["seconds"]));
        assert!((seen - truth).abs() < 0.02, "{seen} is not {truth}");
        assert_eq!(report["job"]["ranks"][0]["loader"]["num_workers"], 1);
        place.assert_nothing_is_left();
    });
}

#[test]
fn without_the_hook_it_is_estimated() {
    last_torch(Share::Sixth, |python| {
        let place = RunFolder::new();
        let words = [
            "--once",
            "--json",
            "--no-hook",
            "--for",
            "5s",
            "--",
            &python.path,
            TRAIN,
        ];
        let (report, said) = trained(
            &place,
            &[&words[..], &["130", "1", "0.05", "0.03"]].concat(),
        );
        assert_ne!(report["window"]["access"], "T3", "{report:#}");
        let [truth] = &said[..] else {
            panic!("it did not run to its end: {said:?}");
        };
        let seen = number(&report["verdict"]["wait_share"]);
        // It runs only a little longer than it is watched, so its own figures cover the same time.
        let truth = own_share(truth, number(&truth["seconds"]));
        // Importing is not training, so it does not count as waiting.
        assert!((seen - truth).abs() < 0.08, "{seen} is not {truth}");
        let seconds = number(&report["window"]["seconds"]);
        assert!((4.0..7.5).contains(&seconds), "{seconds} s");
        place.assert_nothing_is_left();
    });
}

#[test]
fn stop_ends_it_after_the_report() {
    last_torch(Share::Sixth, |python| {
        let place = RunFolder::new();
        let words = [
            "--once",
            "--json",
            "--stop",
            "--for",
            "1s",
            "--",
            &python.path,
            TRAIN,
        ];
        let (report, said) = trained(
            &place,
            &[&words[..], &["4000", "1", "0.02", "0.03"]].concat(),
        );
        assert_eq!(report["verdict"]["kind"], "warming-up", "{report:#}");
        assert_eq!(said, Vec::<Value>::new(), "it was ended");
        place.assert_nothing_is_left();
    });
}

#[test]
fn background_processes_of_a_script_are_watched_to_their_end() {
    last_torch(Share::Sixth, |python| {
        let place = RunFolder::new();
        // Runs long enough for two samples of the training itself, whenever the samples are taken.
        let script = format!("{} {TRAIN} 130 1 0.02 0.03 &", python.path);
        let run = place.run(&["--", "sh", "-c", &script]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        let out = text(&run.stdout);
        assert!(out.contains("\"waits\""), "it ran to its end: {out}");
        let summary = out.lines().find(|line| line.contains("batches seen"));
        assert!(
            summary.is_some_and(|line| line.contains("access T3")),
            "{out}"
        );
        place.assert_nothing_is_left();
    });
}

#[test]
fn an_unused_loader_is_reported_in_one_line() {
    last_torch(Share::Sixth, |python| {
        let place = RunFolder::new();
        let script =
            "import time; from torch.utils.data import DataLoader; DataLoader([1]); time.sleep(3)";
        let run = place.run(&["--once", "--", &python.path, "-c", script]);
        assert_eq!(run.status.code(), Some(1));
        let errors = text(&run.stderr);
        assert!(
            errors.contains("the command did not iterate over a DataLoader"),
            "{errors}"
        );
        assert!(
            errors.contains("hint: ") && errors.contains("docs/probe.md"),
            "{errors}"
        );
        place.assert_nothing_is_left();
    });
}

#[test]
fn two_ranks_are_seen_as_two() {
    // The newest torch: Debian's torchrun of 1.13 does not work with its own Python.
    last_torch(Share::Sixth, |python| {
        let place = RunFolder::new();
        let words = "--once --json --for 3s --";
        let mut words: Vec<&str> = words.split(' ').collect();
        words.push(&python.path);
        let script = "-m torch.distributed.run --nproc_per_node=2 --master_port=0";
        words.extend(script.split(' '));
        words.extend([TRAIN, "150", "1", "0.02", "0.03"]);
        let (report, said) = trained(&place, &words);
        let ranks = report["job"]["ranks"].as_array().expect("a list");
        let numbers: Vec<_> = ranks.iter().map(|rank| rank["rank"].clone()).collect();
        assert_eq!(numbers, [0, 1], "{report:#}");
        assert_eq!(report["window"]["access"], "T3");
        assert_eq!(said.len(), 2, "{said:?}");
        place.assert_nothing_is_left();
    });
}

#[test]
fn a_python_without_pytorch_did_not_train() {
    last_torch(Share::Sixth, |python| {
        let place = RunFolder::new();
        let script = "import time; time.sleep(1.2)";
        let run = place.run(&["--once", "--", &python.path, "-c", script]);
        let errors = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains("has not loaded PyTorch") && errors.contains("hint: "),
            "{errors}"
        );
        place.assert_nothing_is_left();
    });
}
