//! The real program beside a running job, without Python or GPU: the job is a shell with Python's name, and the GPU
//! driver is a scripted library.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use fake_nvml::FakeNvml;
use pipetop::testing::headless::{Observation, observe};
use pipetop::testing::job::{Candidate, Target};
use pipetop::testing::source::sampler::Options;
use pipetop::units::{Pid, ProcessKey};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use support::readings::wait_for_readings;
use support::session::Session;
use support::stand_in::StandIn;
use support::waiting::{ToEnd, wait, wait_with_state};
use tempfile::TempDir;

const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");
/// A name that the dynamic loader searches for and does not find.
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
    pipetop(line).to_end()
}

/// Checks a report against the published schema.
fn valid(report: &Value) {
    let schema = serde_json::from_str(include_str!("../../config/report.schema.json"));
    let validator = jsonschema::validator_for(&schema.expect("JSON")).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(report)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{}\n{report:#}", errors.join("\n"));
}

/// Returns the only document of `--once --json`, which must conform to the schema.
fn report(line: &str) -> Value {
    let output = run(&format!("{line} --once --json"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(errors, "");
    let report = serde_json::from_slice(&output.stdout).expect("one JSON document");
    valid(&report);
    report
}

/// A running pipetop whose output goes to a file; dropping it ends it.
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

    /// Waits for a report that satisfies `wanted`, of a command that prints one per line. It must conform to the
    /// schema.
    fn report(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let find = || {
            let output = self.output();
            // The last line may be incomplete.
            let whole = output.rsplit_once('\n')?.0;
            let mut reports = whole
                .lines()
                .map(|line| serde_json::from_str(line).expect("a document a line"));
            reports.find(&wanted)
        };
        let report = wait_with_state(what, find, || self.output());
        valid(&report);
        report
    }

    /// Returns the number of open descriptors, threads and resident pages.
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
    // Other tests run jobs at the same time. The directory's name identifies this job.
    let word = job.directory().join("train.py").display().to_string();
    let report = report(&format!("{word} --for 1s"));
    assert_eq!(report["job"]["pid"], job.pid());
    let rank = &report["job"]["ranks"][0];
    assert_eq!(rank["loader"]["num_workers"], 3);
    assert_eq!(rank["workers"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["verdict"]["kind"], "warming-up");
    // What was not counted is null, not 0.
    assert_eq!(rank["step"]["batches_per_s"], Value::Null);
    assert_eq!(rank["step"]["step_ms"], Value::Null);
    assert_eq!(report["window"]["batches"], Value::Null);
    let output = run(&format!("{word} --once --for 1s"));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        text.contains("WARMING UP") && text.contains("train.py"),
        "{text}"
    );
    // The PID of one of its workers also selects the job.
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
fn lines_continue_until_the_job_ends_and_report_it() {
    let mut job = StandIn::start(2);
    let pid = job.pid();
    let lines = Running::start(&pid.to_string());
    let documents = Running::start(&format!("{pid} --json"));
    for running in [&lines, &documents] {
        running.until("lines", |output| output.lines().count() >= 3);
    }
    job.end();
    let said = |output: &str| output.contains("has ended");
    // Waits for a whole line.
    let seen = lines.until("the end", |output| {
        output
            .rsplit_once('\n')
            .is_some_and(|(whole, _)| said(whole))
    });
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
    // pipetop keeps looking for a job. Each document says so, the lines say it only once.
    documents.until("the end", |output| {
        output.lines().filter(|line| said(line)).count() > 3
    });
    let seen = lines.output();
    assert_eq!(seen.lines().filter(|line| said(line)).count(), 1, "{seen}");
    // The last line may be incomplete.
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
fn lines_say_which_job_follows_one_that_has_ended() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let word = folder.path().file_name().expect("a name").display();
    let mut job = StandIn::start_in(folder.path(), 2);
    let lines = Running::start(&word.to_string());
    let before = lines.until("lines", |output| output.lines().count() >= 3);
    assert!(!before.contains("now watching"), "{before}");
    job.end();
    lines.until("the end", |output| output.contains("has ended"));
    let next = StandIn::start_in(folder.path(), 2);
    let said = format!("  now watching pid {}: ", next.pid());
    let seen = lines.until("figures of the next", |output| {
        let after = output.split_once(&said);
        after.is_some_and(|(_, after)| after.contains("WARMING UP"))
    });
    assert_eq!(seen.matches("now watching").count(), 1, "{seen}");
}

#[test]
fn a_job_given_by_its_pid_is_followed_by_its_own_script_alone() {
    let mut job = StandIn::with_script("given-by-pid.py", 2);
    let lines = Running::start(&job.pid().to_string());
    lines.until("lines", |output| output.lines().count() >= 3);
    job.end();
    lines.until("the end", |output| output.contains("has ended"));
    let _other = StandIn::with_script("of-somebody-else.py", 2);
    let again = StandIn::with_script("given-by-pid.py", 2);
    let said = format!("  now watching pid {}: ", again.pid());
    let seen = lines.until("the same again", |output| output.contains(&said));
    assert_eq!(seen.matches("now watching").count(), 1, "{seen}");
}

#[test]
fn a_trainer_that_becomes_another_program_than_python_has_ended() {
    let job = StandIn::replaced(1);
    let lines = Running::start(&job.pid().to_string());
    let before = lines.until("lines", |output| output.lines().count() >= 3);
    assert!(!before.contains("has ended"), "{before}");
    fs::write(job.directory().join("exec"), "").expect("its directory is there");
    lines.until("the end", |output| output.contains("has ended"));
}

#[test]
fn a_job_that_ends_is_reported_at_once_as_far_as_it_was_seen() {
    let mut job = StandIn::start(2);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let recording = folder.path().join("run.rec");
    let line = format!(
        "{} --once --json --for 1h --record {}",
        job.pid(),
        recording.display()
    );
    let mut once = Running::start(&line);
    // pipetop prints nothing before its end, so the recording shows its progress.
    wait_for_readings(&recording, 3);
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
            tee: None,
            lacking: vec![],
        };
        let found = Candidate {
            ranks: vec![key],
            command: "python train.py".to_owned(),
            workers: 2,
            starter: None,
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
    assert!(error.message.contains("job ended"), "{error}");
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
fn a_report_that_cannot_be_written_is_an_error() {
    let job = StandIn::start(1);
    for how in ["--once", "--once --json", "--json", "", "--help"] {
        let mut command = Command::new(PIPETOP);
        let full = fs::File::options().write(true).open("/dev/full");
        let output = command
            .args([&job.pid().to_string(), "--for", "1s", "--interval", "200ms"])
            .args(how.split_whitespace())
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .stdout(full.expect("every Linux has it"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts")
            .to_end();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{how}: {errors}");
        assert!(
            errors.starts_with("error: cannot write to standard output: "),
            "{how}: {errors}"
        );
    }
}

#[test]
fn a_closed_standard_output_is_an_error_at_once() {
    for line in [
        "1 --once",
        "--json",
        "doctor",
        "--help",
        "--version",
        "run -- touch started",
    ] {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let output = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" >&-", PIPETOP])
            .args(line.split_whitespace())
            .current_dir(folder.path())
            .to_end();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "error: standard output is closed\n\
             hint: redirect it to a file; `>/dev/null` discards what is printed\n",
            "{line}"
        );
        assert!(!folder.path().join("started").exists());
    }
}

#[test]
fn changing_workers_leave_nothing_behind() {
    let job = StandIn::restarting(4);
    let running = Running::start(&format!("{} --json --nvml-lib {NO_NVML}", job.pid()));
    let lines = |count| running.until("lines", |output| output.lines().count() >= count);
    lines(5);
    let early = running.holds();
    let output = lines(25);
    // Each living worker is observed through open descriptors, and a thread may be about to end.
    let late = wait_with_state(
        "as little to be held as before",
        || Some(running.holds()).filter(|late| late[0] <= early[0] + 40 && late[1] <= early[1]),
        || format!("{early:?}, then {:?}", running.holds()),
    );
    note(&format!(
        "descriptors, threads, pages: {early:?}, then {late:?}"
    ));
    assert!(late[2] <= early[2] + 1024, "{early:?} {late:?}");
    let report: Value =
        serde_json::from_str(output.lines().nth(20).expect("counted")).expect("JSON");
    let loader = &report["job"]["ranks"][0];
    assert!(
        loader["workers"].as_array().expect("a list").len() <= 8,
        "{loader:#}"
    );
}

/// pipetop reads the pipes of a job all the time. If it kept an end open, no reader would see the end of its pipe, and
/// no writer would notice that its reader is gone.
#[test]
fn the_ends_of_a_jobs_pipes_are_seen_by_the_job_while_it_is_watched() {
    let mut reading = StandIn::reading(2);
    let closing = StandIn::closing(2);
    let watch = |job: &StandIn| {
        let running = Running::start(&format!("{} --json --nvml-lib {NO_NVML}", job.pid()));
        running.until("lines", |output| output.lines().count() >= 5);
        running
    };
    let watched = [watch(&reading), watch(&closing)];
    reading.release();
    std::fs::write(closing.directory().join("close"), "").expect("a file");
    let ended = |job: &StandIn, lines| {
        wait("its end", || {
            let text = std::fs::read_to_string(job.directory().join("ended")).ok()?;
            (text.matches('\n').count() >= lines).then_some(text)
        })
    };
    assert_eq!(ended(&reading, 1), "0\n");
    // SIGPIPE ended them.
    assert_eq!(ended(&closing, 2), "141\n141\n");
    drop(watched);
}

/// Returns the exit status and the output of `--once` for a job, under this limit of the shell's `ulimit`.
fn limited(limit: &str, job: &StandIn) -> (ExitStatus, String) {
    let line = format!(
        "ulimit {limit} && exec {PIPETOP} {} --once --for 1s",
        job.pid()
    );
    let output = Command::new("sh")
        .args(["-c", &line])
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::null())
        .to_end();
    let text = [output.stdout, output.stderr].concat();
    (output.status, String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn with_too_little_address_space_it_says_so_and_does_not_start() {
    let job = StandIn::start(2);
    let mut refused = 0;
    for mib in (16..).step_by(16) {
        let (status, text) = limited(&format!("-v {}", mib * 1024), &job);
        match status.code() {
            Some(0) => break,
            Some(1) => {
                assert!(
                    text.starts_with("error: not enough memory"),
                    "{mib}: {text}"
                );
                refused += 1;
            }
            // Too little for the system to load the program.
            Some(127) | None if refused == 0 => {}
            _ => panic!("{mib} MiB: {status}: {text}"),
        }
    }
    assert!(refused > 0);
}

#[test]
fn a_job_has_not_ended_because_descriptors_are_short() {
    let job = StandIn::start(2);
    for limit in [4, 6, 8, 16, 32] {
        let (_, text) = limited(&format!("-n {limit}"), &job);
        assert!(!text.contains("has ended"), "{limit}: {text}");
        // With few descriptors it reports that; with some more it sees the job.
        let seen = limit > 4 && text.contains("2 workers");
        assert!(
            seen || text.contains("too many open files"),
            "{limit}: {text}"
        );
        assert!(seen || limit < 32, "{limit}: {text}");
    }
}

/// Creates a separate driver for one test.
fn driver(script: &str) -> (TempDir, String) {
    let directory = TempDir::new().expect("a temporary directory");
    let fake = FakeNvml::install(directory.path(), script);
    let library = fake.library().display().to_string();
    (directory, library)
}

/// Returns the first report with this driver that satisfies `wanted`.
fn with_driver(job: &StandIn, library: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let line = format!("{} --json --nvml-lib {library}", job.pid());
    Running::start(&line).report(what, wanted)
}

/// Whether the report has this many GPUs, all of them read.
fn all_read(report: &Value, count: usize) -> bool {
    let gpus = report["gpus"].as_array();
    gpus.is_some_and(|gpus| {
        let read = |gpu: &Value| {
            let known = |key: &&str| !gpu[*key].is_null();
            !gpu["gap"].is_null()
                || ["busy_share", "util_percent", "processes"]
                    .iter()
                    .all(known)
        };
        gpus.len() == count && gpus.iter().all(read)
    })
}

#[test]
fn one_two_and_eight_gpus_are_reported() {
    let job = StandIn::start(1);
    for count in [1, 2, 8] {
        let pid = job.pid();
        let (_directory, library) = driver(&format!(
            "sys count={count}\ndev * util=40 used=3G procs={pid}:2G:35"
        ));
        let report = with_driver(&job, &library, "all GPUs", |report| all_read(report, count));
        let gpus = report["gpus"].as_array().expect("a list");
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
    let report = with_driver(&job, &library, "all GPUs", |report| all_read(report, 3));
    let gpus = report["gpus"].as_array().expect("a list");
    assert_eq!(gpus[0]["util_percent"], 40.0);
    for (gpu, reason) in [(&gpus[1], "lost"), (&gpus[2], "no permission")] {
        assert_eq!(gpu["gap"], reason);
        let known = gpu.as_object().expect("an object").iter();
        let known: Vec<_> = known.filter(|(_, value)| !value.is_null()).collect();
        let names: Vec<_> = known.iter().map(|(name, _)| name.as_str()).collect();
        // These are not the GPU's own figures: who uses it, what reading it costs, why figures are missing.
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
fn all_figures_of_a_gpu_are_reported() {
    let job = StandIn::start(1);
    let (_directory, library) = driver(
        "dev 0 minor=7 util=100 mem_util=20 total=80G used=40G reserved=1G power=500 limit=700 instant=510\n\
         dev 0 mem_temp=77 throttle=4 gpm=1 gpm.1=100 gpm.2=45 gpm.3=20 gpm.5=30 gpm.10=15 gpm.20=100 gpm.21=200\n\
         dev 0 nvlink_rx=1000000 nvlink_tx=2000000 ecc_corrected=3 remapped=1:0:0:0 xid=31\n\
         dev 0 procs=4194001:9G:50",
    );
    // These figures are read least often, or need two samples.
    let all = |report: &Value| {
        let gpu = &report["gpus"][0];
        ["busy_share", "sm_active_share", "pcie_link", "processes"]
            .iter()
            .all(|key| !gpu[key].is_null())
            && gpu["driver_ms_per_s"].is_number()
    };
    let report = with_driver(&job, &library, "every figure", all);
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
    // No process here has this PID: what the driver says is not enough to locate the process.
    assert_eq!(gpu["processes"][0]["pid"], 4_194_001);
    assert_ne!(gpu["processes"][0]["place"], "here");
    assert_eq!(gpu["swing"], Value::Null);
    let absent = gpu["absent"].as_array().expect("a list");
    let retired = absent
        .iter()
        .find(|absent| absent["figure"] == "retired_pages");
    assert_eq!(
        retired.expect("it has none")["reason"],
        "not supported by this GPU"
    );
}

#[test]
fn a_call_that_hangs_leaves_the_screen_live() {
    let job = StandIn::start(2);
    let directory = TempDir::new().expect("a temporary directory");
    let fake = FakeNvml::install(directory.path(), "sys count=2\ndev * util=61");
    let mut session = screen(&job, &fake.library().display().to_string());
    session.shows("both GPUs", |screen| screen.matches("61 %").count() >= 2);
    fake.script("sys count=2\ndev 0 util=23\ndev 1 util=61 hang=600");
    session.shows("the row that is old beside one that is new", |screen| {
        screen.contains("driver not responding") && screen.contains("23 %")
    });
    session.press("?");
    session.shows("help", |screen| screen.contains("sort"));
    session.press("q");
    assert!(session.ended().success());
    // Lets the thread with the hanging call end.
    fake.script("sys count=2");
}

#[test]
fn sixteen_gpus_fit_a_small_screen_and_a_lost_one_comes_back() {
    let job = StandIn::start(1);
    let directory = TempDir::new().expect("a temporary directory");
    let all = "sys count=16\ndev * util=61";
    let fake = FakeNvml::install(directory.path(), all);
    let mut session = screen(&job, &fake.library().display().to_string());
    session.shows("all of them", |screen| {
        let all = (0..16).all(|gpu| screen.contains(&format!(" {gpu:>2}  61 %")));
        screen.contains("16 GPUs") && all
    });
    fake.script(&format!("{all}\ndev 9 fail=lost"));
    session.shows("that one is lost", |screen| screen.contains("  9  n/a"));
    fake.script(all);
    session.shows("that it is back", |screen| screen.contains("  9  61 %"));
    session.press("q");
    assert!(session.ended().success());
}

/// Returns the reason and hint of a gap.
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
        (&mismatched.1, "NVIDIA driver/library version mismatch"),
        (&unloaded.1, "the NVIDIA driver is not loaded"),
        (&hanging.1, "opening the NVIDIA driver"),
        (&empty.1, "the NVIDIA driver lists no GPU"),
        (NO_NVML, "libpipetop-has-no-such.so.1 not found"),
        ("libm.so.6", "libm.so.6 is not NVML"),
    ] {
        let report = with_driver(&job, library, reason, |report| {
            gap(report, "nvml").is_some_and(|(found, _)| found == reason)
        });
        let (_, hint) = gap(&report, "nvml").expect("a gap");
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
    session.shows("the end", |screen| screen.contains("ended"));
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

/// Prints a line, shown with `--nocapture` and if the test fails.
#[expect(clippy::print_stdout, reason = "the test runner captures it")]
fn note(line: &str) {
    println!("{line}");
}

#[test]
fn a_log_that_is_not_written_whole_is_reported() {
    let folder = TempDir::new().expect("a temporary directory");
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 0; exec \"$0\" \"$@\"", PIPETOP])
        .args(["rules", "--log-file"])
        .arg(folder.path().join("log"))
        .to_end();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!output.stdout.is_empty());
    let errors = String::from_utf8_lossy(&output.stderr);
    let (first, second) = errors.split_once('\n').expect("two lines");
    assert!(
        first.starts_with("note: the log file is incomplete: File too large"),
        "{errors}"
    );
    assert!(second.starts_with("hint: "), "{errors}");
    assert_eq!(errors.lines().count(), 2, "{errors}");
}

#[test]
fn a_log_says_what_was_watched_and_what_could_not_be_read() {
    let job = StandIn::start(2);
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("pipetop.log");
    let log = path.display();
    let pid = job.pid();
    let output = run(&format!(
        "{pid} --once --for 1s --nvml-lib {NO_NVML} --log-file {log}"
    ));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines = fs::read_to_string(&path).expect("a log");
    for said in [
        "pipetop starts",
        "watching a job",
        "not found",
        "kind=\"WARMING UP\"",
    ] {
        assert_eq!(lines.matches(said).count(), 1, "{said}: {lines}");
    }
    assert!(lines.contains(&format!("pid={pid} ")), "{lines}");
    let refused = run(&format!("{pid} --once --log-file /dev/null"));
    assert_eq!(refused.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(
        errors.contains("cannot write to /dev/null") && errors.contains("\nhint: "),
        "{errors}"
    );
}

#[test]
fn when_the_screen_closes_the_verdict_and_the_recording_are_named() {
    let job = StandIn::start(2);
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("watched.rec");
    let pid = job.pid().to_string();
    let file = path.display().to_string();
    let mut session = Session::start(&["-p", &pid, "--nvml-lib", NO_NVML, "--record", &file]);
    session.shows("a verdict", |screen| {
        screen.contains("WARMING UP") && !screen.contains("the first samples")
    });
    session.press("q");
    assert!(session.ended().success());
    // The path may span several lines.
    let left = session.shows("the last lines", |screen| screen.contains("recording: "));
    assert!(left.contains("WARMING UP   collecting"), "{left}");
}

#[test]
fn a_recording_ended_by_a_signal_is_whole() {
    let job = StandIn::start(2);
    let folder = TempDir::new().expect("a temporary directory");
    for (name, signal) in [("int", Signal::INT), ("term", Signal::TERM)] {
        let path = folder.path().join(name);
        let line = format!("{} --record {}", job.pid(), path.display());
        let mut lines = Running::start(&line);
        lines.until("lines", |output| output.lines().count() >= 3);
        let pid = i32::try_from(lines.child.id()).expect("a PID");
        kill_process(rustix::process::Pid::from_raw(pid).expect("not 0"), signal)
            .expect("our child");
        let status = wait("its end", || lines.child.try_wait().expect("our child"));
        assert_eq!(status.signal(), Some(signal.as_raw()), "{name}");
        let mut replay = Command::new(PIPETOP);
        let replayed = replay.args(["replay", "--once"]).arg(&path).to_end();
        assert_eq!(replayed.status.code(), Some(0), "{replayed:?}");
        // The file is not cut, or the replay would say so.
        assert_eq!(String::from_utf8_lossy(&replayed.stderr), "", "{name}");
    }
}
