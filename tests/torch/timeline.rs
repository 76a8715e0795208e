//! The timeline of a recorded job, against the script's log: begins and ends of waits, steps and loads.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use pipetop::sample::{PollTrace, SLOT, SlotState, TrainerNow, WorkerNow, slot};
use pipetop::testing::engine::Engine;
use pipetop::testing::model::WorkerPlace;
use pipetop::testing::record::Recording;

use crate::clock;
use crate::trial::{Outcome, PIPETOP, Situation, ensure, last_python, light};
use support::machine::{Python, note};
use support::measured::{self, two_of_three};

/// Seconds that a worker still works on a batch after the dataset has made its samples.
const OUTSIDE_DATASET: f64 = 0.06;
/// Tolerance in seconds of a time that the job reports.
const EXACT: f64 = 0.002;
/// Share of the stretches that must agree. Not all can: the script may lose the CPU before it logs a time.
const MOST: f64 = 0.9;

const JITTER: Situation = light("jitter");

/// Start and end, in seconds of the script's clock.
type Stretch = (f64, f64);

/// The stretches on the timeline, each with the tolerances of its beginning and end.
struct Drawn {
    waits: Vec<(Stretch, Stretch)>,
    /// Each with worker and batch.
    loads: Vec<((u32, u64), (Stretch, Stretch))>,
}

#[test]
fn the_timeline_agrees_with_what_the_script_logged() {
    last_python(JITTER, |python| two_of_three(|| from_outside(python)));
}

#[test]
fn the_timeline_of_a_launched_job_is_exact() {
    last_python(JITTER, |python| two_of_three(|| launched(python)));
}

fn from_outside(python: &Python) -> Outcome {
    let job = JITTER.job(python)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("run.rec");
    let mut watch = Command::new(PIPETOP);
    watch.arg(job.pid().to_string());
    watch
        .args(["--for", "15s", "--json", "--record"])
        .arg(&path);
    let drawn = drawn(watch, &path)?;
    check_agreement("waits", &drawn.waits, &waits(&job.file("truth")))?;
    let logged = loads(&job.file("loads"));
    let pairs = drawn
        .loads
        .iter()
        .filter_map(|(which, (load, (begin, end)))| {
            let (_, logged) = logged.iter().find(|(other, _)| other == which)?;
            Some(((*load, (*begin, end + OUTSIDE_DATASET)), *logged))
        });
    let (drawn_loads, logged): (Vec<_>, Vec<_>) = pairs.unzip();
    ensure(drawn_loads.len() == drawn.loads.len(), || {
        "a load is drawn that the script did not log".to_owned()
    })?;
    check_agreement("loads", &drawn_loads, &logged)
}

fn launched(python: &Python) -> Outcome {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/torch/situations.py");
    let path = folder.path().join("run.rec");
    let mut run = Command::new(PIPETOP);
    run.args([
        "run", "--for", "20s", "--once", "--json", "--stop", "--record",
    ]);
    run.arg(&path)
        .arg("--")
        .args([&python.path, script, "jitter"]);
    run.arg(folder.path());
    let drawn = drawn(run, &path)?;
    let truth = std::fs::read_to_string(folder.path().join("truth"));
    let truth = truth.map_err(|error| error.to_string())?;
    let exact = drawn.waits.iter().map(|(wait, _)| (*wait, (EXACT, EXACT)));
    check_agreement("reported waits", &exact.collect::<Vec<_>>(), &waits(&truth))
}

/// Runs `watch`, and returns the timeline at its end.
fn drawn(mut watch: Command, path: &Path) -> Result<Drawn, String> {
    let run = watch.stdin(Stdio::null()).stdout(Stdio::null()).output();
    let run = run.map_err(|error| error.to_string())?;
    ensure(run.status.success(), || {
        String::from_utf8_lossy(&run.stderr).into_owned()
    })?;
    let mut recording = Recording::open(path).map_err(|error| error.to_string())?;
    let mut engine = Engine::new(Duration::from_secs(10));
    let mut last = None;
    let (mut trainer, mut workers) = (Polls::default(), BTreeMap::<_, Polls>::new());
    for number in 0..recording.len() {
        let (sample, _) = recording.read(number).map_err(|error| error.to_string())?;
        engine.push(sample.clone());
        for rank in sample.job.iter().flat_map(|job| &job.ranks) {
            trainer.add::<TrainerNow>(&rank.polls);
            for worker in rank.loaders.iter().flat_map(|loader| &loader.workers) {
                let polls = workers.entry(worker.id).or_default();
                polls.add::<WorkerNow>(&worker.polls);
            }
        }
        last = Some(sample).filter(|sample| sample.job.is_some()).or(last);
    }
    let last = last.ok_or("no job was recorded")?;
    // The script's clock at the start of pipetop.
    let then = last.at.wall.duration_since(SystemTime::UNIX_EPOCH);
    let ago = clock::wall() - then.unwrap_or_default().as_secs_f64();
    let began = clock::now() - ago - last.at.since_start.as_secs_f64();
    let rank = last.job.iter().flat_map(|job| &job.ranks).next();
    let rank = rank.ok_or("no rank was recorded")?;
    let timeline = engine.state().model.history().timeline();
    let waits = timeline.waits(rank.key);
    let on_the_clock = |(from, to): Stretch| (began + from, began + to);
    let waits = waits.map(|wait| {
        let wait = (wait.from.as_secs_f64(), wait.to.as_secs_f64());
        (on_the_clock(wait), trainer.around(wait))
    });
    let mut loads = Vec::new();
    for loader in &rank.loaders {
        for worker in &loader.workers {
            let place = WorkerPlace {
                rank: rank.key,
                loader: loader.id,
                id: worker.id,
            };
            let polls = &workers[&worker.id];
            loads.extend(timeline.batches(place).map(|batch| {
                let load = (batch.from, batch.to);
                let may_be_off = polls.around(load);
                ((worker.id, batch.number), (on_the_clock(load), may_be_off))
            }));
        }
    }
    Ok(Drawn {
        waits: waits.collect(),
        loads,
    })
}

