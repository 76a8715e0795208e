//! The marks on the time axis, against the times logged by the script.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use pipetop::sample::Sample;
use pipetop::testing::engine::Engine;
use pipetop::testing::model::MarkKind;
use pipetop::testing::record::Recording;
use pipetop::units::ProcessKey;

use crate::trial::{Outcome, PIPETOP, Situation, ensure, last_python, light, no_ptrace};
use support::machine::{Python, note};
use support::measured::two_of_three;

/// Most seconds by which a mark may be late: two samples, a poll of the stack, and a busy machine.
const LATE: f64 = 1.5;
/// Most seconds by which a mark may be early: the first poll in a pass may come before its first batch.
const EARLY: f64 = 0.3;

const MARKS: Situation = light("marks").steady_after(10);

#[test]
fn marks_lie_where_things_happened() {
    last_python(MARKS, |python| two_of_three(|| marks_of_a_job(python)));
}

fn marks_of_a_job(python: &Python) -> Outcome {
    let job = MARKS.job(python)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let watch = |name: &str, library: Option<&Path>| {
        let path = folder.path().join(name);
        let mut command = Command::new(PIPETOP);
        if let Some(library) = library {
            command.env("LD_PRELOAD", library);
        }
        command
            .arg(job.pid().to_string())
            .args(["--interval", "250ms", "--for", "20s", "--json", "--record"])
            .arg(&path)
            .stdout(File::create(path.with_extension("json"))?)
            .stderr(Stdio::piped());
        command.spawn().map(|child| (path, child))
    };
    let library = no_ptrace();
    let whole = watch("run.rec", None).map_err(|error| error.to_string())?;
    let from_outside = library.map(|library| watch("outside.rec", Some(&library)));
    let seen = marks_of(whole)?;
    let from_outside = from_outside.map(|watched| {
        let watched = watched.map_err(|error| error.to_string())?;
        marks_of(watched)
    });
    let events = job.file("events");
    let wanted: Vec<(&str, f64)> = events
        .lines()
        .filter_map(|line| {
            let (kind, at) = line.split_once(' ')?;
            Some((kind, at.parse().ok()?))
        })
        .filter(|(kind, _)| *kind != "under-way")
        .collect();
    note(&format!(
        "torch {}: {:?}",
        python.torch,
        offsets(&seen, &wanted)
    ));
    let kinds = |list: &[(&str, f64)]| {
        list.iter()
            .map(|(kind, _)| (*kind).to_owned())
            .collect::<Vec<_>>()
    };
    ensure(kinds(&seen) == kinds(&wanted), || {
        format!("marks {seen:?}, not {wanted:?}")
    })?;
    let near = |(kind, late): &(&str, f64)| {
        ensure((-EARLY..=LATE).contains(late), || {
            format!("{kind} is marked {late:.2} s late")
        })
    };
    offsets(&seen, &wanted).iter().try_for_each(near)?;
    match from_outside {
        Some(seen) => check_without_stacks(&seen?, &wanted),
        None => Err("libno_ptrace.so was not built".to_owned()),
    }
}

/// Checks the marks seen without stacks: none is wrong, except that a validation may be marked as an epoch, and all
/// that can be detected are there.
fn check_without_stacks(seen: &[(&str, f64)], wanted: &[(&str, f64)]) -> Outcome {
    note(&format!("without stacks: {seen:?}"));
    for (kind, at) in seen {
        let is = |(what, when): &&(&str, f64)| {
            let alike = what == kind || (*kind, *what) == ("epoch", "validation");
            alike && (-EARLY..=LATE).contains(&(at - when))
        };
        ensure(wanted.iter().any(|event| is(&event)), || {
            format!("without stacks, {kind} at {at} is none of {wanted:?}")
        })?;
    }
    let count = |kind| seen.iter().filter(|(seen, _)| *seen == kind).count();
    // Of the epochs, those that restart all workers.
    for (kind, least) in [
        ("epoch", 3),
        ("checkpoint", 1),
        ("worker", 1),
        ("job-end", 1),
    ] {
        ensure(count(kind) >= least, || {
            format!("without stacks, {kind} is not marked {least} times: {seen:?}")
        })?;
    }
    Ok(())
}

