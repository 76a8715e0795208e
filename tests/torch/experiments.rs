//! `pipetop headspace` and `pipetop sweep` on commands with the real PyTorch: results that are known beforehand,
//! commands that they refuse, and what they leave behind.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::machine::{Place, Share, last_torch, note};
use support::waiting::{ToEnd, wait, wait_with_state};
use tempfile::TempDir;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torch/experiments/train.py")
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// A folder for the files of pipetop and its commands.
struct Stand(TempDir);

impl Stand {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("tmp")).expect("ours");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, line: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pipetop"));
        command
            .args(line.split_whitespace())
            .arg("--")
            .args(words)
            .current_dir(self.0.path())
            .env("TMPDIR", self.path("tmp"))
            .env("XDG_CONFIG_HOME", self.path("none"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, line: &str, words: &[&str]) -> Output {
        let output = self.command(line, words).to_end();
        self.assert_nothing_left();
        output
    }

    fn document(&self, line: &str, words: &[&str]) -> Value {
        let output = self.run(line, words);
        assert!(output.status.success(), "{}", lossy(&output.stderr));
        let found = serde_json::from_slice(&output.stdout).expect("one JSON document");
        note(&format!("{found}"));
        found
    }

    /// Waits until no temporary files and no processes in our folder are left.
    fn assert_nothing_left(&self) {
        let files = || {
            let left = fs::read_dir(self.path("tmp")).expect("ours").flatten();
            left.map(|entry| entry.file_name()).collect::<Vec<_>>()
        };
        let none = || files().is_empty().then_some(());
        wait_with_state("no file to be left", none, || format!("{:?}", files()));
        wait("the end of every process", || {
            let processes = fs::read_dir("/proc").expect("procfs").flatten();
            let mut folders =
                processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
            (!folders.any(|folder| folder == self.0.path())).then_some(())
        });
    }
}

/// Returns the output before the error, the error and the hint.
fn refused(output: &Output) -> (String, String, String) {
    let errors = lossy(&output.stderr);
    assert_eq!(lossy(&output.stdout), "", "{errors}");
    let (said, error) = errors.split_once("error: ").expect(&errors);
    let (error, hint) = error.split_once("\nhint: ").expect(&errors);
    assert!(!error.contains('\n') && hint.ends_with('\n'), "{errors}");
    assert_eq!(hint.lines().count(), 1, "{errors}");
    (said.to_owned(), error.to_owned(), hint.to_owned())
}

/// The script's own figures.
struct Truth {
    wait_share: f64,
    /// Times of a step in ms.
    mean: f64,
    median: f64,
}

/// Returns the script's figures from the end of a run.
fn truth(run: &str) -> Truth {
    let lines = run.lines().rev();
    let mut said = lines.filter_map(|line| {
        let (share, times) = line.strip_prefix("waited ")?.split_once(" of ")?;
        let (mean, median) = times.strip_suffix(" ms")?.split_once(" ms, median ")?;
        Some(Truth {
            wait_share: share.parse().ok()?,
            mean: mean.parse().ok()?,
            median: median.parse().ok()?,
        })
    });
    said.next().expect(run)
}

/// Measures the script with these times. It sleeps, but few steps are measured, and jobs that start would delay some of
/// them. The result must agree with the script's own measurement in the same runs. `stall` is the value on an idle
/// machine, which is only printed.
fn headspace(times: &str, stall: f64) {
    last_torch(Share::Half, |python| {
        let script = script();
        let mut words = vec![python.path.as_str(), script.to_str().expect("UTF-8")];
        words.extend(times.split_whitespace());
        let stand = Stand::new();
        let line = "headspace --json --rounds 1 --after 5 --steps 20 --log log";
        let found = stand.document(line, &words);
        let log = fs::read_to_string(stand.path("log")).expect("both runs' output");
        let runs: Vec<&str> = log.split("begins").skip(1).collect();
        assert_eq!(runs.len(), 2, "{log}");
        let [now, free] = [truth(runs[0]), truth(runs[1])];
        let (waited, own) = (now.wait_share, 1.0 - free.median / now.median);
        let share = number(&found["gain_share"]);
        let (low, high) = (number(&found["interval"][0]), number(&found["interval"][1]));
        note(&format!(
            "torch {} {times}: {share} in {low} to {high}, of itself {own:.3}, waited {waited}, made for {stall}",
            python.torch
        ));
        assert!(low <= share && share <= high);
        assert!((share - own).abs() <= 0.02, "{share}, of itself {own}");
        assert!(
            (low - 0.03..high + 0.03).contains(&waited),
            "{waited} not in {low} to {high}"
        );
    });
}

