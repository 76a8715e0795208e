//! `pipetop run` as a user has it: what the command gets, how both end, and that nothing is left behind.
//!
//! What trains runs on the real PyTorch with every interpreter of `PIPETOP_TORCH_PYTHONS` (colon-separated; `python3`
//! by default) that has it; where none has, the test says so and passes, unless `PIPETOP_REQUIRE_TORCH=1`.

#![expect(clippy::panic, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use all of it")]
#[path = "torch/machine.rs"]
mod machine;
#[path = "support/patience.rs"]
mod patience;
#[expect(dead_code, reason = "other tests use all of it")]
#[path = "support/session.rs"]
mod session;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use machine::{Share, pythons};
use patience::{wait, wait_telling};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use session::Session;
use tempfile::TempDir;

const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");
const TRAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/train.py");
/// Runs for longer than any test waits.
const LONG: &str = "echo begun; sleep 300 & sleep 300; echo never";

/// Folders of one test's own. What runs for it is known by the one for temporary files, which is in its environment.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(folder.path().join("tmp")).expect("ours");
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn temporary(&self) -> PathBuf {
        self.path().join("tmp")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PIPETOP);
        command
            .arg("run")
            .args(arguments)
            .current_dir(self.path())
            .env("TMPDIR", self.temporary())
            .env("XDG_CONFIG_HOME", self.path().join("none"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it starts")
    }

    /// The same on a screen.
    fn session(&self, arguments: &[&str]) -> Session {
        let mut words = vec!["run"];
        words.extend(arguments);
        let (temporary, home) = (self.temporary(), self.path().to_owned());
        let environment = [
            ("TMPDIR", temporary.as_os_str()),
            ("HOME", home.as_os_str()),
            ("PWD", home.as_os_str()),
        ];
        Session::start_with(&words, &environment)
    }

    /// Processes that run for this test, pipetop's own among them.
    fn processes(&self) -> Vec<(Pid, String)> {
        let mark = [b"TMPDIR=", self.temporary().as_os_str().as_encoded_bytes()].concat();
        let entries = fs::read_dir("/proc").expect("procfs").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let ours = |pid: i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let marked = environment
                .split(|byte| *byte == 0)
                .any(|word| word == mark);
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            marked.then_some((Pid::from_raw(pid)?, command))
        };
        pids.filter_map(ours).collect()
    }

    /// Those of pipetop, and those that a Python leaves that was ended. What torch itself leaves is not ours.
    fn temporary_files(&self) -> usize {
        let entries = fs::read_dir(self.temporary()).expect("ours").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let ours = names.filter(|name| name.starts_with("pipetop-") || name.starts_with("pymp-"));
        ours.count()
    }

    /// Waits until neither process nor file is left.
    fn assert_nothing_is_left(&self) {
        wait_telling(
            "nothing to be left",
            || (self.processes().is_empty() && self.temporary_files() == 0).then_some(()),
            || format!("{:?}, {} files", self.processes(), self.temporary_files()),
        );
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until a program that was not waited for yet has ended.
fn output(child: Child) -> Output {
    child.wait_with_output().expect("our child")
}

#[test]
fn the_words_arrive_as_they_are_and_the_exit_code_is_the_commands() {
    let place = Place::new();
    for (words, code, out) in [
        (
            &["--", "printf", "%s|", "a b", "--once", ""][..],
            0,
            "a b|--once||",
        ),
        (&["printf", "%s|", "--json"], 0, "--json|"),
        (&["A=1", "B=x=y", "sh", "-c", "echo $A $B"], 0, "1 x=y\n"),
        (&["sh", "-c", "echo; exit 7"], 7, "\n"),
        (&["sh", "-c", "kill -9 $$"], 137, ""),
    ] {
        let run = place.run(words);
        assert_eq!(
            run.status.code(),
            Some(code),
            "{words:?}: {}",
            text(&run.stderr)
        );
        assert_eq!(text(&run.stdout), out, "{words:?}");
    }
    place.assert_nothing_is_left();
}

#[test]
fn no_descriptor_of_ours_gets_into_the_command() {
    let place = Place::new();
    let words = ["sh", "-c", "ls /proc/$$/fd"];
    let mut without = Command::new(words[0]);
    let without = without.args(&words[1..]).stdin(Stdio::null());
    let without = without.output().expect("it starts");
    assert_eq!(text(&place.run(&words).stdout), text(&without.stdout));
}

#[test]
fn a_command_that_cannot_be_run_is_one_line_and_a_hint() {
    let place = Place::new();
    let file = |name: &str, content: &str, mode: u32| {
        let path = place.path().join(name);
        fs::write(&path, content).expect("ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        path.to_str().expect("UTF-8").to_owned()
    };
    let plain = file("plain", "x", 0o644);
    let orphan = file("orphan", "#!/no/such/python\n", 0o755);
    let bare = file("bare", "\u{7f}no program\n", 0o755);
    for (command, code, reason, hint) in [
        ("no-such-command", 127, "no such command", "check its name"),
        (
            &orphan,
            127,
            "no such command",
            "the interpreter in its first line",
        ),
        (&plain, 126, "it is not executable", "chmod +x"),
        (&bare, 126, "it is no program", "name its interpreter"),
    ] {
        let run = place.run(&["--", command]);
        let errors = text(&run.stderr);
        assert_eq!(run.status.code(), Some(code), "{errors}");
        let [error, advice] = errors.lines().collect::<Vec<_>>()[..] else {
            panic!("{errors}");
        };
        assert!(
            error.starts_with("error: cannot run `") && error.contains(reason),
            "{error}"
        );
        assert!(
            advice.starts_with("hint: ") && advice.contains(hint),
            "{advice}"
        );
    }
    for (words, message) in [
        (&[][..], "COMMAND"),
        (&["--", "A=1"], "there is no command to run"),
        (&["--stop", "--", "true"], "--stop needs to know when"),
        (
            &["--log", "/dev/null", "--", "true"],
            "it is not a regular file",
        ),
        (
            &["--log", "/no/such/log", "--", "true"],
            "cannot write to /no/such/log",
        ),
    ] {
        let run = place.run(words);
        let errors = text(&run.stderr);
        assert!(
            errors.starts_with("error: ") && errors.contains(message),
            "{errors}"
        );
        assert!(matches!(run.status.code(), Some(1 | 2)), "{errors}");
    }
    place.assert_nothing_is_left();
}

#[test]
fn what_did_not_train_is_said_in_a_line() {
    let place = Place::new();
    let python = "import time; time.sleep(1.2)";
    for (words, code, reason) in [
        (
            &["--once", "--", "sleep", "1"][..],
            1,
            "no Python has run below the command",
        ),
        (
            &["--once", "--", "python3", "-c", python],
            1,
            "has not loaded PyTorch",
        ),
        (
            &["--", "sleep", "1"],
            0,
            "no Python has run below the command",
        ),
        (
            &["--once", "--", "sh", "-c", "sleep 1; exit 5"],
            5,
            "no Python has run",
        ),
        (&["--once", "--", "true"], 1, "the command"),
    ] {
        let run = place.run(words);
        let errors = text(&run.stderr);
        assert_eq!(run.status.code(), Some(code), "{words:?}: {errors}");
        assert!(
            errors.contains(reason) && errors.contains("hint: "),
            "{words:?}: {errors}"
        );
    }
    place.assert_nothing_is_left();
}

#[test]
fn standard_output_is_the_reports_and_the_log_gets_all() {
    let place = Place::new();
    let talk = ["sh", "-c", "echo out; echo err >&2; sleep 1.5"];
    let run = place.run(&[&["--json", "--interval", "500ms", "--"][..], &talk].concat());
    let out = text(&run.stdout);
    assert!(out.lines().count() >= 2, "{out}");
    for line in out.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    let errors = text(&run.stderr);
    assert!(
        errors.contains("out\n") && errors.contains("err\n"),
        "{errors}"
    );

    let log = place.path().join("log");
    fs::write(&log, "before\n").expect("ours");
    let run = place.run(&[&["--log", log.to_str().expect("UTF-8"), "--"][..], &talk].concat());
    assert_eq!(
        fs::read_to_string(&log).expect("ours"),
        "before\nout\nerr\n"
    );
    assert!(
        text(&run.stdout).contains("out\nerr\n"),
        "{}",
        text(&run.stdout)
    );
    place.assert_nothing_is_left();
}

#[test]
fn standard_input_is_closed_unless_asked_for() {
    let place = Place::new();
    for (words, out) in [(&["cat"][..], ""), (&["--stdin", "cat"], "hello")] {
        let mut command = place.command(words);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        // Nobody may be there to read it.
        let _ = stdin.write_all(b"hello");
        drop(stdin);
        assert_eq!(text(&output(child).stdout), out);
    }
}

#[test]
fn whatever_ends_pipetop_leaves_nothing() {
    for signal in [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::KILL,
    ] {
        let place = Place::new();
        let mut child = place
            .command(&["--", "sh", "-c", LONG])
            .spawn()
            .expect("it starts");
        wait("the command", || {
            (place.processes().len() >= 5).then_some(())
        });
        assert_eq!(place.temporary_files(), 1, "the hook's directory");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
        kill_process(pid, signal).expect("it runs");
        let status = child.wait().expect("our child");
        if signal != Signal::KILL {
            assert_eq!(status.code(), Some(128 + signal.as_raw()), "{signal:?}");
        }
        place.assert_nothing_is_left();
    }
}

#[test]
fn what_is_started_to_ignore_a_signal_hands_that_on() {
    let place = Place::new();
    let script = format!("trap '' HUP; exec {PIPETOP} run -- sh -c 'kill -HUP $$; echo alive'");
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .env("TMPDIR", place.temporary());
    let run = command.output().expect("it starts");
    assert!(
        text(&run.stdout).starts_with("alive\n"),
        "{}",
        text(&run.stderr)
    );
    place.assert_nothing_is_left();
}

#[test]
fn what_ignores_signals_goes_on_and_ends_with_pipetop() {
    let place = Place::new();
    let stubborn = "trap '' HUP TERM INT; echo begun; while :; do sleep 0.1; done";
    let mut child = place
        .command(&["--", "sh", "-c", stubborn])
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "begun\n");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    for signal in [Signal::HUP, Signal::TERM, Signal::INT] {
        kill_process(pid, signal).expect("it runs");
    }
    // Another line of pipetop's, some time later.
    line.clear();
    out.read_line(&mut line).expect("a line");
    out.read_line(&mut line).expect("a line");
    assert!(
        child.try_wait().expect("our child").is_none(),
        "the command goes on"
    );
    kill_process(pid, Signal::KILL).expect("it runs");
    child.wait().expect("our child");
    place.assert_nothing_is_left();
}

#[test]
fn a_directory_that_cannot_hold_the_hook_harms_nobody() {
    let place = Place::new();
    let mut command = place.command(&["--", "sh", "-c", "echo $PYTHONPATH; sleep 1"]);
    let run = command.env("TMPDIR", "/proc").output().expect("it starts");
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let path = text(&run.stdout);
    let path = path.lines().next().expect("a line");
    // In memory, where there is a file system for that, and nowhere else.
    assert!(
        path.is_empty() || path.starts_with("/dev/shm/pipetop-"),
        "{path}"
    );
    assert!(
        path.is_empty() || !Path::new(path).exists(),
        "{path} is left"
    );
}

#[test]
fn a_killed_guard_is_told_and_the_command_goes_on() {
    let place = Place::new();
    let mut child = place
        .command(&["--", "sh", "-c", LONG])
        .spawn()
        .expect("it starts");
    let find = |what: &str| {
        let processes = place.processes();
        let found = processes
            .into_iter()
            .find(|(_, command)| command.contains(what));
        found.map(|(pid, _)| pid)
    };
    wait("the command", || {
        (place.processes().len() >= 5).then_some(())
    });
    let guard = wait("the guard", || find("builtin-guard"));
    kill_process(guard, Signal::KILL).expect("it runs");
    let status = child.wait().expect("our child");
    for (pid, _) in place.processes() {
        // It may end with the one before.
        let _ = kill_process(pid, Signal::KILL);
    }
    wait("its processes to end", || {
        place.processes().is_empty().then_some(())
    });
    // Its outputs are at their end now that nobody has them open.
    let errors = text(&output(child).stderr);
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("error: pipetop has lost its command"),
        "{errors}"
    );
    assert!(
        errors.contains("hint: ") && errors.contains("kill"),
        "{errors}"
    );
}

