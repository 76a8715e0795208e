//! The built-in job through the real program: what it leaves behind, how it fails, how fast it is, and whether what
//! stands on it (sweep, headspace, simulation, the CUDA device) gives the figures that are known beforehand.

#![expect(clippy::panic, reason = "a test fails by panicking")]

#[path = "support/measured.rs"]
mod measured;
#[path = "support/patience.rs"]
mod patience;
#[expect(dead_code, reason = "other tests use all of it")]
#[path = "support/session.rs"]
mod session;
#[path = "support/traces.rs"]
mod traces;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use measured::measured;
use patience::{pause, wait};
use pipetop::experiment::simulate::{self, Order};
use pipetop::probe::{self, Step};
use pipetop::source::probe::Listener;
use pipetop::units::Pid;
use pipetop::workload::presets::{PRESETS, preset};
use pipetop::workload::settings::{DeviceKind, Load, Settings, StepTime};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use session::Session;
use traces::{Member, Place, files, sockets_of};

/// Reads real files, and needs hardly any CPU.
const FILES: &str = "demo --workers 2 --batch-size 4 --step-ms 30 --dataset-size 2MiB --device sim";
/// The workers of it.
const WORKERS: usize = 2;

/// Held by what needs the CPUs, so that no two such measure each other.
fn cpus() -> MutexGuard<'static, ()> {
    static CPUS: Mutex<()> = Mutex::new(());
    CPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The one document of a run that ended well.