#[test]
fn a_true_stall_is_the_headspace() {
    // 115 ms per step, of which 15 ms are waits.
    headspace("--load-ms 230 --step-ms 100", 0.13);
}

#[test]
fn a_compute_bound_script_has_none() {
    headspace("--load-ms 20 --step-ms 100", 0.0);
}

#[test]
fn a_sweep_finds_the_cpus() {
    last_torch(Share::Whole, |python| {
        let script = script();
        let words = [
            &python.path,
            script.to_str().expect("UTF-8"),
            "--compute",
            "200000",
        ];
        let found = Stand::new().document("sweep --json --workers 1,2,4 --for 5s", &words);
        let of = |key: &str| found[key].as_u64().expect("a count");
        let rows = found["rows"].as_array().expect("rows");
        let row = |workers: u64| rows.iter().find(|row| row["workers"] == workers);
        let cpus = of("cpus_allowed");
        for row in rows {
            assert_eq!(row["not_set"], Value::Null);
            assert_eq!(
                row["above_cpus_allowed"],
                row["workers"].as_u64() > Some(cpus)
            );
            assert!(number(&row["wait_share"]) > 0.5, "{row}");
            assert!(number(&row["worker_cpu_cores"]) <= number(&row["workers"]) + 0.1);
        }
        let cores = |workers| row(workers).map(|row| number(&row["worker_cpu_cores"]));
        // With all CPUs in use, more workers get no more of them, unless other programs use CPUs, too. What they gain
        // then depends on the machine's pace, which changes between two rows, and so does the knee, if there is one.
        let (two, four) = (cores(2).expect("a row"), cores(4).expect("a row"));
        assert!(cpus > 2 || four < 1.25 * two, "{found:#}");
        let knee = &found["knee"];
        assert!(knee.is_null() || row(of("knee")).is_some(), "{found:#}");
        assert!(found["advised"].as_u64() <= Some(cpus), "{found:#}");
    });
}

#[test]
fn workers_in_the_words_and_settings_from_outside() {
    last_torch(Share::Quarter, |python| {
        let script = script();
        let times = ["--load-ms", "40", "--step-ms", "1"];
        let words = [
            &[python.path.as_str(), script.to_str().expect("UTF-8")],
            &times[..],
        ]
        .concat();
        let stand = Stand::new();
        let line =
            "sweep --json --steps 16 --prefetch-factors 4 --pin-memory --log log --workers 1,2";
        let found = stand.document(line, &[&words[..], &["--workers={workers}"]].concat());
        let log = fs::read_to_string(stand.path("log")).expect("all runs' output");
        let begins: Vec<&str> = log
            .lines()
            .filter(|line| line.starts_with("begins"))
            .collect();
        let begin = |workers: u32| format!("begins with {workers} workers");
        assert_eq!(begins, [1, 2, 2, 2, 2].map(begin), "{log}");
        assert_eq!(
            (&found["knee"], found["rows"].as_array().map(Vec::len)),
            (&Value::Null, Some(2))
        );
        let speedup = number(&found["rows"][1]["speedup"]);
        // The speedup is 2 on an idle machine.
        let runs: Vec<&str> = log.split("begins").skip(1).collect();
        let own = truth(runs[0]).mean / truth(runs[1]).mean;
        note(&format!("{speedup} times as quick, of itself {own:.3}"));
        assert!(
            (speedup / own - 1.0).abs() < 0.1,
            "{speedup}, of itself {own}"
        );
        let ahead = &found["prefetch"][0];
        assert_eq!(
            (&ahead["prefetch_factor"], &ahead["not_set"]),
            (&4.into(), &Value::Null)
        );
        assert_eq!(found["memory"][0]["not_set"], Value::Null);
        let pinned = found["memory"][1]["not_set"].as_str();
        assert!(
            pinned.is_none_or(|why| why.contains("only with a GPU")),
            "{found:#}"
        );
        // If the word for the workers has no effect, there is no result.
        let text = lossy(
            &stand
                .run(
                    "sweep --steps 6 --workers 1,2",
                    &[&words[..], &["--load-ms=9{workers}"]].concat(),
                )
                .stdout,
        );
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].ends_with("n/a ?") && !lines[2].contains('?'),
            "{text}"
        );
        assert!(text.contains("? 1 worker: num_workers was 2"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    });
}

