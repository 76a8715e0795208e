//! Says after each sample whether a training job waits for its data:
//! `cargo run --example verdict -- PID`, or `-- FILE` for a recording of `pipetop --record FILE`.

#![expect(clippy::print_stdout, reason = "it is what the example is for")]

use std::path::Path;
use std::time::Duration;

use pipetop::{Engine, Hinted, Source};

fn main() -> Result<(), Hinted> {
    let argument = std::env::args().nth(1);
    let argument =
        argument.ok_or_else(|| Hinted::new("no job", "name a PID or a recording's file"))?;
    let source = match argument.parse() {
        Ok(pid) => Source::process(pid, Duration::from_secs(1))?,
        Err(_) => Source::recording(Path::new(&argument))?,
    };
    // The verdict is about the last ten seconds.
    let mut engine = Engine::new(Duration::from_secs(10));
    for sample in source {
        let sample = sample?;
        let ended = sample.job.as_ref().is_none_or(|job| job.ended);
        if let Some(report) = engine.push(sample).report() {
            let verdict = &report.verdict;
            let wait = verdict
                .wait_share
                .map_or("n/a".to_owned(), |wait| wait.to_string());
            println!("{}: {wait} of the time waiting for data", verdict.kind);
        }
        if ended {
            break;
        }
    }
    Ok(())
}
