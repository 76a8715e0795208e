//! Loaders besides torch's whose methods are named in `config/loaders.toml`: the hook's reports on the scripts of
//! `tests/torch/loaders`, against their own measurements.

use std::path::Path;
use std::process::Command;

use super::stand::HookSession;
use crate::loaders::{SCRIPTS, python_with_loaders};
use crate::truth::Truth;
use support::machine::{Share, each, has, skip};

/// Most by which the reported wait share may differ from the script's own.
const WITHIN: f64 = 0.02;
/// Number of steps before the measurement.
const STEADY: usize = 5;

/// Runs a script whose processes end with it: the timer's signal interrupts it like Ctrl-C.
const ENDS: &str = "import runpy, signal, sys
signal.signal(signal.SIGALRM, signal.default_int_handler)
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition('/')[0])
runpy.run_path(sys.argv[0], run_name='__main__')";

/// Runs the script for 30 seconds (its imports may take most of that beside other tests), with a step of 50 ms and four
/// workers: once they need 400 ms for a batch, once 40 ms.
fn exact(script: &str, package: &str) {
    let Some(python) = python_with_loaders() else {
        return;
    };
    for package in ["torch", package] {
        if !has(&python, package) {
            return skip(&format!("{python} has no {package}"));
        }
    }
    each(&[400, 40], Share::Eighth, |load| {
        let stand = HookSession::new();
        let folder = tempfile::tempdir().expect("a folder");
        let figures = format!("--load {load} --step 50 --workers 4 --seconds 30");
        let mut command = Command::new(&python);
        if script == "grain_processes" {
            command.args(["-c", ENDS]);
        }
        command
            .arg(Path::new(SCRIPTS).join(script).with_extension("py"))
            .arg(folder.path())
            .args(figures.split(' '));
        let run = stand.run(&mut command);
        let report = run.report();
        assert_eq!(report.notice, None, "{script}");
        let (Some(first), Some(last)) = (report.steps.get(STEADY), report.steps.back()) else {
            panic!("{script}: too few steps: {:?}", run.words());
        };
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let (from, to) = (seconds(first.wait_from), seconds(last.step_to));
        let steps = report.steps.iter().skip(STEADY);
        let waited: f64 = steps
            .map(|step| seconds(step.wait_to - step.wait_from))
            .sum();
        let reported = waited / (to - from);
        let truly = Truth::read(&folder.path().join("truth")).wait_share(from, to);
        let line = format!("{script}, {load} ms: waited {reported:.3}, truly {truly:.3}");
        println!("{line}");
        assert!((reported - truly).abs() <= WITHIN, "{line}");
    });
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
