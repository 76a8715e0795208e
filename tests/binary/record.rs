//! Recordings through the real program: a replay gives the same output as the live run, on the screen and without it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use support::long_job;
use support::readings::{readings, wait_for_readings};
use support::session::Session;
use support::stand_in::StandIn;
use support::traces::Place;
use support::waiting::{ToEnd, ended, wait};
use tempfile::TempDir;

const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");

/// A value in the environment of the recorded job and of pipetop, which must not be printed.
const SECRET: &str = "told-to-nobody";

fn pipetop(arguments: &[&str]) -> Output {
    Command::new(PIPETOP)
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .to_end()
}

fn out(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs pipetop, checks for exit code 1, and returns its error output.
fn refused(arguments: &[&str]) -> String {
    let output = pipetop(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Seconds of the synthetic recording, of a job with 12 workers that waits for its data.
const LENGTH: u32 = 14;

fn recording() -> &'static Path {
    static RECORDED: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = RECORDED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("made.rec");
        long_job::record(12, 10, LENGTH, &path);
        (folder, path)
    });
    path
}

#[test]
fn a_real_run_replays_to_the_same_lines_to_the_last_digit() {
    let place = Place::new();
    let path = &place.path().join("run.rec");
    let line = "demo --preset compute --device sim --interval 100ms --for 2s --json";
    let mut command = place.command(line);
    command.env("PIPETOP_TEST_SECRET", SECRET);
    let ran = command.arg("--record").arg(path).to_end();
    let live = out(&ran);
    assert!(live.lines().count() >= 2, "{live}");
    let replayed = pipetop(&["replay", text(path), "--json"]);
    // The file may hold one more sample, which was being taken at the end.
    let again = out(&replayed);
    assert!(again.starts_with(&live), "{again}\nis not\n{live}");
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
    let path = recording();
    let report = |more: &[&str]| -> serde_json::Value {
        let mut arguments = vec!["replay", text(path), "--once", "--json"];
        arguments.extend(more);
        serde_json::from_str(&out(&pipetop(&arguments))).expect("one JSON document")
    };
    let seconds = |report: &serde_json::Value| report["window"]["seconds"].as_f64();
    let whole = report(&[]);
    assert_eq!(whole["verdict"]["kind"], "data-bound");
    let part = report(&["--from", "4s", "--to", "8s"]);
    assert_eq!(part["verdict"]["kind"], "warming-up");
    assert_eq!(seconds(&part), Some(4.0), "{part}");
    // `--to 8s` has the sample that came a little later than after eight seconds.
    let part = report(&["--from", "4s", "--to", "7950ms"]);
    assert_eq!(seconds(&part), Some(4.0), "{part}");
    assert!(seconds(&whole) > seconds(&part));
    let failed = pipetop(&["replay", text(path), "--once", "--fail-if", "data-bound"]);
    assert_eq!(failed.status.code(), Some(3));
    let said = refused(&["replay", text(path), "--once", "--to", "0s"]);
    assert!(
        said.contains("only one sample") && said.contains("hint: a report needs two"),
        "{said}"
    );
    let said = refused(&["replay", text(path), "--from", "1h"]);
    assert!(
        said.contains("past the end") && said.contains("hint: "),
        "{said}"
    );
}

/// Returns the recording's second that the screen shows; 99 if it shows none.
fn shown(screen: &str) -> u32 {
    let before = screen.find(" of 0:00:1").map(|at| &screen[..at]);
    let second = before.and_then(|before| before.get(before.len() - 2..)?.parse().ok());
    second.unwrap_or(99)
}

#[test]
fn the_screen_shows_it_again_and_goes_where_keys_send_it() {
    let path = recording();
    let mut session = Session::start(&["replay", text(path), "--speed", "100"]);
    session.shows("the end, soon", |screen| {
        screen.contains("REPLAY") && screen.contains("DATA-BOUND") && screen.contains(" end ")
    });
    session.press("\u{1b}[H");
    session.shows("the begin", |screen| !screen.contains("DATA-BOUND"));
    session.press(" ");
    session.press("\u{1b}[H");
    session.shows("a pause at the begin", |screen| {
        screen.contains("paused") && screen.contains("0:00:00 of 0:00:1")
    });
    session.press("\u{1b}[C");
    let screen = session.shows("ten seconds on", |screen| (9..=10).contains(&shown(screen)));
    let there = shown(&screen);
    session.press("..");
    session.shows("two readings on", |screen| shown(screen) == there + 2);
    session.press(",,");
    session.shows("and back", |screen| shown(screen) == there);
    session.press("?");
    session.shows("the help", |screen| screen.contains("KEYS"));
    session.press("q");
    assert!(session.ended().success());
}

