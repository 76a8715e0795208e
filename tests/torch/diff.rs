//! Two recordings beside each other, against how fast both scripts were by their own marks.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::clock::now;
use crate::trial::{Outcome, PIPETOP, Situation, ensure, last_python, light};
use support::machine::{Python, note};

const ONE_WORKER: Situation = light("one-worker");
const FOUR_WORKERS: Situation = light("four-workers");
const SECONDS: &str = "25s";

#[test]
fn more_workers_are_as_much_faster_as_both_scripts_say() {
    last_python(ONE_WORKER, |python| {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (one, four) = (
            folder.path().join("one.rec"),
            folder.path().join("four.rec"),
        );
        let before = recorded(ONE_WORKER, python, &one)?;
        let after = recorded(FOUR_WORKERS, python, &four)?;
        let output = Command::new(PIPETOP)
            .arg("diff")
            .args([&one, &four])
            .arg("--json")
            .output()
            .map_err(|error| error.to_string())?;
        let said: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        let own = after / before;
        note(&format!(
            "{own:.3} times by their own marks, {:#}",
            said["speedup"]
        ));
        agrees(&said, own)
    });
}

fn agrees(said: &Value, own: f64) -> Outcome {
    ensure(said["outcome"] == "faster", || format!("{said:#}"))?;
    let end = |place: usize| said["speedup"]["interval"][place].as_f64();
    let ends = end(0).zip(end(1));
    ensure(
        ends.is_some_and(|(low, high)| (low..=high).contains(&own)),
        || format!("{own:.3} is not within {ends:?}"),
    )
}

/// Records it, and gives its batches per second by its own marks.
fn recorded(situation: Situation, python: &Python, path: &Path) -> Result<f64, String> {
    let job = situation.job(python)?;
    let began = now();
    let status = Command::new(PIPETOP)
        .arg(job.pid().to_string())
        .args(["--for", SECONDS, "--json", "--record"])
        .arg(path)
        .stdout(File::create(path.with_extension("json")).map_err(|error| error.to_string())?)
        .status()
        .map_err(|error| error.to_string())?;
    ensure(status.success(), || format!("pipetop: {status}"))?;
    let rate = job.truth(None).rate(began, now());
    rate.ok_or_else(|| "too few batches".to_owned())
}