#[test]
fn the_guard_is_for_pipetop_alone() {
    let run = Command::new(PIPETOP)
        .args(["builtin-guard", "--control=99"])
        .output();
    let run = run.expect("it starts");
    assert_eq!(run.status.code(), Some(1));
    assert!(
        text(&run.stderr).contains("for pipetop's own use"),
        "{}",
        text(&run.stderr)
    );
}

#[test]
fn a_screen_ends_with_its_command_and_leaves_its_last_words() {
    let place = Place::new();
    let words = "for i in $(seq 1 30); do echo line $i; done; sleep 1; exit 7";
    let mut session = place.session(&["--", "sh", "-c", words]);
    session.shows("the output", |screen| screen.contains("line 30"));
    assert_eq!(session.ended().exit_code(), 7);
    session.until("the last words", |text| {
        let after = text.rsplit("\u{1b}[?1049l").next().unwrap_or_default();
        [
            "... 10 lines before",
            "line 11\r\n",
            "line 30",
            "no Python has run",
            "exit code 7",
        ]
        .iter()
        .all(|words| after.contains(words))
    });
    place.assert_nothing_is_left();
}

#[test]
fn who_quits_ends_the_command_or_leaves_it_running() {
    let place = Place::new();
    let mut session = place.session(&["--", "sh", "-c", LONG]);
    session.shows("the output", |screen| screen.contains("begun"));
    session.press("q");
    session.shows("the question", |screen| screen.contains("still runs"));
    session.press("\u{1b}");
    session.shows("the screen", |screen| !screen.contains("still runs"));
    session.press("q");
    session.shows("the question", |screen| screen.contains("still runs"));
    session.press("e");
    assert_eq!(session.ended().exit_code(), 0);
    place.assert_nothing_is_left();

    let place = Place::new();
    let log = place.path().join("log");
    let later = "echo begun; sleep 2; echo later; sleep 300";
    let log_word = log.to_str().expect("UTF-8");
    let mut session = place.session(&["--log", log_word, "--", "sh", "-c", later]);
    session.shows("the output", |screen| screen.contains("begun"));
    session.press("q");
    session.shows("the question", |screen| screen.contains("still runs"));
    session.press("d");
    assert_eq!(session.ended().exit_code(), 0);
    session.until("what is left", |text| text.contains("goes on as process"));
    drop(session);
    wait("what comes later", || {
        fs::read_to_string(&log)
            .ok()
            .filter(|log| log == "begun\nlater\n")
    });
    // Nothing of pipetop's is left: neither a process nor the hook's directory.
    wait("pipetop to be gone", || {
        let processes = place.processes();
        let ours = processes
            .iter()
            .any(|(_, command)| command.contains("pipetop"));
        (!ours && place.temporary_files() == 0).then_some(())
    });
    assert!(!place.processes().is_empty(), "the command goes on");
    for (pid, _) in place.processes() {
        // It may end with the one before.
        let _ = kill_process(pid, Signal::KILL);
    }
    place.assert_nothing_is_left();
}