#[test]
fn unmeasurable_scripts_are_rejected_with_the_reason() {
    let _place = Place::take(Share::Quarter);
    let stand = Stand::new();
    let plain = stand.path("plain");
    fs::write(&plain, "echo\n").expect("ours");
    fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).expect("ours");
    let cases: [(&str, &[&str], i32, &str, &str); 8] = [
        (
            "headspace",
            &["no-such-command-here"],
            127,
            "command not found",
            "its name",
        ),
        ("sweep", &["./plain"], 126, "not executable", "chmod"),
        (
            "headspace",
            &["sh", "-c", "echo why; exit 3"],
            1,
            "exited with code 3 before its first step",
            "output",
        ),
        (
            "sweep",
            &["sh", "-c", "kill -9 $$"],
            1,
            "killed by signal 9 before",
            "output",
        ),
        (
            "headspace --patience 1s",
            &["sh", "-c", "exec sleep 1000"],
            1,
            "no Python was seen",
            "training",
        ),
        // pipetop waits for background processes, and ends them.
        (
            "headspace --patience 1s",
            &["sh", "-c", "sleep 1000 & exit 0"],
            1,
            "no Python was seen",
            "training",
        ),
        (
            "headspace --log .",
            &["true"],
            1,
            "cannot write to .",
            "--log",
        ),
        ("sweep", &["A=1"], 2, "no command given", "pipetop sweep"),
    ];
    for (line, words, code, error, hint) in cases {
        let output = stand.run(line, words);
        let (said, message, hinted) = refused(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?} {message}");
        assert!(
            message.contains(error) && hinted.contains(hint),
            "{words:?}: {message} {hinted}"
        );
        assert_eq!(
            said,
            if words.join(" ").contains("why") {
                "  why\n"
            } else {
                ""
            }
        );
    }
}

#[test]
fn a_script_that_ends_too_early_is_rejected_with_the_length_needed() {
    let script = script();
    last_torch(Share::Quarter, |python| {
        let words = [&python.path, script.to_str().expect("UTF-8")];
        let stand = Stand::new();
        let short = stand.run("headspace", &[&words[..], &["--batches", "60"]].concat());
        let (_, error, hint) = refused(&short);
        assert!(error.contains("after 60 steps; at least 200"), "{error}");
        assert!(hint.contains("--after 15 --steps 30"), "{hint}");
        let fails = stand.run(
            "sweep --for 60s",
            &[&words[..], &["--fails-after", "30"]].concat(),
        );
        let (said, error, _) = refused(&fails);
        assert!(
            said.contains("RuntimeError: it fails at its batch 30"),
            "{said}"
        );
        assert!(
            error.contains("exited with code 1 after 31 steps"),
            "{error}"
        );
    });
}

/// Runs until the command has created the file `up`.
fn until_up(stand: &Stand, line: &str) -> Child {
    let words = ["sh", "-c", "trap '' HUP INT; sleep 1000 & touch up; wait"];
    let child = stand.command(line, &words).spawn().expect("it starts");
    wait("the command", || stand.path("up").exists().then_some(()));
    child
}

#[test]
fn a_signal_ends_the_command_first() {
    let _place = Place::take(Share::Quarter);
    for (signal, code) in [
        (Signal::INT, Some(130)),
        (Signal::TERM, Some(143)),
        (Signal::HUP, Some(129)),
        (Signal::KILL, None),
    ] {
        let stand = Stand::new();
        let line = if signal == Signal::INT {
            "sweep"
        } else {
            "headspace"
        };
        let mut child = until_up(&stand, line);
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let ended = wait("the end", || child.try_wait().expect("ours"));
        assert_eq!(ended.code(), code, "{signal:?}");
        stand.assert_nothing_left();
    }
}