fn document(output: &Output) -> Value {
    let errors = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn count(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

/// The error and the hint that are all that was said, but for the lines about a data set that is made.
fn refused(errors: &str) -> (String, String) {
    let lines = errors.lines();
    let said: Vec<&str> = lines.filter(|line| !line.starts_with("ma")).collect();
    let [error, hint] = said[..] else {
        panic!("not one error and one hint: {errors}");
    };
    let error = error.strip_prefix("error: ").expect(errors);
    let hint = hint.strip_prefix("hint: ").expect(errors);
    assert!(!error.is_empty() && !hint.is_empty(), "{errors}");
    (error.to_owned(), hint.to_owned())
}

/// A command that runs without a terminal, with what it writes.
struct Plain {
    child: Child,
    folder: PathBuf,
}

impl Plain {
    fn start(place: &Place, line: &str) -> Self {
        let folder = place.path().to_owned();
        let file = |name| File::create(folder.join(name)).expect("a file");
        let child = place
            .command(line)
            .stdout(file("out"))
            .stderr(file("errors"))
            .spawn()
            .expect("it starts");
        Self { child, folder }
    }

    fn out(&self) -> String {
        fs::read_to_string(self.folder.join("out")).expect("UTF-8")
    }

    fn errors(&self) -> String {
        fs::read_to_string(self.folder.join("errors")).expect("UTF-8")
    }

    /// Waits until the job runs and pipetop has seen it.
    fn seen(&self, place: &Place, workers: usize) -> Vec<Member> {
        let members = place.running(workers);
        wait("a line", || self.out().contains("batches/s").then_some(()));
        assert_eq!(sockets_of(self.child.id()).len(), 1, "it listens");
        members
    }

    fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
    }

    /// The exit code. `None` where a signal ended it.
    fn ended(&mut self) -> Option<i32> {
        wait("the end", || self.child.try_wait().expect("ours")).code()
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn screen(place: &Place) -> (Session, u32, Vec<Member>) {
    let environment = place.environment();
    let environment: Vec<(&str, &OsStr)> = environment
        .iter()
        .map(|(name, path)| (*name, path.as_os_str()))
        .collect();
    let arguments = place.arguments(&format!("{FILES} --interval 200ms"));
    let session = Session::start_with(&arguments, &environment);
    let members = place.running(WORKERS);
    session.shows("the job", |screen| screen.contains("WARMING UP"));
    let pid = session.pid().as_raw_nonzero().get().unsigned_abs();
    assert_eq!(sockets_of(pid).len(), 1, "it listens");
    (session, pid, members)
}

// What is left behind.

#[test]
fn a_key_or_sigterm_on_the_screen_leaves_nothing() {
    for end in [None, Some(Signal::TERM)] {
        let place = Place::new();
        let (mut session, pid, members) = screen(&place);
        match end {
            None => session.press("q"),
            Some(signal) => session.signal(signal),
        }
        assert!(session.ended().success(), "{end:?}");
        place.assert_nothing_left(&members, pid);
    }
}

#[test]
fn a_killed_screen_leaves_nothing() {
    let place = Place::new();
    let (mut session, pid, members) = screen(&place);
    session.signal(Signal::KILL);
    assert!(!session.ended().success());
    place.assert_nothing_left(&members, pid);
}

#[test]
fn a_signal_without_a_screen_leaves_nothing() {
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let place = Place::new();
        let mut plain = Plain::start(&place, &format!("{FILES} --interval 200ms"));
        let members = plain.seen(&place, WORKERS);
        plain.signal(signal);
        assert_eq!(plain.ended(), None, "{signal:?} ends it");
        place.assert_nothing_left(&members, plain.child.id());
    }
}

#[test]
fn a_report_leaves_nothing_but_the_data_set() {
    let place = Place::new();
    let mut plain = Plain::start(&place, &format!("{FILES} --once --json --for 1s"));
    let members = place.running(WORKERS);
    assert_eq!(plain.ended(), Some(0), "{}", plain.errors());
    place.assert_nothing_left(&members, plain.child.id());
    let report: Value = serde_json::from_str(&plain.out()).expect("JSON");
    assert_eq!(report["window"]["access"], "T3");
    let images = files(&place.cache());
    assert!(images.len() > 40, "the data set stays: {images:?}");
    // As often as it is wanted, and gone when it is not.
    let remove = || {
        let mut command = place.command("demo --remove-dataset");
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{}", lossy(&output.stderr));
        lossy(&output.stdout)
    };
    assert!(remove().starts_with("removed 2."), "about 2 MiB");
    assert_eq!(files(&place.cache()), Vec::<PathBuf>::new());
    assert_eq!(remove(), "removed 0 B of image files\n");
}

#[test]
fn a_full_disk_is_one_error_and_nothing_is_left() {
    // One that is too small, as free space tells before; and one that takes no more files, as only trying tells.
    for (options, size, said) in [
        ("size=1m", "4MiB", "needed"),
        ("size=64m,nr_inodes=20", "2MiB", "no space"),
    ] {
        let place = Place::new();
        let left = place.path().join("left");
        let line = format!("demo --dataset-size {size} --once --for 1s");
        let mount = format!(
            "mount -t tmpfs -o {options} none \"$0\" || exit 77\n\
             left=$1; shift; \"$@\"; code=$?; find \"$0\" ! -type d >\"$left\"; exit $code"
        );
        let ran = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", &mount])
            .arg(place.cache())
            .arg(&left)
            .arg(env!("CARGO_BIN_EXE_pipetop"))
            .args(place.arguments(&line))
            .envs(place.environment())
            .output();
        let ran = match ran {
            Ok(ran) if left.exists() => ran,
            Ok(ran) => {
                return skip(&format!(
                    "no file system can be mounted: {}",
                    lossy(&ran.stderr)
                ));
            }
            Err(error) => return skip(&format!("no `unshare` here: {error}")),
        };
        let errors = lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{errors}");
        assert_eq!(lossy(&ran.stdout), "");
        let (error, hint) = refused(&errors);
        assert!(
            error.contains(said) && !error.contains(" 0 B needed"),
            "{error}"
        );
        assert!(hint.contains("--dataset-size"), "{hint}");
        assert_eq!(fs::read_to_string(&left).expect("a list"), "");
        place.assert_nothing_left(&[], 0);
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

// How it fails, and how it ends.

#[test]
fn a_killed_trainer_ends_the_lines_with_the_reason() {
    for how in ["", "--once --json --for 60s"] {
        let place = Place::new();
        let mut plain = Plain::start(&place, &format!("{FILES} --interval 200ms {how}"));
        let members = place.running(WORKERS);
        if how.is_empty() {
            plain.seen(&place, WORKERS);
        } else {
            pause(Duration::from_secs(1));
        }
        members
            .iter()
            .filter(|one| one.is_trainer)
            .for_each(Member::kill);
        assert_eq!(plain.ended(), Some(1));
        let (error, hint) = refused(&plain.errors());
        assert!(
            error.contains("trainer") && error.contains("SIGKILL"),
            "{error}"
        );
        assert!(hint.contains("dmesg"), "{hint}");
        // What was seen of it until then is reported all the same.
        let out = plain.out();
        assert!(out.contains("the job has ended"), "{out}");
        place.assert_nothing_left(&members, plain.child.id());
    }
}

#[test]
fn a_killed_trainer_stays_on_the_screen_until_a_key_and_then_the_reason_is_told() {
    let place = Place::new();
    let (mut session, pid, members) = screen(&place);
    members
        .iter()
        .filter(|one| one.is_trainer)
        .for_each(Member::kill);
    session.shows("the end", |screen| screen.contains("ended"));
    // Longer than the pause between two searches: no other job takes its place.
    pause(Duration::from_secs(3));
    assert!(session.screen().contains("ended"), "{}", session.screen());
    session.press("q");
    assert_eq!(session.ended().exit_code(), 1);
    session.shows("the reason", |screen| {
        screen.contains("error: the trainer has ended unexpectedly") && screen.contains("hint: ")
    });
    place.assert_nothing_left(&members, pid);
}

#[test]
fn a_killed_worker_ends_the_job_with_its_number_also_where_others_go_on() {
    for order in ["--in-order", "--any-order"] {
        let place = Place::new();
        let mut plain = Plain::start(&place, &format!("{FILES} --interval 200ms {order}"));
        let members = plain.seen(&place, WORKERS);
        let worker = members
            .iter()
            .rfind(|one| !one.is_trainer)
            .expect("workers");
        worker.kill();
        assert_eq!(plain.ended(), Some(1));
        let (error, _) = refused(&plain.errors());
        assert!(
            error.starts_with("loader worker ") && error.contains("SIGKILL"),
            "{error}"
        );
        place.assert_nothing_left(&members, plain.child.id());
    }
}

#[test]
fn a_data_set_that_vanishes_ends_the_job_with_the_file_that_is_gone() {
    let place = Place::new();
    let mut plain = Plain::start(&place, &format!("{FILES} --interval 200ms"));
    let members = plain.seen(&place, WORKERS);
    fs::remove_dir_all(place.cache().join("pipetop")).expect("it is there");
    assert_eq!(plain.ended(), Some(1));
    let (error, hint) = refused(&plain.errors());
    assert!(
        error.starts_with("cannot read ") && error.contains(".jpg"),
        "{error}"
    );
    assert!(hint.contains("made again"), "{hint}");
    place.assert_nothing_left(&members, plain.child.id());
    // An experiment that it happens to is no measurement.
    let mut sweep = Plain::start(&place, "sweep --workers 1 --for 20s --dataset-size 2MiB");
    let members = place.running(1);
    pause(Duration::from_secs(1));
    fs::remove_dir_all(place.cache().join("pipetop")).expect("it is there");
    assert_eq!(sweep.ended(), Some(1));
    let (error, _) = refused(&sweep.errors());
    assert!(error.starts_with("cannot read "), "{error}");
    assert_eq!(sweep.out(), "");
    place.assert_nothing_left(&members, sweep.child.id());
}

#[test]
fn a_job_with_a_set_end_ends_well() {
    let quick = "demo --load-ms 5 --step-ms 10 --workers 2 --device sim --interval 200ms";
    for end in ["--steps 100", "--duration 1s"] {
        let place = Place::new();
        let mut plain = Plain::start(&place, &format!("{quick} {end}"));
        let members = plain.seen(&place, 2);
        assert_eq!(plain.ended(), Some(0), "{}", plain.errors());
        assert_eq!(plain.errors(), "");
        let out = plain.out();
        assert!(
            out.lines()
                .last()
                .is_some_and(|line| line.contains("has ended")),
            "{out}"
        );
        place.assert_nothing_left(&members, plain.child.id());
        let output = place
            .command(&format!("{quick} {end} --once --json --for 60s"))
            .output();
        let report = document(&output.expect("it starts"));
        let batches = number(&report["window"]["batches"]);
        assert!(
            (50.0..=100.0).contains(&batches),
            "{batches} batches of {end}"
        );
        assert!(
            report["gaps"].to_string().contains("has ended"),
            "{report:#}"
        );
    }
}

// How fast it is.

#[test]
fn its_own_overhead_is_no_bottleneck() {
    let _cpus = cpus();
    let place = Place::new();
    let line =
        "demo --load-ms 0 --step-ms 0 --batch-size 64 --image-size 32 --workers 2 --device sim";
    // What else runs on the machine can only slow it.
    let measure = || {
        let output = place
            .command(&format!("{line} --once --for 4s --json"))
            .output();
        let report = document(&output.expect("it starts"));
        let rate = number(&report["job"]["ranks"][0]["step"]["batches_per_s"]);
        note(&format!("{rate:.0} batches/s"));
        rate
    };
    let rate = measured(measure, |rate| *rate >= 2000.0);
    assert!(rate >= 2000.0, "{rate:.0} batches/s");
    let mut plain = Plain::start(&place, &format!("{line} --steps 20000"));
    assert_eq!(plain.ended(), Some(0), "{}", plain.errors());
}

/// Shown by `--nocapture`, and where the test fails.
#[expect(clippy::print_stdout, reason = "the test runner captures it")]
fn note(line: &str) {
    println!("{line}");
}

// What stands on it.

/// The steps that a job reports in so long.
fn steps(settings: &Settings) -> Vec<Step> {
    let listener = Listener::bind().expect("a socket");
    // Ends with this thread, should that fail.
    let mut trainer = Command::new(env!("CARGO_BIN_EXE_pipetop"))
        .arg("builtin-trainer")
        .arg(format!("--parent={}", std::process::id()))
        .args(settings.flags())
        .env(probe::VARIABLE, listener.address())
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let pid = Pid(i32::try_from(trainer.id()).expect("a number"));
    assert!(trainer.wait().expect("ours").success());
    let report = listener.take(pid).expect("it reports");
    assert_eq!((report.dropped, report.totals.lost), (0, 0));
    report.steps.into()
}

/// Steps that were done in `time` since the first batch.
fn done_in(steps: &[Step], time: Duration) -> usize {
    let first = steps.first().expect("steps").wait_to;
    let end = first + u64::try_from(time.as_nanos()).expect("short");
    assert!(
        steps.last().is_some_and(|step| step.step_to >= end),
        "too short a run"
    );
    steps.iter().filter(|step| step.step_to < end).count()
}

fn simulated(live: &Settings, time: Duration, seed: u64) -> u64 {
    let (Load::Time(load), StepTime::Fixed(step)) = (live.load, live.step) else {
        panic!("times are set");
    };
    let mut settings = simulate::Settings {
        workers: live.workers,
        prefetch_factor: live.prefetch_factor,
        load,
        load_jitter: live.load_jitter,
        step,
        order: if live.in_order {
            Order::InOrder
        } else {
            Order::AnyOrder
        },
        ..simulate::Settings::default()
    };
    let first = simulate::run(&settings, seed).first_batch.expect("a batch");
    settings.span = first + time;
    simulate::run(&settings, seed).batches
}

#[test]
fn the_three_known_pipelines_do_as_many_steps_as_simulated() {
    // Between two bursts of the starved one, so that no luck decides whether the last is counted.
    const TIME: Duration = Duration::from_millis(9400);
    const LIVE: u64 = 3;
    const SIMULATED: u64 = 30;
    let names = ["blog-starved", "blog-matched", "blog-free"];
    std::thread::scope(|scope| {
        let runs = names.map(|name| {
            let preset = preset(name).expect("a preset");
            let seeds = 1..=LIVE;
            let runs = seeds.map(|seed| Settings {
                duration: Some(Duration::from_millis(12_500)),
                device: DeviceKind::Sim,
                seed,
                ..preset.settings()
            });
            let runs = runs.map(|settings| scope.spawn(move || steps(&settings)));
            (name, preset.settings(), runs.collect::<Vec<_>>())
        });
        for (name, settings, runs) in runs {
            let live = runs
                .into_iter()
                .map(|run| done_in(&run.join().expect("it runs"), TIME));
            let live = live.sum::<usize>() as f64 / LIVE as f64;
            let seeds = 0..SIMULATED;
            let simulated = seeds.map(|seed| simulated(&settings, TIME, seed));
            let simulated = simulated.sum::<u64>() as f64 / SIMULATED as f64;
            let off = live / simulated - 1.0;
            note(&format!(
                "{name}: {live:.1} live, {simulated:.1} simulated, {:+.1} %",
                100.0 * off
            ));
            assert!(
                off.abs() <= 0.03,
                "{name}: {live} live, {simulated} simulated"
            );
        }
    });
}

#[test]
fn a_known_headspace_is_measured() {
    let place = Place::new();
    // 46 ms a step, of which 6 are waits.
    let line = "headspace --load-ms 184 --step-ms 40 --workers 4 --in-order --device sim \
                --after 30 --steps 60 --rounds 2 --run-steps 204000 --json";
    let measure = || {
        let output = place.command(line).output().expect("it starts");
        let found = document(&output);
        note(&format!("{found}"));
        found
    };
    // Anew where others take the CPUs, so that even a step of 40 ms without loading takes longer.
    let kept = |found: &Value| number(&found["step_ms_free"]) < 41.2;
    let found = measured(measure, kept);
    let share = number(&found["gain_share"]);
    assert!((share - 0.13).abs() <= 0.02, "{share}");
    let (low, high) = (number(&found["interval"][0]), number(&found["interval"][1]));
    assert!(
        low <= share && share <= high && high - low < 0.1,
        "{low} to {high} for {share}"
    );
    let [now, free] = ["step_ms_now", "step_ms_free"].map(|key| number(&found[key]));
    assert!(
        (now - 46.0).abs() < 1.5 && (free - 40.0).abs() < 1.5,
        "{now} {free}"
    );
    let gain = number(&found["gain_ms"]);
    assert!((gain - (now - free)).abs() < 0.001, "{gain}");
    assert!((share - gain / now).abs() < 0.001, "{share}");
    let hours = gain / 1000.0 * 204_000.0 / 3600.0;
    assert!(
        (number(&found["hours_saved"]) - hours).abs() < 0.01,
        "{hours}"
    );
}

#[test]
fn without_headspace_it_sends_to_the_model() {
    let _cpus = cpus();
    let place = Place::new();
    let line = "headspace --load-ms 20 --step-ms 10 --workers 4 --device sim \
                --after 10 --steps 20 --rounds 1 --run-steps 1000";
    let measure = || {
        let output = place.command(line).output().expect("it starts");
        assert!(output.status.success(), "{}", lossy(&output.stderr));
        lossy(&output.stdout)
    };
    // Anew where others take the CPUs for some of its 20 steps.
    let none = |text: &String| text.contains("work on the model");
    let text = measured(measure, none);
    assert!(none(&text), "{text}");
    assert!(
        text.contains("over 1000 steps") && text.contains("CPU"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn a_sweep_of_decoding_workers_finds_the_cpus() {
    let _cpus = cpus();
    let place = Place::new();
    let line =
        "sweep --preset decode --dataset-size 2MiB --device sim --workers 1,2,4 --for 2s --json";
    let output = place.command(line).output().expect("it starts");
    let found = document(&output);
    let cpus = count(&found["cpus_allowed"]);
    let rows = found["rows"].as_array().expect("rows");
    let counts: Vec<u64> = rows.iter().map(|row| count(&row["workers"])).collect();
    assert_eq!(counts, [1, 2, 4]);
    let first = number(&rows[0]["batches_per_s"]);
    for row in rows {
        let rate = number(&row["batches_per_s"]);
        note(&format!("{row}"));
        assert!((number(&row["speedup"]) - rate / first).abs() < 0.01);
        assert_eq!(row["above_cpus_allowed"], count(&row["workers"]) > cpus);
        // The steady state is one thing, and the start another.
        assert!(number(&row["first_batch_ms"]) > 1.0);
        let wait = number(&row["wait_share"]);
        let period = number(&row["step_ms"]) / (1.0 - wait);
        assert!((period * rate / 1000.0 - 1.0).abs() < 0.05, "{row}");
        assert!(number(&row["worker_cpu_cores"]) <= number(&row["workers"]) + 0.1);
    }
    // More than the CPUs can only help where somebody else has taken them.
    let knee = count(&found["knee"]);
    let row = |workers| rows.iter().find(|row| count(&row["workers"]) == workers);
    let cores = |workers| row(workers).map(|row| number(&row["worker_cpu_cores"]));
    let crowded = cores(knee) > cores(cpus).map(|cores| 1.03 * cores);
    assert!(knee <= cpus || crowded, "{found:#}");
    let advised = count(&found["advised"]);
    assert!(advised <= cpus && advised <= knee, "{found:#}");
    if cores(2) > Some(1.5) {
        assert!(number(&rows[1]["speedup"]) > 1.2, "{found:#}");
    }
    let memory = found["memory"].as_array().expect("rows");
    let pinned: Vec<&Value> = memory.iter().map(|row| &row["pin_memory"]).collect();
    assert_eq!(pinned, [false, true]);
    assert!(memory.iter().all(|row| count(&row["workers"]) == knee));
}

#[test]
fn a_sweep_reads_well_and_can_go_into_a_spreadsheet() {
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    let above = cpus + 1;
    let line =
        format!("sweep --load-ms 12 --step-ms 4 --device sim --workers 1,2,{above} --for 1s");
    let [text, csv] = std::thread::scope(|scope| {
        let runs = ["", " --csv"].map(|form| {
            let line = format!("{line}{form}");
            scope.spawn(move || {
                let place = Place::new();
                let output = place.command(&line).output().expect("it starts");
                assert!(output.status.success(), "{}", lossy(&output.stderr));
                lossy(&output.stdout)
            })
        });
        runs.map(|run| run.join().expect("it runs"))
    });
    note(&text);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let lines: Vec<&str> = text.lines().collect();
    let column = |line: &str, end: &str| line.find(end).map(|at| at + end.len());
    assert_eq!(
        column(lines[0], "WORKERS"),
        column(lines[1], " 1"),
        "{text}"
    );
    assert_eq!(column(lines[0], "FIRST"), column(lines[1], " ms"), "{text}");
    assert!(
        lines[1].contains('▇') && lines[1].ends_with("1.00x"),
        "{text}"
    );
    assert!(lines[3].ends_with('!'), "{text}");
    assert!(
        text.contains("knee") && text.contains(&format!("the {cpus} CPUs")),
        "{text}"
    );
    assert!(
        text.contains("pageable") && text.contains("pinned"),
        "{text}"
    );
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert_eq!(rows[0][..2], ["workers", "first_batch_ms"]);
    for row in &rows[1..] {
        assert_eq!(row.len(), rows[0].len(), "{csv}");
        let parsed = row
            .iter()
            .all(|cell| cell.is_empty() || cell.parse::<f64>().is_ok());
        assert!(parsed && !row[2].is_empty(), "{csv}");
    }
    let counts: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(counts, ["1", "2", &above.to_string()]);
}

// On a scripted GPU.

/// The report of a job that shall compute on a driver that does as the script says; without one, there is no driver.
fn on_driver(script: Option<&str>, line: &str) -> Value {
    let place = Place::new();
    let driver = place.path().join("driver");
    fs::create_dir(&driver).expect("ours");
    fake_cuda::install(&driver);
    if script.is_none() {
        // Stands before the machine's driver, should it have one.
        fs::write(driver.join("libcuda.so.1"), "no library").expect("ours");
    }
    let mut command = place.command(&format!("demo --device cuda --once --json {line}"));
    command
        .env("LD_LIBRARY_PATH", &driver)
        .env("FAKE_CUDA_FAIL", script.unwrap_or_default());
    document(&command.output().expect("it starts"))
}

#[test]
fn on_a_gpu_that_works_the_report_is_exact_and_names_it() {
    let report = on_driver(Some(""), "--preset compute --for 13s");
    let device = &report["job"]["ranks"][0]["device"];
    assert_eq!(
        (&device["name"], &device["notice"]),
        (&"Fake GPU".into(), &Value::Null)
    );
    assert_eq!(report["window"]["access"], "T3");
    assert_eq!(report["verdict"]["kind"], "compute-bound", "{report:#}");
    assert!(number(&device["busy_share"]) > 0.9, "{device}");
}

#[test]
fn on_a_gpu_that_fails_the_job_goes_on_simulated_and_says_why() {
    let cases = [
        (Some("kernel=719@30"), "unspecified launch failure"),
        (Some("cuMemcpyHtoDAsync_v2=2@30"), "out of memory"),
        (Some("cuInit=34"), "stub"),
        (Some("cuInit=100"), "finds no GPU"),
        (None, "no CUDA driver here"),
    ];
    std::thread::scope(|scope| {
        let line = "--workers 2 --load-ms 20 --step-ms 10 --batch-size 4 --image-size 32 --for 3s";
        let runs = cases.map(|(script, why)| (why, scope.spawn(move || on_driver(script, line))));
        for (why, run) in runs {
            let report = run.join().expect("it runs");
            let rank = &report["job"]["ranks"][0];
            let notice = rank["device"]["notice"].as_str().unwrap_or_default();
            assert!(
                notice.contains(why) && notice.contains("simulated"),
                "{why}: {notice}"
            );
            assert_eq!(rank["device"]["name"], "simulated", "{why}");
            assert_eq!(report["window"]["access"], "T3", "{why}");
            let rate = number(&rank["step"]["batches_per_s"]);
            assert!(rate > 50.0, "{why}: {rate} batches/s");
        }
    });
}

// What can be asked for.

#[test]
fn each_preset_is_described() {
    let place = Place::new();
    let output = place.command("demo --list").output().expect("it starts");
    let list = lossy(&output.stdout);
    assert!(
        list.lines().all(|line| line.chars().count() <= 80),
        "{list}"
    );
    let words: Vec<&str> = list.split_whitespace().collect();
    let words = words.join(" ");
    for preset in PRESETS {
        let described = format!("{} {} {}", preset.name, preset.expected, preset.shows);
        assert!(words.contains(&described), "{described}: {list}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    for (line, said) in [
        ("demo --workers 0", "1..=256"),
        ("demo --load-jitter 0.5", "--load-jitter"),
        ("demo --calibrate --list", "--list"),
        ("demo --list --remove-dataset", "--remove-dataset"),
        ("demo --preset none", "--preset"),
        ("demo --load-ms 5 --decodes 2", "--decodes"),
        ("demo --dataset-size 0", "--dataset-size"),
        ("demo --device tpu", "--device"),
        ("demo --once --for 1s --interval 2s", "--interval"),
        ("sweep --workers 2,0", "--workers"),
        ("sweep --json --csv", "--csv"),
        ("sweep --load-jitter 0.5", "--load-jitter"),
        ("headspace --steps 3", "--steps"),
    ] {
        let output = place.command(line).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert_eq!(lossy(&output.stdout), "", "{line}");
        let (error, _) = refused(&lossy(&output.stderr));
        assert!(error.contains(said), "{line}: {error}");
    }
    place.assert_nothing_left(&[], 0);
}
