//! Recordings through the real program: what is recorded is replayed to the same words, on the screen and without.

#[path = "support/patience.rs"]
mod patience;
#[expect(dead_code, reason = "other tests use all of it")]
#[path = "support/session.rs"]
mod session;
#[expect(dead_code, reason = "other tests use all of it")]
#[path = "support/traces.rs"]
mod traces;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use patience::wait;
use session::Session;
use tempfile::TempDir;
use traces::Place;

const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");

/// A value in the environment of the job that is recorded, and of pipetop.
const SECRET: &str = "told-to-nobody";

fn pipetop(arguments: &[&str]) -> Output {
    let ran = Command::new(PIPETOP)
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output();
    ran.expect("it starts")
}

fn out(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Exit code 1, and the lines that say why.
fn refused(arguments: &[&str]) -> String {
    let output = pipetop(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A real run of the built-in job: the recording, and the lines that were printed meanwhile.
fn recorded() -> &'static (TempDir, PathBuf, String) {
    static RECORDED: OnceLock<(TempDir, PathBuf, String)> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let place = Place::new();
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("run.rec");
        let line = "demo --preset compute --device sim --interval 250ms --for 13s --json";
        let mut command = place.command(line);
        command.env("PIPETOP_TEST_SECRET", SECRET);
        let ran = command.arg("--record").arg(&path).output();
        let printed = out(&ran.expect("it starts"));
        (folder, path, printed)
    })
}

#[test]
fn a_run_replays_to_the_same_lines_to_the_last_digit() {
    let (_, path, live) = recorded();
    assert!(live.contains("compute-bound"), "{live}");
    let replayed = pipetop(&["replay", text(path), "--json"]);
    assert_eq!(&out(&replayed), live);
    let note = String::from_utf8_lossy(&replayed.stderr).into_owned();
    assert_eq!(note, "", "it was closed as it should be");
    let file = fs::File::open(path).expect("it is there");
    let held = zstd::decode_all(file).expect("any zstd reads it");
    let held = String::from_utf8(held).expect("JSON");
    assert!(held.contains("builtin-trainer") && !held.contains(SECRET));
    let mode = fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "command lines are the owner's alone");
}

#[test]
fn any_window_has_a_report_of_its_own() {
    let (_, path, _) = recorded();
    let report = |more: &[&str]| -> serde_json::Value {
        let mut arguments = vec!["replay", text(path), "--once", "--json"];
        arguments.extend(more);
        serde_json::from_str(&out(&pipetop(&arguments))).expect("one JSON document")
    };
    let seconds = |report: &serde_json::Value| report["window"]["seconds"].as_f64();
    let whole = report(&[]);
    assert_eq!(whole["verdict"]["kind"], "compute-bound");
    let part = report(&["--from", "4s", "--to", "8s"]);
    assert_eq!(part["verdict"]["kind"], "warming-up");
    assert!(
        seconds(&part).is_some_and(|part| (3.0..=4.3).contains(&part)),
        "{part}"
    );
    assert!(seconds(&whole) > seconds(&part));
    let failed = pipetop(&["replay", text(path), "--once", "--fail-if", "compute-bound"]);
    assert_eq!(failed.status.code(), Some(3));
    let said = refused(&["replay", text(path), "--from", "1h"]);
    assert!(
        said.contains("behind the end") && said.contains("hint: "),
        "{said}"
    );
}

/// The second of the recording that the screen shows; 99 where it shows none.
fn shown(screen: &str) -> u32 {
    let before = screen.find(" of 0:00:1").map(|at| &screen[..at]);
    let second = before.and_then(|before| before.get(before.len() - 2..)?.parse().ok());
    second.unwrap_or(99)
}

#[test]
fn the_screen_shows_it_again_and_goes_where_it_is_told_to() {
    let (_, path, _) = recorded();
    let mut session = Session::start(&["replay", text(path), "--speed", "100"]);
    session.shows("the end, soon", |screen| {
        screen.contains("REPLAY") && screen.contains("COMPUTE-BOUND") && screen.contains(" end ")
    });
    session.press("\u{1b}[H");
    session.shows("the begin", |screen| !screen.contains("COMPUTE-BOUND"));
    session.press(" ");
    session.press("\u{1b}[H");
    session.shows("a pause at the begin", |screen| {
        screen.contains("paused") && screen.contains("0:00:00 of 0:00:1")
    });
    session.press("\u{1b}[C");
    let screen = session.shows("ten seconds on", |screen| (9..=10).contains(&shown(screen)));
    let there = shown(&screen);
    session.press("....");
    session.shows("four readings on, a second", |screen| {
        shown(screen) == there + 1
    });
    session.press(",,,,");
    session.shows("and back", |screen| shown(screen) == there);
    session.press("?");
    session.shows("the help", |screen| screen.contains("KEYS"));
    session.press("q");
    assert!(session.ended().success());
}

