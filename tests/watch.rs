//! The real program beside a job that runs, without Python or GPU: the job is a shell under Python's name,
//! the driver a scripted library.

#[path = "support/patience.rs"]
mod patience;
#[expect(dead_code, reason = "other tests use all of it")]
#[path = "support/session.rs"]
mod session;
#[path = "support/stand_in.rs"]
mod stand_in;

use std::fs::{self, File};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use fake_nvml::FakeNvml;
use patience::{now, pause, wait};
use pipetop::job::{Candidate, Target};
use pipetop::observe::{Observation, observe};
use pipetop::source::sampler::Options;
use pipetop::units::{Pid, ProcessKey};
use serde_json::{Value, json};
use session::Session;
use stand_in::StandIn;
use tempfile::TempDir;

const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");
/// A name that the dynamic loader looks for and does not find.
const NO_NVML: &str = "libpipetop-has-no-such.so.1";

fn pipetop(line: &str) -> Command {
    let mut command = Command::new(PIPETOP);
    command
        .args(line.split_whitespace())
        .args(["--interval", "200ms"])
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

fn run(line: &str) -> Output {
    pipetop(line).output().expect("it starts")
}

/// The schema as it is published.
fn valid(report: &Value) {
    let schema = serde_json::from_str(include_str!("../config/report.schema.json"));
    let validator = jsonschema::validator_for(&schema.expect("JSON")).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(report)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{}\n{report:#}", errors.join("\n"));
}

/// The one document of `--once --json`, which holds to the schema.
fn report(line: &str) -> Value {
    let output = run(&format!("{line} --once --json"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(errors, "");
    let report = serde_json::from_slice(&output.stdout).expect("one JSON document");
    valid(&report);
    report
}

/// The program with its output in a file, for as long as a test wants it.
struct Running {
    child: Child,
    directory: TempDir,
}

impl Running {
    fn start(line: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let output = File::create(directory.path().join("output")).expect("a file");
        let child = pipetop(line).stdout(output).spawn().expect("it starts");
        Self { child, directory }
    }

    fn output(&self) -> String {
        fs::read_to_string(self.directory.path().join("output")).expect("UTF-8")
    }

    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        wait(what, || Some(self.output()).filter(|output| holds(output)))
    }

    /// Open descriptors, threads, and resident pages.
    fn holds(&self) -> [usize; 3] {
        let own = format!("/proc/{}", self.child.id());
        let count = |folder: &str| {
            fs::read_dir(format!("{own}/{folder}"))
                .expect("it runs")
                .count()
        };
        let statm = fs::read_to_string(format!("{own}/statm")).expect("it runs");
        let resident = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
        [count("fd"), count("task"), resident.expect("a number")]
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_job_is_found_by_a_word_and_reported() {
    let job = StandIn::start(3);
    // Other tests run jobs beside this one: the directory's name tells them apart.
    let word = job.directory().join("train.py").display().to_string();
    let report = report(&format!("{word} --for 1s"));
    assert_eq!(report["job"]["pid"], job.pid());
    let rank = &report["job"]["ranks"][0];
    assert_eq!(rank["loader"]["num_workers"], 3);
    assert_eq!(rank["workers"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["verdict"]["kind"], "warming-up");
    // What nobody counted is not 0.
    assert_eq!(rank["step"]["batches_per_s"], Value::Null);
    assert_eq!(rank["step"]["step_ms"], Value::Null);
    assert_eq!(report["window"]["batches"], Value::Null);
    let output = run(&format!("{word} --once --for 1s"));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        text.contains("WARMING UP") && text.contains("train.py"),
        "{text}"
    );
    // Of its workers it is the job that is meant.
    let worker = report_of_worker(&report);
    assert_eq!(
        self::report(&format!("{worker} --for 1s"))["job"]["pid"],
        job.pid()
    );
}

fn report_of_worker(report: &Value) -> u64 {
    let worker = &report["job"]["ranks"][0]["workers"][1]["pid"];
    worker.as_u64().expect("a pid")
}

#[test]
fn lines_go_on_until_the_job_has_ended_and_say_so_within_two_intervals() {
    let mut job = StandIn::start(2);
    let pid = job.pid();
    let lines = Running::start(&pid.to_string());
    let documents = Running::start(&format!("{pid} --json"));
    for running in [&lines, &documents] {
        running.until("lines", |output| output.lines().count() >= 3);
    }
    job.end();
    let end = now();
    let said = |output: &str| output.contains("has ended");
    lines.until("the end", said);
    let (seen, after) = (lines.output(), end.elapsed());
    note(&format!("the end was said after {after:?}"));
    // Two intervals of 200 ms, and as much for a machine that has other things to do.
    assert!(after < Duration::from_millis(800), "{after:?}");
    let before = seen
        .lines()
        .find(|line| !said(line))
        .expect("a line before");
    assert!(before.contains("WARMING UP"), "{before}");
    let ended = seen.lines().find(|line| said(line)).expect("the line");
    assert!(
        ended.ends_with("n/a of 20 batches, 0 of 10 s") || ended.contains("WARMING UP"),
        "{ended}"
    );
    // It goes on looking.
    let count = seen.lines().count();
    lines.until("more lines", |output| output.lines().count() > count + 2);

    documents.until("the end", said);
    // The last line may be half written.
    let output = documents.output();
    let whole = output.rsplit_once('\n').expect("a line").0;
    let reports: Vec<Value> = whole
        .lines()
        .map(|line| serde_json::from_str(line).expect("a document a line"))
        .collect();
    reports.iter().for_each(valid);
    assert!(reports.iter().all(|report| report["job"]["pid"] == pid));
    assert!(!reports[0]["gaps"].to_string().contains("has ended"));
}

#[test]
fn a_job_that_ends_is_reported_at_once_as_far_as_it_was_seen() {
    let mut job = StandIn::start(2);
    let mut once = Running::start(&format!("{} --once --json --for 60s", job.pid()));
    pause(Duration::from_millis(1200));
    job.end();
    let status = wait("the report", || once.child.try_wait().expect("our child"));
    assert_eq!(status.code(), Some(0));
    let report: Value = serde_json::from_str(&once.output()).expect("one document");
    valid(&report);
    assert_eq!(report["job"]["pid"], job.pid());
    let workers = &report["job"]["ranks"][0]["workers"];
    assert_eq!(workers.as_array().map(Vec::len), Some(2));
    assert!(
        report["gaps"].to_string().contains("has ended"),
        "{report:#}"
    );
}

#[test]
fn a_job_that_ends_while_it_is_attached_to_is_an_error_once_and_else_no_job() {
    let nothing = tempfile::tempdir().expect("a temporary directory");
    let key = ProcessKey {
        pid: Pid(4_100_000),
        start_ticks: 1,
    };
    let watch = |once| {
        let options = Options {
            proc_root: nothing.path().to_owned(),
            sys_root: nothing.path().to_owned(),
            nvml_lib: Some(NO_NVML.into()),
            gpus: None,
            interval: Duration::from_millis(100),
            target: Target::Pid(key.pid),
            probe: None,
            recorder: None,
            lacking: vec![],
        };
        let found = Candidate {
            ranks: vec![key],
            command: "python train.py".to_owned(),
            workers: 2,
        };
        let how = Observation {
            steady: false,
            once,
            json: false,
            span: Some(Duration::from_secs(1)),
        };
        let mut out = Vec::new();
        let outcome = observe(options, Some(found), how, &mut out);
        (outcome, String::from_utf8(out).expect("UTF-8"))
    };
    let (outcome, out) = watch(true);
    let error = outcome.expect_err("there is nothing to report");
    assert!(error.message.contains("has ended"), "{error}");
    assert!(!error.hint.is_empty() && out.is_empty(), "{out}");
    let (outcome, out) = watch(false);
    assert!(
        outcome.is_ok() && out.contains("no training job yet"),
        "{out}"
    );
}

#[test]
fn a_verdict_that_is_to_fail_gives_its_exit_code() {
    let job = StandIn::start(2);
    let pid = job.pid();
    let code = |line: &str| run(&format!("{pid} --for 1s {line}")).status.code();
    assert_eq!(code("--once --fail-if stalled"), Some(0));
    assert_eq!(code("--once --fail-if data-bound,warming-up"), Some(3));
    assert_eq!(code("--fail-if warming-up"), Some(3));
    assert_eq!(code("--json --fail-if data-bound"), Some(0));
    job.signal(rustix::process::Signal::STOP);
    assert_eq!(code("--once --fail-if stalled"), Some(3));
    let report = report(&format!("{pid} --for 1s"));
    assert_eq!(report["verdict"]["kind"], "stalled");
    let advice = report["verdict"]["advice"][0].as_str().expect("advice");
    assert!(advice.contains(&format!("kill -CONT {pid}")), "{advice}");
}

#[test]
fn workers_that_come_and_go_leave_nothing_behind() {
    let job = StandIn::restarting(4);
    let running = Running::start(&format!("{} --json --nvml-lib {NO_NVML}", job.pid()));
    let lines = |count| running.until("lines", |output| output.lines().count() >= count);
    lines(5);
    let early = running.holds();
    let output = lines(25);
    let late = running.holds();
    note(&format!(
        "descriptors, threads, pages: {early:?}, then {late:?}"
    ));
    // Workers are looked at by descriptors that are open while they live.
    assert!(late[0] <= early[0] + 40, "{early:?} {late:?}");
    assert_eq!(early[1], late[1], "threads");
    assert!(late[2] <= early[2] + 1024, "{early:?} {late:?}");
    let report: Value =
        serde_json::from_str(output.lines().nth(20).expect("counted")).expect("JSON");
    let loader = &report["job"]["ranks"][0];
    assert!(
        loader["workers"].as_array().expect("a list").len() <= 8,
        "{loader:#}"
    );
}

/// A driver of its own for one test.
fn driver(script: &str) -> (TempDir, String) {
    let directory = TempDir::new().expect("a temporary directory");
    let fake = FakeNvml::install(directory.path(), script);
    let library = fake.library().display().to_string();
    (directory, library)
}

fn with_driver(job: &StandIn, library: &str) -> Value {
    report(&format!("{} --for 1s --nvml-lib {library}", job.pid()))
}

#[test]
fn one_two_and_eight_gpus_are_reported() {
    let job = StandIn::start(1);
    for count in [1, 2, 8] {
        let pid = job.pid();
        let (_directory, library) = driver(&format!(
            "sys count={count}\ndev * util=40 used=3G procs={pid}:2G:35"
        ));
        let report = with_driver(&job, &library);
        let gpus = report["gpus"].as_array().expect("a list");
        assert_eq!(gpus.len(), count);
        for (index, gpu) in gpus.iter().enumerate() {
            assert_eq!(gpu["index"], index);
            assert_eq!(gpu["util_percent"], 40.0);
            assert_eq!(gpu["busy_share"], 0.4);
            assert_eq!(gpu["mem_used_bytes"], 3_u64 << 30);
            assert_eq!(gpu["processes"][0]["pid"], pid);
            assert_eq!(gpu["processes"][0]["mem_bytes"], 2_u64 << 30);
            assert_eq!(gpu["gap"], Value::Null);
        }
        assert!(gap(&report, "nvml").is_none(), "{report:#}");
    }
}

#[test]
fn a_gpu_that_is_lost_or_denied_says_so_and_has_no_figures() {
    let job = StandIn::start(1);
    let (_directory, library) =
        driver("sys count=3\ndev * util=40 used=3G\ndev 1 fail=lost\ndev 2 fail=no-permission");
    let report = with_driver(&job, &library);
    let gpus = report["gpus"].as_array().expect("a list");
    assert_eq!(gpus[0]["util_percent"], 40.0);
    for (gpu, reason) in [(&gpus[1], "lost"), (&gpus[2], "no permission")] {
        assert_eq!(gpu["gap"], reason);
        let known = gpu.as_object().expect("an object").iter();
        let known: Vec<_> = known.filter(|(_, value)| !value.is_null()).collect();
        let names: Vec<_> = known.iter().map(|(name, _)| name.as_str()).collect();
        // What is not of the GPU itself: whose it is, what asking cost, why there is nothing.
        let about = [
            "instances",
            "visible_to_job",
            "ranks",
            "driver_ms_per_s",
            "absent",
        ];
        let figures: Vec<_> = names.iter().filter(|name| !about.contains(name)).collect();
        assert_eq!(figures, [&"index", &"gap"]);
        assert_eq!(gpu["instances"], json!([]));
    }
}

#[test]
fn all_that_a_gpu_tells_is_reported() {
    let job = StandIn::start(1);
    let (_directory, library) = driver(
        "dev 0 minor=7 util=100 mem_util=20 total=80G used=40G reserved=1G power=500 limit=700 instant=510\n\
         dev 0 mem_temp=77 throttle=4 gpm=1 gpm.1=100 gpm.2=45 gpm.3=20 gpm.5=30 gpm.10=15 gpm.20=100 gpm.21=200\n\
         dev 0 nvlink_rx=1000000 nvlink_tx=2000000 ecc_corrected=3 remapped=1:0:0:0 xid=31\n\
         dev 0 procs=4194001:9G:50",
    );
    let line = format!("{} --for 3s --nvml-lib {library}", job.pid());
    let report = report(&line);
    let gpu = &report["gpus"][0];
    assert_eq!(gpu["sm_active_share"], 0.45);
    assert_eq!(gpu["dram_share"], 0.15);
    assert_eq!(
        gpu["load_estimate_share"],
        Value::Null,
        "what is measured is not guessed"
    );
    assert_eq!(gpu["pcie_tx_bytes_per_s"], 100 << 20);
    assert_eq!(gpu["pcie_rx_bytes_per_s"], 200 << 20);
    assert_eq!(gpu["pcie_link"]["width"], 16);
    assert_eq!(gpu["throttle"], json!(["power cap"]));
    assert_eq!(gpu["power_instant_watts"], 510.0);
    assert_eq!(gpu["mem_temperature_c"], 77.0);
    assert_eq!(gpu["ecc_corrected"], 3);
    assert_eq!(gpu["remapped_rows"], 1);
    assert_eq!(gpu["xids"][0]["number"], 31);
    assert!(
        gpu["xids"][0]["age_seconds"]
            .as_f64()
            .is_some_and(|age| age < 60.0)
    );
    assert!(
        gpu["driver_ms_per_s"]
            .as_f64()
            .is_some_and(|cost| cost > 0.0)
    );
    // A number that nothing here has: the driver's word alone joins nothing.
    assert_eq!(gpu["processes"][0]["pid"], 4_194_001);
    assert_ne!(gpu["processes"][0]["place"], "here");
    assert_eq!(gpu["swing"], Value::Null);
    let absent = gpu["absent"].as_array().expect("a list");
    let retired = absent
        .iter()
        .find(|absent| absent["figure"] == "retired_pages");
    assert_eq!(
        retired.expect("it has none")["reason"],
        "this GPU does not tell it"
    );
}

#[test]
fn a_call_that_hangs_leaves_the_screen_live() {
    let job = StandIn::start(2);
    let directory = TempDir::new().expect("a temporary directory");
    let fake = FakeNvml::install(directory.path(), "sys count=2\ndev * util=61");
    let mut session = screen(&job, &fake.library().display().to_string());
    session.shows("both GPUs", |screen| screen.matches("61 %").count() >= 2);
    fake.script("sys count=2\ndev 0 util=23\ndev 1 util=61 hang.nvmlDeviceGetPowerUsage=30");
    session.shows("the row that is old beside one that is new", |screen| {
        screen.contains("driver does not answer") && screen.contains("23 %")
    });
    session.press("?");
    session.shows("help", |screen| screen.contains("sort"));
    session.press("q");
    assert!(session.ended().success());
    // Lets its thread go.
    fake.script("sys count=2");
}

#[test]
fn sixteen_gpus_fit_a_small_screen_and_a_lost_one_comes_back() {
    let job = StandIn::start(1);
    let directory = TempDir::new().expect("a temporary directory");
    let all = "sys count=16\ndev * util=61";
    let fake = FakeNvml::install(directory.path(), all);
    let mut session = screen(&job, &fake.library().display().to_string());
    // The ninth is none of the few that have a line.
    let line = |screen: &str| {
        let mut lines = screen.lines();
        lines.find(|line| line.contains(" more")).map(str::to_owned)
    };
    session.shows("all of them", |screen| {
        screen.contains("16 GPUs")
            && screen.contains(" 61 %")
            && line(screen).is_some_and(|line| !line.contains("n/a"))
    });
    fake.script(&format!("{all}\ndev 9 fail=lost"));
    session.shows("that one is lost", |screen| {
        line(screen).is_some_and(|line| line.contains("1 n/a"))
    });
    fake.script(all);
    session.shows("that it is back", |screen| {
        line(screen).is_some_and(|line| !line.contains("n/a"))
    });
    session.press("q");
    assert!(session.ended().success());
}

/// The reason and hint of what a source lacks.
fn gap<'a>(report: &'a Value, source: &str) -> Option<(&'a str, &'a str)> {
    let gaps = report["gaps"].as_array().expect("a list");
    let gap = gaps.iter().find(|gap| gap["source"] == source)?;
    gap["reason"].as_str().zip(gap["hint"].as_str())
}

#[test]
fn without_a_driver_that_answers_the_reason_is_reported_and_no_gpu() {
    let job = StandIn::start(1);
    let denied = driver("sys init=no-permission");
    let mismatched = driver("sys init=mismatch");
    let unloaded = driver("sys init=not-loaded");
    let hanging = driver("sys hang.nvmlInit_v2=600");
    let empty = driver("sys count=0");
    for (library, reason) in [
        (denied.1.as_str(), "no permission to use the NVIDIA driver"),
        (
            &mismatched.1,
            "NVIDIA driver and library have different versions",
        ),
        (&unloaded.1, "the NVIDIA driver is not loaded"),
        (&hanging.1, "the NVIDIA driver is being opened"),
        (&empty.1, "the NVIDIA driver lists no GPU"),
        (NO_NVML, "libpipetop-has-no-such.so.1 not found"),
        ("libm.so.6", "libm.so.6 is not NVML"),
    ] {
        let report = with_driver(&job, library);
        let (found, hint) = gap(&report, "nvml").expect("a gap");
        assert_eq!(found, reason);
        assert!(!hint.is_empty() || library == hanging.1, "{reason}");
        assert_eq!(report["gpus"], json!([]));
        assert_eq!(report["verdict"]["gpu_idle_share"], Value::Null);
    }
}

fn screen(job: &StandIn, library: &str) -> Session {
    let pid = job.pid().to_string();
    Session::start(&[&pid, "--interval", "200ms", "--nvml-lib", library])
}

#[test]
fn the_screen_shows_two_gpus_and_that_the_job_has_ended() {
    let mut job = StandIn::start(2);
    let (_directory, library) = driver("sys count=2\ndev 0 util=61\ndev 1 util=23");
    let mut session = screen(&job, &library);
    let screen = session.shows("both GPUs", |screen| {
        screen.contains("2 GPUs") && screen.contains("61 %") && screen.contains("23 %")
    });
    assert!(screen.contains("WARMING UP"), "{screen}");
    assert!(screen.contains("train.py"), "{screen}");
    job.end();
    let end = now();
    session.shows("the end", |screen| screen.contains("ended"));
    let after = end.elapsed();
    note(&format!("the screen said the end after {after:?}"));
    assert!(after < Duration::from_millis(800), "{after:?}");
    session.press("q");
    assert!(session.ended().success());
}

#[test]
fn the_screen_says_why_there_is_no_gpu() {
    let job = StandIn::start(2);
    let mut session = screen(&job, NO_NVML);
    session.shows("the reason", |screen| {
        screen.contains("libpipetop-has-no-such.so.1 not found")
    });
    session.press("q");
    assert!(session.ended().success());
}

#[test]
fn the_first_frame_comes_at_once() {
    let job = StandIn::start(4);
    let pid = job.pid().to_string();
    for arguments in [vec![], vec![pid.as_str()]] {
        let frames = (0..5).map(|_| {
            let session = Session::start(&arguments);
            session.until("a frame", |text| text.contains("pipetop"));
            session.time_to("pipetop").expect("it was written")
        });
        let best = frames.min().expect("five");
        note(&format!(
            "{arguments:?}: first frame after {best:?}, the best of five"
        ));
        // 100 ms are promised of a release build on a machine of its own.
        let most = if cfg!(debug_assertions) { 500 } else { 100 };
        assert!(best < Duration::from_millis(most), "{best:?}");
    }
}

/// Shown by `--nocapture`, and where the test fails.
#[expect(clippy::print_stdout, reason = "the test runner captures it")]
fn note(line: &str) {
    println!("{line}");
}
