//! The built-in job through the real program: what it leaves behind, how it fails, how it ends, and what it refuses.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pipetop::testing::lab::workload::presets::PRESETS;
use rustix::process::Signal;
use serde_json::Value;
use support::readings::{newest, wait_for_steps};
use support::session::Session;
use support::traces::{Member, Place, files, sockets_of};
use support::waiting::{ToEnd, pause, wait};

use crate::plain::{Plain, document, lossy, number, refused};

/// A job that reads a few small real files, and needs hardly any CPU.
const FILES: &str = "demo --workers 2 --batch-size 2 --image-size 32 --step-ms 100 \
                     --dataset-size 256KiB --device sim";
/// Its number of workers.
const WORKERS: usize = 2;

fn screen(place: &Place) -> (Session, u32, Vec<Member>) {
    let environment = place.environment();
    let environment: Vec<(&str, &OsStr)> = environment
        .iter()
        .map(|(name, path)| (*name, path.as_os_str()))
        .collect();
    let recording = recording(place);
    let line = format!("{FILES} --interval 200ms --record {}", recording.display());
    let session = Session::start_with(&place.arguments(&line), &environment);
    let members = place.running(WORKERS);
    session.shows("the job", |screen| screen.contains("WARMING UP"));
    let pid = session.pid().as_raw_nonzero().get().unsigned_abs();
    assert_eq!(sockets_of(pid).len(), 1, "it listens");
    (session, pid, members)
}

/// Returns the path for a recording of a run in this place.
fn recording(place: &Place) -> PathBuf {
    place.path().join("run.rec")
}

fn kill_trainer(members: &[Member]) {
    members
        .iter()
        .filter(|one| one.is_trainer)
        .for_each(Member::kill);
}

// Tests of what the job leaves behind.

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
fn a_tour_goes_on_with_any_key_and_ends_with_the_command_for_the_own_job() {
    let place = Place::new();
    let environment = place.environment();
    let environment: Vec<(&str, &OsStr)> = environment
        .iter()
        .map(|(name, path)| (*name, path.as_os_str()))
        .collect();
    let arguments = place.arguments("demo --tour --dataset-size 256KiB");
    let mut session = Session::start_with(&arguments, &environment);
    let first = format!(" 1/{}: ", PRESETS.len());
    let any = format!("/{}: ", PRESETS.len());
    session.shows("the first", |screen| screen.contains(&first));
    session.press("x");
    session.shows("another", |screen| {
        screen.contains(&any) && !screen.contains(&first)
    });
    session.press("q");
    assert!(session.ended().success());
    session.until("the own job's command", |text| {
        text.contains("pipetop run -- python train.py")
    });
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
        place.assert_nothing_left(&members, plain.pid());
    }
}

#[test]
fn a_report_leaves_nothing_but_the_data_set() {
    let place = Place::new();
    let mut plain = Plain::start(&place, &format!("{FILES} --once --json --for 1s"));
    let members = place.running(WORKERS);
    assert_eq!(plain.ended(), Some(0), "{}", plain.errors());
    place.assert_nothing_left(&members, plain.pid());
    let report: Value = serde_json::from_str(&plain.out()).expect("JSON");
    assert_eq!(report["window"]["access"], "T3");
    // A sample may come a tenth of an interval early.
    let seconds = report["window"]["seconds"].as_f64();
    assert!(seconds.is_some_and(|it| it >= 0.9), "{seconds:?}");
    let images = files(&place.cache());
    assert!(images.len() > 6, "the data set stays: {images:?}");
    // Removing works any number of times.
    let remove = || {
        let mut command = place.command("demo --remove-dataset");
        let output = command.to_end();
        assert!(output.status.success(), "{}", lossy(&output.stderr));
        lossy(&output.stdout)
    };
    let removed = remove();
    assert!(
        removed.starts_with("removed 2") && removed.contains("KiB"),
        "{removed}"
    );
    assert_eq!(files(&place.cache()), Vec::<PathBuf>::new());
    assert_eq!(remove(), "removed 0 B of image files\n");
}

// Tests of how the job fails and how it ends.

#[test]
fn a_killed_trainer_ends_the_lines_with_the_reason() {
    for how in ["", "--once --json --for 1h"] {
        let place = Place::new();
        let recording = recording(&place);
        let line = format!(
            "{FILES} --interval 200ms --record {} {how}",
            recording.display()
        );
        let mut plain = Plain::start(&place, &line);
        let members = place.running(WORKERS);
        if how.is_empty() {
            plain.seen(&place, WORKERS);
        } else {
            // pipetop prints nothing before its end, so the recording shows its progress.
            wait_for_steps(&recording);
        }
        kill_trainer(&members);
        assert_eq!(plain.ended(), Some(1));
        let (error, hint) = refused(&plain.errors());
        assert!(
            error.contains("trainer") && error.contains("SIGKILL"),
            "{error}"
        );
        assert!(hint.contains("dmesg"), "{hint}");
        // The training until then is still reported.
        let out = plain.out();
        assert!(out.contains("the job has ended"), "{out}");
        place.assert_nothing_left(&members, plain.pid());
    }
}