/// The slots with a poll, in order. How far they are apart depends on the machine: a busy one polls late.
#[derive(Default)]
struct Polls(Vec<u64>);

impl Polls {
    fn add<T: SlotState>(&mut self, polls: &PollTrace) {
        let from = self.0.last().map_or(0, |last| last + 1);
        self.0
            .extend((from..polls.end()).filter(|slot| polls.seen::<T>(*slot).is_some()));
    }

    /// Returns the seconds between the polls around the begin and around the end of a stretch.
    fn around(&self, (from, to): Stretch) -> Stretch {
        (self.period(from), self.period(to))
    }

    /// Returns the most seconds that the polls before and after this moment can be apart, as a slot does not tell when
    /// in it the poll was made. At the moment of a poll, the longer of the two distances counts.
    fn period(&self, at: f64) -> f64 {
        let slot = slot(Duration::try_from_secs_f64(at).unwrap_or_default());
        let before = self.0.partition_point(|poll| *poll < slot);
        let after = self.0.partition_point(|poll| *poll <= slot);
        let around = self.0[before.saturating_sub(1)..self.0.len().min(after + 1)].windows(2);
        let longest = around.map(|pair| pair[1] - pair[0]).max();
        (longest.unwrap_or_default() + 1) as f64 * SLOT.as_secs_f64()
    }
}

/// Checks that most beginnings and ends are within their tolerance of logged ones. A stretch that was not logged is
/// compared with the nearest one.
fn check_agreement(what: &str, drawn: &[(Stretch, Stretch)], logged: &[Stretch]) -> Outcome {
    let off = |drawn: &Stretch| {
        let offs = logged
            .iter()
            .map(|logged| ((drawn.0 - logged.0).abs(), (drawn.1 - logged.1).abs()));
        offs.min_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)))
            .unwrap_or((f64::MAX, f64::MAX))
    };
    let offs: Vec<(f64, f64)> = drawn.iter().map(|(drawn, _)| off(drawn)).collect();
    let with_bounds = offs.iter().zip(drawn);
    let right = with_bounds.filter(|(off, (_, may_be))| off.0 <= may_be.0 && off.1 <= may_be.1);
    let right = right.count();
    let median = |of: &[f64]| match of {
        [] => f64::NAN,
        of => 1000.0 * measured::median(of.to_vec()),
    };
    let (begins, ends): (Vec<f64>, Vec<f64>) = offs.iter().copied().unzip();
    let may_be: Vec<f64> = drawn.iter().map(|(_, may_be)| may_be.0).collect();
    let words = format!(
        "{right} of {} {what} agree; begins are {:.1} ms off, ends {:.1} ms, of {:.0} ms that they may be (medians)",
        offs.len(),
        median(&begins),
        median(&ends),
        median(&may_be)
    );
    note(&words);
    ensure(
        offs.len() >= 8 && right as f64 >= MOST * offs.len() as f64,
        || words.clone(),
    )
}

/// Returns the waits, from asking for a batch to having it.
fn waits(truth: &str) -> Vec<Stretch> {
    let mark = |line: &str| {
        let (state, at) = line.split_once(' ')?;
        Some((state.to_owned(), at.parse().ok()?))
    };
    let marks: Vec<(String, f64)> = truth.lines().filter_map(mark).collect();
    let pairs = marks.windows(2);
    pairs
        .filter(|pair| pair[0].0 == "wait" && pair[1].0 == "step")
        .map(|pair| (pair[0].1, pair[1].1))
        .collect()
}

/// Returns the loads with worker and batch, from the first sample to the last.
fn loads(text: &str) -> Vec<((u32, u64), Stretch)> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let which = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let took: f64 = words.next()?.parse().ok()?;
        let to: f64 = words.next()?.parse().ok()?;
        Some((which, (to - took, to)))
    };
    text.lines().filter_map(line).collect()
}