#[test]
fn the_screen_and_the_report_are_saved_where_it_runs() {
    let path = recording();
    let mut session = Session::start(&["replay", text(path), "--speed", "100"]);
    session.shows("the verdict", |screen| {
        screen.contains("DATA-BOUND") && screen.contains(" end ")
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
        picture.starts_with("<svg ") && picture.contains(">DATA-BOUND</text>"),
        "{picture}"
    );
    let report = read("md");
    assert!(report.starts_with("# DATA-BOUND\n"), "{report}");
    assert!(report.contains("| worker |"), "{report}");
    // The next key removes the notice.
    session.press("j");
    session.shows("the keys", |screen| screen.contains("? help"));
    session.press("q");
    assert!(session.ended().success());
}

#[test]
fn a_reading_is_in_the_file_at_once_and_a_kill_loses_none_that_is() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("killed.rec");
    let printed = folder.path().join("printed");
    let nothing = tempfile::tempdir().expect("a temporary directory");
    let mut child = Command::new(PIPETOP)
        .args(["--json", "--interval", "100ms", "--proc-root"])
        .arg(nothing.path())
        .args(["--nvml-lib", "libpipetop-has-no-such.so.1", "--record"])
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&printed).expect("ours"))
        .spawn()
        .expect("it starts");
    wait("five lines", || {
        let printed = fs::read_to_string(&printed).expect("UTF-8");
        (printed.lines().count() >= 5).then_some(())
    });
    wait_for_readings(&path, 5);
    let before = readings(&path);
    child.kill().expect("it runs");
    ended(&mut child);
    let replayed = pipetop(&["replay", text(&path), "--json"]);
    assert!(out(&replayed).lines().count() >= 4);
    assert!(readings(&path) >= before, "{} of {before}", readings(&path));
    let note = String::from_utf8_lossy(&replayed.stderr).into_owned();
    assert!(note.contains("is truncated"), "{note}");
}