#[test]
fn a_killed_trainer_stays_on_the_screen_until_a_key_and_then_pipetop_says_why() {
    let place = Place::new();
    let (mut session, pid, members) = screen(&place);
    kill_trainer(&members);
    session.shows("the end", |screen| screen.contains("ended"));
    // Longer than the pause between two searches for a job: no other job replaces this one.
    let later = newest(&recording(&place)) + Duration::from_secs(3);
    wait("later readings", || {
        (newest(&recording(&place)) >= later).then_some(())
    });
    assert!(session.screen().contains("ended"), "{}", session.screen());
    session.press("q");
    assert_eq!(session.ended().exit_code(), 1);
    session.shows("the reason", |screen| {
        screen.contains("error: the trainer ended unexpectedly") && screen.contains("hint: ")
    });
    place.assert_nothing_left(&members, pid);
}

#[test]
fn a_killed_worker_ends_the_job_and_is_named() {
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
        place.assert_nothing_left(&members, plain.pid());
    }
}

/// Returns how many bytes a process has read. `None` if it is gone.
fn read_by(pid: i32) -> Option<u64> {
    let io = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("io")).ok()?;
    io.lines()
        .find_map(|line| line.strip_prefix("rchar: ")?.parse().ok())
}

#[test]
fn a_deleted_dataset_ends_the_job_and_names_the_missing_file() {
    let place = Place::new();
    let mut plain = Plain::start(&place, &format!("{FILES} --interval 200ms"));
    let members = plain.seen(&place, WORKERS);
    let trainer = members.iter().find(|one| one.is_trainer);
    let trainer = trainer.expect("a trainer");
    // As on a busy machine, the supervisor reports the end late.
    let supervisor = trainer.parent().expect("it runs");
    supervisor.signal(Signal::STOP);
    fs::remove_dir_all(place.cache().join("pipetop")).expect("it is there");
    wait("the trainer's end", || trainer.has_exited().then_some(()));
    pause(Duration::from_millis(500));
    supervisor.signal(Signal::CONT);
    assert_eq!(plain.ended(), Some(1));
    let (error, hint) = refused(&plain.errors());
    assert!(
        error.starts_with("cannot read ") && error.contains(".jpg"),
        "{error}"
    );
    assert!(hint.contains("creates missing files"), "{hint}");
    place.assert_nothing_left(&members, plain.pid());
    // An experiment gives no result if its data is removed.
    let line = "sweep --workers 1 --for 1h --batch-size 2 --image-size 32 --step-ms 100 \
                --dataset-size 256KiB --device sim";
    let mut sweep = Plain::start(&place, line);
    let members = place.running(1);
    let worker = members.iter().find(|one| !one.is_trainer);
    let worker = worker.expect("one worker").pid;
    // An image takes about 40 KB.
    wait("images that were read", || {
        (read_by(worker)? > 100_000).then_some(())
    });
    fs::remove_dir_all(place.cache().join("pipetop")).expect("it is there");
    assert_eq!(sweep.ended(), Some(1));
    let (error, _) = refused(&sweep.errors());
    assert!(error.starts_with("cannot read "), "{error}");
    assert_eq!(sweep.out(), "");
    place.assert_nothing_left(&members, sweep.pid());
}

#[test]
fn a_job_with_a_set_end_ends_well() {
    let quick = "demo --load-ms 5 --step-ms 10 --workers 2 --device sim --interval 200ms";
    // In parallel, as they only sleep.
    std::thread::scope(|scope| {
        for end in ["--steps 200", "--duration 2s"] {
            scope.spawn(move || {
                let place = Place::new();
                let mut plain = Plain::start(&place, &format!("{quick} {end}"));
                assert_eq!(plain.ended(), Some(0), "{}", plain.errors());
                assert_eq!(plain.errors(), "");
                let out = plain.out();
                let last = out.lines().last();
                assert!(last.is_some_and(|line| line.contains("has ended")), "{out}");
                place.assert_nothing_left(&[], plain.pid());
            });
            scope.spawn(move || {
                let line = format!("{quick} {end} --once --json --for 1h");
                let output = Place::new().command(&line).to_end();
                let report = document(&output);
                // No more batches than fit into 2 s, and no more than requested.
                let batches = number(&report["window"]["batches"]);
                assert!(
                    (1.0..=200.0).contains(&batches),
                    "{batches} batches of {end}"
                );
                assert!(
                    report["gaps"].to_string().contains("has ended"),
                    "{report:#}"
                );
            });
        }
    });
}

// Tests of the command's options.

#[test]
fn each_preset_is_described() {
    let place = Place::new();
    let output = place.command("demo --list").to_end();
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
fn meaningless_options_are_rejected() {
    let place = Place::new();
    for (line, said) in [
        ("demo --workers 0", "out of range"),
        ("demo --steps 0", "out of range"),
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
        let output = place.command(line).to_end();
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert_eq!(lossy(&output.stdout), "", "{line}");
        let (error, _) = refused(&lossy(&output.stderr));
        assert!(error.contains(said), "{line}: {error}");
    }
    place.assert_nothing_left(&[], 0);
}
