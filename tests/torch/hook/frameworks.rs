//! Unmodified scripts of common launchers and frameworks: which process reports, its rank, how often it waits and how
//! long.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use pipetop::testing::source::probe::ProbeReport;
use pipetop::units::Pid;

use super::stand::{HookSession, each_torch};
use support::machine::{has, skip, torches};

/// A process's own figures, from the last lines of its output.
#[derive(Debug, serde::Deserialize)]
struct OwnFigures {
    /// `None` = the process that was started.
    pid: Option<i32>,
    #[serde(default)]
    rank: Option<u32>,
    batches: u64,
    /// Seconds that the process waited for data. If the framework waits and the script only loads, seconds that it
    /// loaded.
    seconds: f64,
    /// Each wait as timed by its own loop, from before the call to after it.
    #[serde(default)]
    waits: Vec<f64>,
}

/// Returns the seconds of waits that are missing from the report.
fn missing(own: &OwnFigures, report: &ProbeReport) -> f64 {
    if own.waits.is_empty() {
        // The script's load time is part of the reported time.
        return own.seconds - report.totals.waited.as_secs_f64();
    }
    assert_eq!(own.waits.len(), report.steps.len());
    let reported = report
        .steps
        .iter()
        .map(|step| step.wait_to - step.wait_from);
    let waits = own.waits.iter().zip(reported);
    let mut missing: Vec<f64> = waits
        .map(|(waited, reported)| waited - reported as f64 / 1e9)
        .collect();
    missing.sort_unstable_by(f64::total_cmp);
    let longest = missing[missing.len() - 1];
    // In a few cases the process lost the CPU between the script's clock and the hook's.
    missing.truncate(missing.len() - missing.len() / 10);
    longest.max(missing.iter().sum())
}

/// Runs the command to its end; returns its own figures and its reports, by process.
fn run(python: &str, arguments: &[&str]) -> BTreeMap<Pid, (OwnFigures, ProbeReport)> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torch/hook");
    let mut command = Command::new(python);
    command.args(arguments).current_dir(scripts);
    // Settings of the user for these programs.
    for name in ["MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "LOCAL_RANK"] {
        command.env_remove(name);
    }
    let run = HookSession::new().run(&mut command);
    let (code, text, errors) = run.words();
    assert_eq!(code, Some(0), "{python} {arguments:?}\n{text}\n{errors}");
    // Some launchers prefix each line with a word.
    let lines = text
        .lines()
        .filter_map(|line| Some(&line[line.find("{\"")?..]));
    let own: Vec<OwnFigures> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let pid = |own: &OwnFigures| own.pid.map_or(run.pid, Pid);
    let mut reports = run.reports;
    let own: BTreeMap<Pid, (OwnFigures, ProbeReport)> = own
        .into_iter()
        .map(|own| {
            let report = reports.remove(&pid(&own));
            let report = report.unwrap_or_else(|| panic!("{own:?} is not heard: {errors}"));
            (pid(&own), (own, report))
        })
        .collect();
    assert!(!own.is_empty(), "{text}");
    assert!(reports.is_empty(), "only those that train: {reports:?}");
    for (own, report) in own.values() {
        assert_eq!(report.notice, None);
        assert_eq!(report.rank, own.rank);
        let totals = &report.totals;
        assert_eq!((totals.steps, totals.lost), (own.batches, 0), "{python}");
        let numbers = report.steps.iter().map(|step| step.number);
        assert!(numbers.eq(0..own.batches));
        let waited = totals.waited.as_secs_f64();
        let line = format!("{arguments:?}, {python}: waited {waited:.4} s, {own:?}");
        println!("{line}");
        assert!(missing(own, report) < 0.01 * own.seconds + 0.005, "{line}");
        let per_batch = 0.002 * own.batches as f64;
        assert!(waited < 1.2 * own.seconds + per_batch, "{line}");
    }
    own
}

/// Checks that exactly one process trains.
fn one(python: &str, arguments: &[&str]) {
    assert_eq!(run(python, arguments).len(), 1);
}

/// Runs [`one`] with each torch that has this package.
fn with(package: &str, arguments: &[&str]) {
    if !torches().iter().any(|python| has(&python.path, package)) {
        skip(&format!("no Python of PIPETOP_TORCH_PYTHONS has {package}"));
    }
    each_torch(|python| {
        if has(python, package) {
            one(python, arguments);
        }
    });
}

#[test]
fn a_script_that_trains_and_checks_itself() {
    each_torch(|python| {
        one(python, &["mnist.py", "--epochs", "2"]);
    });
}

#[test]
fn two_ranks_of_torchrun() {
    each_torch(|python| {
        // The options of the older version. Without a destination for the output it fails on Python 3.11.
        let logs = tempfile::tempdir().expect("a folder");
        let two = ["-m", "torch.distributed.run", "--standalone"];
        let out = ["--nproc_per_node=2", "--redirects=1", "--tee=1"];
        let log = format!("--log_dir={}", logs.path().display());
        let ranks = run(
            python,
            &[&two[..], &out[..], &[log.as_str(), "ranks.py"][..]].concat(),
        );
        let mut numbers: Vec<_> = ranks.values().map(|(_, report)| report.rank).collect();
        numbers.sort();
        assert_eq!(numbers, [Some(0), Some(1)]);
    });
}

#[test]
fn a_loop_of_accelerate() {
    let launch = ["-m", "accelerate.commands.launch", "--cpu"];
    let one = ["--num_processes", "1", "accelerated.py"];
    with("accelerate", &[&launch[..], &one[..]].concat());
}

#[test]
fn the_trainer_of_lightning() {
    with("lightning", &["fit_lightning.py"]);
}

#[test]
fn the_trainer_of_transformers() {
    with("transformers", &["fit_transformer.py"]);
}
