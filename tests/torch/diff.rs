//! Comparing two recordings, against the speed of both scripts according to their own marks.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::clock::now;
use crate::job::Job;
use crate::trial::{Outcome, PIPETOP, Situation, ensure, last_python, light};
use support::machine::note;
use support::measured::two_of_three;

const ONE_WORKER: Situation = light("one-worker");
const FOUR_WORKERS: Situation = light("four-workers");
const SECONDS: &str = "25s";
/// Name of the recording in a separate folder.
const FILE: &str = "run.rec";

#[test]
fn more_workers_are_as_much_faster_as_both_scripts_say() {
    last_python(ONE_WORKER, |python| {
        let before = Recorded::of(&ONE_WORKER.job(python)?)?;
        let after = Recorded::of(&FOUR_WORKERS.job(python)?)?;
        agrees(&before, &after, "faster")
    });
}

#[test]
fn two_recordings_of_one_job_do_not_differ() {
    last_python(FOUR_WORKERS, |python| {
        let job = FOUR_WORKERS.job(python)?;
        // The interval has a confidence of 95 %, so one trial may miss the true ratio.
        two_of_three(|| agrees(&Recorded::of(&job)?, &Recorded::of(&job)?, "not-told-apart"))
    });
}

struct Recorded {
    folder: TempDir,
    /// Batches per second by the script's own marks.
    rate: f64,
}

impl Recorded {
    fn of(job: &Job) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let began = now();
        let output = Command::new(PIPETOP)
            .arg(job.pid().to_string())
            .args(["--for", SECONDS, "--json", "--record"])
            .arg(folder.path().join(FILE))
            .output()
            .map_err(|error| error.to_string())?;
        ensure(output.status.success(), || format!("pipetop: {output:?}"))?;
        let rate = job.truth(None).rate(began, now());
        let rate = rate.ok_or_else(|| "too few batches".to_owned())?;
        Ok(Self { folder, rate })
    }
}

/// Checks the outcome, and that the ratio by the scripts' own marks is within the interval.
fn agrees(before: &Recorded, after: &Recorded, outcome: &str) -> Outcome {
    let output = Command::new(PIPETOP)
        .arg("diff")
        .args([before, after].map(|one| one.folder.path().join(FILE)))
        .arg("--json")
        .output()
        .map_err(|error| error.to_string())?;
    let said: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let own = after.rate / before.rate;
    note(&format!(
        "{own:.3} times by their own marks, {} {}",
        said["outcome"], said["speedup"]
    ));
    ensure(said["outcome"] == outcome, || format!("{said:#}"))?;
    let end = |place: usize| said["speedup"]["interval"][place].as_f64();
    let ends = end(0).zip(end(1));
    ensure(
        ends.is_some_and(|(low, high)| (low..=high).contains(&own)),
        || format!("{own:.3} is not within {ends:?}"),
    )
}