/// Returns the marks until the end of the job, by the wall clock in seconds.
fn marks_of((path, watched): (PathBuf, Child)) -> Result<Vec<(&'static str, f64)>, String> {
    let watched = watched
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    ensure(watched.status.success(), || {
        String::from_utf8_lossy(&watched.stderr).into_owned()
    })?;
    replays(&path)?;
    let mut recording = Recording::open(&path).map_err(|error| error.to_string())?;
    let mut engine = Engine::new(Duration::from_secs(10));
    let mut began = SystemTime::UNIX_EPOCH;
    let mut last = None;
    for number in 0..recording.len() {
        let (sample, _) = recording.read(number).map_err(|error| error.to_string())?;
        began = sample.at.wall - sample.at.since_start;
        follows(&sample, &mut last)?;
        engine.push(sample);
    }
    let began = began
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let marks = engine
        .state()
        .model
        .history()
        .marks()
        .between(-1.0, f64::MAX);
    let mut seen: Vec<(&str, f64)> = marks
        .iter()
        .filter_map(|mark| Some((name(mark.kind)?, (began + mark.at).as_secs_f64())))
        .collect();
    // Marks after the job's end belong to another job.
    let end = seen.iter().position(|(kind, _)| *kind == "job-end");
    seen.truncate(end.map_or(seen.len(), |end| end + 1));
    Ok(seen)
}

/// Checks that a replay prints the same lines as the live run, including verdicts, to the last digit.
fn replays(path: &Path) -> Outcome {
    let live =
        fs::read_to_string(path.with_extension("json")).map_err(|error| error.to_string())?;
    let replayed = Command::new(PIPETOP)
        .arg("replay")
        .arg(path)
        .arg("--json")
        .output()
        .map_err(|error| error.to_string())?;
    let lines = live.lines().count();
    note(&format!("{lines} lines, {} bytes of JSON", live.len()));
    let again = String::from_utf8_lossy(&replayed.stdout);
    ensure(lines > 40 && again == live, || {
        let both = again.lines().zip(live.lines());
        let alike = both.take_while(|(again, live)| again == live).count();
        let count = again.lines().count();
        format!("{count} of {lines} lines are replayed, of which the first {alike} are the same")
    })
}

/// The last running job, and the time until which it ran, in ticks since boot.
type Ran = Option<(ProcessKey, u64)>;

/// Checks that a job watched after the script began after the script's end: workers that it leaves behind are not a
/// job.
fn follows(sample: &Sample, last: &mut Ran) -> Outcome {
    let Some(job) = sample.job.as_ref().filter(|job| !job.ended) else {
        return Ok(());
    };
    let (boot, per_second) = (
        sample.host.boot_ticks_at_start,
        sample.host.ticks_per_second,
    );
    let (boot, per_second) = boot.zip(per_second).ok_or("no clock of the kernel")?;
    let ticks = sample.at.since_start.as_secs_f64() * per_second as f64;
    let now = boot
        + Duration::try_from_secs_f64(ticks)
            .unwrap_or_default()
            .as_secs();
    if let Some((key, ran)) = *last
        && key != job.key
    {
        // Taking a sample takes some time, so allow a quarter of a second.
        ensure(job.key.start_ticks + per_second / 4 >= ran, || {
            format!("{:?} was there before {key:?} had ended", job.key)
        })?;
    }
    *last = Some((job.key, now));
    Ok(())
}

/// Returns how late each mark is.
fn offsets<'a>(seen: &[(&str, f64)], wanted: &[(&'a str, f64)]) -> Vec<(&'a str, f64)> {
    let pairs = wanted.iter().zip(seen);
    pairs
        .map(|((kind, at), (_, seen))| (*kind, seen - at))
        .collect()
}

/// Returns the script's name of a mark; verdicts are not tested here.
fn name(kind: MarkKind) -> Option<&'static str> {
    match kind {
        MarkKind::JobEnd => Some("job-end"),
        MarkKind::Checkpoint => Some("checkpoint"),
        MarkKind::Epoch => Some("epoch"),
        MarkKind::Validation => Some("validation"),
        MarkKind::Worker => Some("worker"),
        // The job began before pipetop, and verdicts are not logged by the script.
        MarkKind::JobBegin | MarkKind::Verdict => None,
    }
}
