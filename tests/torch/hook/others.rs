//! Loaders besides torch's whose methods are named in `config/loaders.toml`: the hook's reports on the scripts of
//! `tests/torch/loaders`, against their own measurements.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pipetop::testing::launch::LoaderOverrides;
use pipetop::units::Pid;

use super::stand::HookSession;
use crate::clock::{now, sleep};
use crate::job::Job;
use crate::loaders::{SCRIPTS, python_with_loaders};
use support::machine::{Place, Share, has, skip};

/// Most by which the reported wait share may differ from the script's own.
const WITHIN: f64 = 0.02;
/// Number of steps before each measurement.
const STEADY: usize = 10;
/// How long each load is measured.
const MEASURED: Duration = Duration::from_secs(6);

/// Runs the script with a step of 50 ms and four workers, which first need 400 ms for a batch, then 40 ms.
fn exact(script: &str, package: &str) {
    let Some(python) = python_with_loaders() else {
        return;
    };
    for package in ["torch", package] {
        if !has(&python, package) {
            return skip(&format!("{python} has no {package}"));
        }
    }
    let _place = Place::take(Share::Eighth);
    let stand = HookSession::new();
    let variables = stand
        .hook
        .environment(stand.listener.address(), &LoaderOverrides::default());
    let text = |text: &OsStr| text.to_str().expect("UTF-8").to_owned();
    let variables = variables
        .iter()
        .map(|(name, value)| format!("{}={}", text(name), text(value)));
    let launcher: Vec<String> = variables.chain([python]).collect();
    let launcher: Vec<&str> = launcher.iter().map(String::as_str).collect();
    let figures = "--load 400 --step 50 --workers 4".split(' ');
    let figures: Vec<String> = figures.map(String::from).collect();
    let path = Path::new(SCRIPTS).join(script).with_extension("py");
    let job = Job::script("env", &launcher, Share::Eighth, &path, &figures);
    let mut job = job.expect("the script starts");
    let measured = [400, 40].map(|load| {
        let before = job.truth(None).batches();
        if before > 0 {
            let seconds = f64::from(load) / 1e3;
            let changed = job.overwrite("load", &seconds.to_ne_bytes());
            changed.expect("the load changes");
        }
        job.reach(before + STEADY, None).expect("batches");
        let from = now();
        sleep(MEASURED);
        (load, from, now())
    });
    let truth = job.truth(None);
    job.kill();
    let heard = stand.heard();
    let pid = Pid(job.pid().cast_signed());
    let writers: Vec<_> = heard.keys().collect();
    assert_eq!(writers, [&pid], "{script}: only the trainer writes");
    let report = &heard[&pid];
    assert_eq!(report.notice, None, "{script}");
    for (load, from, to) in measured {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let inside = report
            .steps
            .iter()
            .filter(|step| seconds(step.wait_from) >= from && seconds(step.step_to) <= to);
        let steps: Vec<_> = inside.collect();
        let [first, .., last] = steps[..] else {
            panic!("{script}, {load} ms: too few steps");
        };
        let (from, to) = (seconds(first.wait_from), seconds(last.step_to));
        let waits = steps
            .iter()
            .map(|step| seconds(step.wait_to - step.wait_from));
        let reported = waits.sum::<f64>() / (to - from);
        let truly = truth.wait_share(from, to);
        let line = format!("{script}, {load} ms: waited {reported:.3}, truly {truly:.3}");
        println!("{line}");
        assert!((reported - truly).abs() <= WITHIN, "{line}");
    }
}

#[test]
fn spdl_in_threads_is_timed() {
    exact("spdl_threads", "spdl");
}

#[test]
fn spdl_in_a_process_of_its_own_is_timed() {
    exact("spdl_subprocess", "spdl");
}

#[test]
fn nodes_of_torchdata_are_timed() {
    exact("torchdata_nodes", "torchdata");
}

#[test]
fn loader_of_torchdata_with_states_is_timed() {
    exact("torchdata_stateful", "torchdata");
}

#[test]
fn grain_in_threads_is_timed() {
    exact("grain_threads", "grain");
}

#[test]
fn grain_in_processes_is_timed() {
    exact("grain_processes", "grain");
}

#[test]
fn augmenter_of_batchgenerators_is_timed() {
    exact("batchgenerators_nondet", "batchgenerators");
}

/// A library that lacks the named methods, and one whose names are not methods of that kind.
#[test]
fn missing_or_different_methods_are_left_alone() {
    const SCRIPT: &str = "import grain._src.python.data_loader as loader
print(next(loader.Fine()), loader.Odd().__next__(2), loader.Built.__next__, loader.text)";
    const MODULE: &str = "text = 'no class'
class Fine:
    def __next__(self): return 1
class Odd:
    def __next__(self, more): return more
class Built:
    __next__ = len";
    super::stand::each_python(|python| {
        let stand = HookSession::new();
        let folder = tempfile::tempdir().expect("a folder");
        let package = folder.path().join("grain/_src/python");
        std::fs::create_dir_all(&package).expect("a package");
        std::fs::write(package.join("data_loader.py"), MODULE).expect("a module");
        let script = folder.path().join("script.py");
        std::fs::write(&script, SCRIPT).expect("a script");
        let run = stand.run(Command::new(python).arg(&script));
        let (code, text, errors) = run.words();
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!(text, "1 2 <built-in function len> no class\n");
        assert_eq!(run.notice(), None);
    });
}