#[test]
fn the_screen_and_the_report_are_saved_where_it_runs() {
    let (_, path, _) = recorded();
    let mut session = Session::start(&["replay", text(path), "--speed", "100"]);
    session.shows("the verdict", |screen| {
        screen.contains("COMPUTE-BOUND") && screen.contains(" end ")
    });
    session.press("s");
    session.shows("that it was saved", |screen| {
        screen.contains("saved pipetop-")
    });
    let files: Vec<PathBuf> = fs::read_dir(session.folder())
        .expect("ours")
        .map(|entry| entry.expect("ours").path())
        .collect();
    let read = |ending: &str| {
        let found = files
            .iter()
            .find(|path| path.extension().is_some_and(|own| own == ending));
        fs::read_to_string(found.expect("it is there")).expect("UTF-8")
    };
    let picture = read("svg");
    assert!(
        picture.starts_with("<svg ") && picture.contains(">COMPUTE-BOUND</text>"),
        "{picture}"
    );
    let report = read("md");
    assert!(report.starts_with("# COMPUTE-BOUND\n"), "{report}");
    assert!(report.contains("| worker |"), "{report}");
    // The next key takes the notice away.
    session.press("j");
    session.shows("the keys", |screen| screen.contains("? help"));
    session.press("q");
    assert!(session.ended().success());
}

#[test]
fn a_kill_loses_no_more_than_the_reading_under_way() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("killed.rec");
    let mut child = Command::new(PIPETOP)
        .args(["--json", "--interval", "100ms", "--proc-root"])
        .arg(folder.path())
        .args(["--nvml-lib", "libpipetop-has-no-such.so.1", "--record"])
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = |path: &Path| {
        out(&pipetop(&["replay", text(path), "--json"]))
            .lines()
            .count()
    };
    wait("five readings", || {
        let there = fs::metadata(&path).is_ok_and(|file| file.len() > 2000);
        (there && lines(&path) >= 5).then_some(())
    });
    child.kill().expect("it runs");
    let printed = child.wait_with_output().expect("ours").stdout;
    let printed = String::from_utf8_lossy(&printed).lines().count();
    let replayed = pipetop(&["replay", text(&path), "--json"]);
    let kept = out(&replayed).lines().count();
    assert!(kept + 1 >= printed, "{kept} of {printed}");
    let note = String::from_utf8_lossy(&replayed.stderr).into_owned();
    assert!(note.contains("was cut off"), "{note}");
}

#[test]
fn what_cannot_be_recorded_or_replayed_is_said_in_two_lines() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("other"), "something else").expect("ours");
    let other = refused(&["replay", text(&path("other"))]);
    assert!(
        other.contains("is no recording of pipetop") && other.contains("hint: "),
        "{other}"
    );
    let missing = refused(&["replay", text(&path("missing"))]);
    assert!(missing.contains("No such file"), "{missing}");
    let demo = [
        "demo", "--preset", "compute", "--device", "sim", "--json", "--record",
    ];
    let record = |name: &str| {
        let file = path(name);
        refused(&[&demo[..], &[text(&file)]].concat())
    };
    let there = record("other");
    assert!(there.contains("nothing is overwritten"), "{there}");
    let nowhere = record("no/such/folder.rec");
    assert!(nowhere.contains("cannot record to"), "{nowhere}");
    assert_eq!(fs::read(path("other")).expect("ours"), b"something else");
}

/// Made by the first version that recorded: whatever changes, it can be read.
#[test]
fn an_old_recording_can_still_be_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/v1.rec");
    let said = out(&pipetop(&["replay", text(&path), "--once", "--json"]));
    let report: serde_json::Value = serde_json::from_str(&said).expect("one JSON document");
    assert_eq!(report["verdict"]["kind"], "data-bound");
    assert_eq!(report["window"]["seconds"], 79.0);
    assert_eq!(report["verdict"]["wait_share"], 0.6);
    assert_eq!(report["job"]["command"], "(command line left out)");
}