#[test]
fn two_runs_are_compared_and_a_slower_one_can_fail() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str| folder.path().join(name);
    let (quick, slow, report) = (file("quick.rec"), file("slow.rec"), file("report.json"));
    long_job::record(4, 10, 30, &quick);
    long_job::record(4, 8, 30, &slow);
    let json = out(&pipetop(&["replay", text(&slow), "--once", "--json"]));
    fs::write(&report, json).expect("the folder is ours");
    let diff = |after: &Path, more: &[&str]| {
        let output = pipetop(&[&["diff", text(&quick), text(after)], more].concat());
        let page = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = page.lines().last().unwrap_or_default().to_owned();
        (output.status.code(), last)
    };
    let (code, last) = diff(&slow, &[]);
    assert_eq!(code, Some(0), "{last}");
    assert!(last.contains("slow.rec is slower: 0.80x"), "{last}");
    let fails = ["--fail-if-slower", "5%"];
    assert_eq!(diff(&slow, &fails).0, Some(3));
    assert_eq!(diff(&slow, &["--fail-if-slower", "30"]).0, Some(0));
    let (code, last) = diff(&quick, &fails);
    assert_eq!(code, Some(0), "{last}");
    assert!(last.contains("cannot be told apart"), "{last}");
    let (code, last) = diff(&report, &[]);
    assert_eq!(code, Some(0), "{last}");
    assert!(
        last.contains("It is unknown whether it is faster"),
        "{last}"
    );
    assert_eq!(diff(&report, &fails).0, Some(1));
    let json = out(&pipetop(&["diff", text(&quick), text(&slow), "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["outcome"], "slower");
    assert_eq!(json["after"]["file"], text(&slow));
    let (whole, cut) = (fs::read(&slow).expect("it was written"), file("cut.rec"));
    fs::write(&cut, &whole[..whole.len() - 3]).expect("the folder is ours");
    let output = pipetop(&["diff", text(&quick), text(&cut)]);
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(
        notes.contains("cut.rec is truncated, damaged or still being written"),
        "{notes}"
    );
    let newer = fs::read_to_string(&report).expect("it was written");
    let mut edited: serde_json::Value = serde_json::from_str(&newer).expect("JSON");
    edited["window"]["seconds"] = 1e300.into();
    let absurd = file("edited.json");
    fs::write(&absurd, edited.to_string()).expect("the folder is ours");
    let lines = refused(&["diff", text(&quick), text(&absurd)]);
    assert!(
        lines.contains("`window.seconds` in ") && lines.contains("out of range"),
        "{lines}"
    );
    edited["window"]["seconds"] = 10.into();
    edited["job"] = serde_json::Value::Null;
    let jobless = file("jobless.json");
    fs::write(&jobless, edited.to_string()).expect("the folder is ours");
    let lines = refused(&["diff", text(&jobless), text(&quick)]);
    assert!(
        lines.contains("jobless.json contains no job to compare"),
        "{lines}"
    );
    let newer = newer.replace("pipetop.report/1", "pipetop.report/2");
    let future = file("future.json");
    fs::write(&future, newer).expect("the folder is ours");
    let lines = refused(&["diff", text(&quick), text(&future)]);
    assert!(lines.contains("cannot read (pipetop.report/2)"), "{lines}");
    let lines = refused(&["diff", text(&quick), text(&file("none.rec"))]);
    assert!(
        lines.contains("hint: use a recording, or a report"),
        "{lines}"
    );
    let foreign = file("notes.txt");
    fs::write(&foreign, "lr 0.1").expect("the folder is ours");
    let lines = refused(&["diff", text(&quick), text(&foreign)]);
    assert!(
        lines.contains("neither a recording nor a JSON report"),
        "{lines}"
    );
    assert!(lines.contains("hint: "), "{lines}");
}

#[test]
fn a_recording_that_is_damaged_at_its_start_says_so() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = &folder.path().join("hurt.rec");
    let mut bytes = fs::read(recording()).expect("it was made");
    let start = bytes
        .windows(4)
        .position(|part| part == b"\x28\xb5\x2f\xfd");
    bytes[start.expect("a frame of zstd") + 20..][..8].fill(0xff);
    fs::write(path, bytes).expect("the folder is ours");
    let file = text(path);
    for more in [&[][..], &["--once"], &["--json"], &["--once", "--to", "5s"]] {
        assert_eq!(
            refused(&[&["replay", file], more].concat()),
            format!(
                "error: {file} is damaged at its first sample, and no later one can be read\n\
                 hint: record again, with `pipetop --record FILE`\n"
            )
        );
    }
    let compared = refused(&["diff", file, text(recording())]);
    assert!(
        compared.contains("hurt.rec: the recording is damaged"),
        "{compared}"
    );
    assert!(!compared.contains("--from"), "{compared}");
    // Damaged later, the samples before are shown, and nothing of the same group after them.
    let mut bytes = fs::read(recording()).expect("it was made");
    let middle = bytes.len() / 2;
    bytes[middle..][..8].fill(0xff);
    fs::write(path, bytes).expect("the folder is ours");
    let shown = pipetop(&["replay", file, "--once"]);
    let notes = String::from_utf8_lossy(&shown.stderr);
    assert!(notes.contains("; showing what can be read\n"), "{notes}");
}

#[test]
fn recording_and_replay_errors_have_two_lines() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("other"), "something else").expect("ours");
    let other = refused(&["replay", text(&path("other"))]);
    assert!(
        other.contains("is not a pipetop recording") && other.contains("hint: "),
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
    fs::create_dir(path("folder")).expect("ours");
    // The advice to remove what is there is given only for files.
    let folder_named = record("folder");
    assert!(folder_named.contains("Is a directory"), "{folder_named}");
    assert!(!folder_named.contains("remove"), "{folder_named}");
    let nowhere = record("no/such/folder.rec");
    assert!(nowhere.contains("cannot record to"), "{nowhere}");
    assert_eq!(fs::read(path("other")).expect("ours"), b"something else");
    // If recording is impossible, that is reported before a job is searched for. An attempt without a job leaves no
    // file.
    let file = path("no/such/folder.rec");
    let no_job = ["nosuchword", "--once", "--record", text(&file)];
    assert!(refused(&no_job).contains("cannot record to"));
    let file = path("free");
    let no_job = ["nosuchword", "--once", "--record", text(&file)];
    assert!(refused(&no_job).contains("no running command line"));
    assert!(!file.exists());
    let long = "a".repeat(5000);
    let shown = refused(&["replay", &long]);
    assert!(
        shown.contains("File name too long") && shown.len() < 1000,
        "{shown}"
    );
}