#[test]
fn a_terminal_that_is_gone_ends_the_command() {
    let place = Place::new();
    let mut session = place.session(&["--", "sh", "-c", LONG]);
    session.shows("the output", |screen| screen.contains("begun"));
    session
        .let_go
        .store(true, std::sync::atomic::Ordering::SeqCst);
    session.writer = None;
    session.master = None;
    place.assert_nothing_is_left();
}

#[test]
fn a_killed_screen_leaves_nothing() {
    let place = Place::new();
    let session = place.session(&["--", "sh", "-c", LONG]);
    session.shows("the output", |screen| screen.contains("begun"));
    session.signal(Signal::KILL);
    drop(session);
    place.assert_nothing_is_left();
}

/// The report of one run, and what the script says of itself, a line for each rank.
fn trained(place: &Place, arguments: &[&str]) -> (Value, Vec<Value>) {
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

#[test]
fn a_training_is_reported_exactly_and_goes_on_to_its_end() {
    let _place = machine::Place::take(Share::Quarter);
    for python in pythons() {
        let place = Place::new();
        // 20 ms of waits in each 50 ms.
        let words = ["--once", "--json", "--for", "5s", "--", &python.path, TRAIN];
        let (report, said) = trained(
            &place,
            &[&words[..], &["160", "1", "0.05", "0.03"]].concat(),
        );
        assert_eq!(report["window"]["access"], "T3", "{report:#}");
        let seen = number(&report["verdict"]["wait_share"]);
        let [truth] = &said[..] else {
            panic!("it did not run to its end: {said:?}");
        };
        let truth = number(&truth["wait_share"]);
        assert!((seen - truth).abs() < 0.02, "{seen} is not {truth}");
        assert_eq!(report["job"]["ranks"][0]["loader"]["num_workers"], 1);
        place.assert_nothing_is_left();
    }
}

#[test]
fn without_the_hook_it_is_estimated() {
    let _place = machine::Place::take(Share::Quarter);
    for python in pythons() {
        let place = Place::new();
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
            &[&words[..], &["160", "1", "0.05", "0.03"]].concat(),
        );
        assert_ne!(report["window"]["access"], "T3", "{report:#}");
        let [truth] = &said[..] else {
            panic!("it did not run to its end: {said:?}");
        };
        let (seen, truth) = (
            number(&report["verdict"]["wait_share"]),
            number(&truth["wait_share"]),
        );
        // While it imports it does not wait: that is none of the training.
        assert!((seen - truth).abs() < 0.08, "{seen} is not {truth}");
        let seconds = number(&report["window"]["seconds"]);
        assert!((4.0..7.5).contains(&seconds), "{seconds} s");
        place.assert_nothing_is_left();
    }
}

