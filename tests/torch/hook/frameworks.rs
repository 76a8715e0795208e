//! Unedited scripts of the usual launchers and frameworks: who reports, which rank it is, how often, how long.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use pipetop::testing::source::probe::ProbeReport;
use pipetop::units::Pid;

use super::stand::{Stand, each_torch};
use support::machine::{has, skip, torches};

/// What a process says of itself in the last lines of its output.
#[derive(Debug, serde::Deserialize)]
struct Told {
    /// `None` = the process that was started.
    pid: Option<i32>,
    #[serde(default)]
    rank: Option<u32>,
    batches: u64,
    /// It waited so long for data; or, where it is its own loader and the framework waits, it loaded so long.
    seconds: f64,
    /// Its own loop timed each wait, from before the call to after it.
    #[serde(default)]
    waits: Vec<f64>,
}

/// Seconds that it waited and that were not reported.
fn missing(told: &Told, report: &ProbeReport) -> f64 {
    if told.waits.is_empty() {
        // What it loaded itself lies within what is reported.
        return told.seconds - report.totals.waited.as_secs_f64();
    }
    assert_eq!(told.waits.len(), report.steps.len());
    let reported = report
        .steps
        .iter()
        .map(|step| step.wait_to - step.wait_from);
    let waits = told.waits.iter().zip(reported);
    let mut missing: Vec<f64> = waits
        .map(|(waited, reported)| waited - reported as f64 / 1e9)
        .collect();
    missing.sort_unstable_by(f64::total_cmp);
    let longest = missing[missing.len() - 1];
    // Of a few, the machine took the CPU away between the script's clock and the hook's.
    missing.truncate(missing.len() - missing.len() / 10);
    longest.max(missing.iter().sum())
}

/// Runs the command to its end: what it said and what was heard, by process.
fn run(python: &str, arguments: &[&str]) -> BTreeMap<Pid, (Told, ProbeReport)> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torch/hook");
    let mut command = Command::new(python);
    command.args(arguments).current_dir(scripts);
    // Whatever it is that the user has told these programs.
    for name in ["MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "LOCAL_RANK"] {
        command.env_remove(name);
    }
    let run = Stand::new().run(&mut command);
    let (code, text, errors) = run.words();
    assert_eq!(code, Some(0), "{python} {arguments:?}\n{text}\n{errors}");
    // Some launchers put a word before each line.
    let lines = text
        .lines()
        .filter_map(|line| Some(&line[line.find("{\"")?..]));
    let told: Vec<Told> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let pid = |told: &Told| told.pid.map_or(run.pid, Pid);
    let mut reports = run.reports;
    let told: BTreeMap<Pid, (Told, ProbeReport)> = told
        .into_iter()
        .map(|told| {
            let report = reports.remove(&pid(&told));
            let report = report.unwrap_or_else(|| panic!("{told:?} is not heard: {errors}"));
            (pid(&told), (told, report))
        })
        .collect();
    assert!(!told.is_empty(), "{text}");
    assert!(reports.is_empty(), "only those that train: {reports:?}");
    for (told, report) in told.values() {
        assert_eq!(report.notice, None);
        assert_eq!(report.rank, told.rank);
        let totals = report.totals;
        assert_eq!((totals.steps, totals.lost), (told.batches, 0), "{python}");
        let numbers = report.steps.iter().map(|step| step.number);
        assert!(numbers.eq(0..told.batches));
        let waited = totals.waited.as_secs_f64();
        let line = format!("{arguments:?}, {python}: waited {waited:.4} s, {told:?}");
        println!("{line}");
        assert!(
            missing(told, report) < 0.01 * told.seconds + 0.005,
            "{line}"
        );
        let per_batch = 0.002 * told.batches as f64;
        assert!(waited < 1.2 * told.seconds + per_batch, "{line}");
    }
    told
}

/// One process trains: not the one that launches it.
fn one(python: &str, arguments: &[&str]) {
    assert_eq!(run(python, arguments).len(), 1);
}

/// The same with each torch that has this package.
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
        // As the older one knows them. Without telling it where the output is to go it fails on Python 3.11.
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