/// The file is from the first version with recordings: all later versions must be able to read it.
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

/// Jobs of PyTorch on an H200 (`tests/torch/loaders/on_a_gpu.py`), each with its own measurements: the share of the
/// time in which it waited, and the share in which it waited while its CUDA events show an idle GPU.
#[test]
fn recorded_jobs_on_a_real_gpu_are_judged_by_what_they_measured() {
    const NEAR: f64 = 0.03;
    for (name, waited, lost, kind, cause) in [
        ("synchronises", 0.270, 0.270, "data-bound", None),
        ("runs-ahead", 0.767, 0.292, "data-bound", None),
        ("pins", 0.836, 0.477, "data-bound", None),
        ("learns", 0.772, 0.539, "data-bound", None),
        ("short-steps", 0.635, 0.369, "data-bound", None),
        (
            "decodes",
            0.623,
            0.623,
            "data-bound",
            Some("cpu-preprocess"),
        ),
        ("receives", 0.275, 0.001, "balanced", None),
        ("learns-and-fed", 0.005, 0.0, "compute-bound", None),
        ("copies", 0.099, 0.099, "host-bound", Some("transfer")),
        ("pageable", 0.014, 0.014, "host-bound", Some("transfer")),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/recordings/h200")
            .join(name)
            .with_extension("rec");
        let said = out(&pipetop(&["replay", text(&path), "--once", "--json"]));
        let report: serde_json::Value = serde_json::from_str(&said).expect("one JSON document");
        let verdict = &report["verdict"];
        assert_eq!(verdict["kind"], kind, "{name}");
        assert_eq!(verdict["cause"].as_str(), cause, "{name}");
        let number = |value: &serde_json::Value| value.as_f64().expect("a number");
        let wait = number(&verdict["wait_share"]);
        assert!(
            (wait - waited).abs() <= NEAR,
            "{name}: {wait}, of itself {waited}"
        );
        let stated = format!(" {:.0} % ", 100.0 * number(&verdict["stall_share"]));
        let words = verdict["headline"]["loss"][0].as_str().expect("a sentence");
        let words = format!(" {words}");
        assert!(words.contains(&stated), "{name}: {words:?}, not {stated:?}");
        let ends = &verdict["stall_interval"];
        let (low, high) = (number(&ends[0]), number(&ends[1]));
        assert!(
            low <= lost && lost <= high + NEAR,
            "{name}: {ends}, of itself {lost}"
        );
    }
}

#[test]
fn a_recording_at_the_limit_of_file_sizes_is_as_one_on_a_full_disk() {
    let job = StandIn::start(1);
    let folder = tempfile::tempdir().expect("a temporary directory");
    // `ulimit -f` counts blocks of 512 bytes, or of 1024 in some shells. Even the few samples of a busy machine need
    // more.
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 2; exec \"$0\" \"$@\"", PIPETOP])
        .args([&job.pid().to_string(), "--for", "5s", "--interval", "100ms"])
        .arg("--record")
        .arg(folder.path().join("recording"))
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .to_end();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let said: Vec<&str> = errors.lines().collect();
    assert_eq!(said.len(), 3, "{errors}");
    assert!(
        said[0].starts_with("warning: recording stopped"),
        "{errors}"
    );
    assert!(said[1].starts_with("error: recording stopped"), "{errors}");
    let lines = String::from_utf8_lossy(&output.stdout);
    assert!(lines.lines().count() > 10, "watching goes on: {lines}");
}