#[test]
fn stop_ends_it_after_the_report() {
    let Some(python) = pythons().last() else {
        return;
    };
    let _place = machine::Place::take(Share::Quarter);
    let place = Place::new();
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
}

#[test]
fn what_a_script_leaves_in_the_background_is_watched_to_its_end() {
    let Some(python) = pythons().last() else {
        return;
    };
    let _place = machine::Place::take(Share::Quarter);
    let place = Place::new();
    // Long enough for two readings of the training itself, wherever they fall.
    let script = format!("{} {TRAIN} 130 1 0.02 0.03 &", python.path);
    let run = place.run(&["--", "sh", "-c", &script]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let out = text(&run.stdout);
    assert!(out.contains("\"wait_share\""), "it ran to its end: {out}");
    let summary = out.lines().find(|line| line.contains("batches seen"));
    assert!(
        summary.is_some_and(|line| line.contains("access T3")),
        "{out}"
    );
    place.assert_nothing_is_left();
}

#[test]
fn a_loader_that_is_never_iterated_is_said_in_a_line() {
    let Some(python) = pythons().last() else {
        return;
    };
    let _place = machine::Place::take(Share::Quarter);
    let place = Place::new();
    let script =
        "import time; from torch.utils.data import DataLoader; DataLoader([1]); time.sleep(3)";
    let run = place.run(&["--once", "--", &python.path, "-c", script]);
    assert_eq!(run.status.code(), Some(1));
    let errors = text(&run.stderr);
    assert!(
        errors.contains("no DataLoader was iterated below the command"),
        "{errors}"
    );
    assert!(
        errors.contains("hint: ") && errors.contains("docs/probe.md"),
        "{errors}"
    );
    place.assert_nothing_is_left();
}

#[test]
fn two_ranks_are_seen_as_two() {
    // The newest: Debian's torchrun of 1.13 does not work with its own Python.
    let Some(python) = pythons().last() else {
        return;
    };
    let _place = machine::Place::take(Share::Quarter);
    let place = Place::new();
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
}
