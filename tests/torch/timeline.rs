//! What the timeline draws of a recorded job, against what the script says: begins and ends of waits, steps and loads.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use pipetop::sample::{PollTrace, SLOT, Seen, TrainerNow, WorkerNow};
use pipetop::testing::engine::Engine;
use pipetop::testing::model::WorkerPlace;
use pipetop::testing::record::Recording;

use crate::clock;
use crate::trial::{Outcome, PIPETOP, Situation, ensure, last_python, light};
use support::machine::{Python, note};
use support::measured::two_of_three;

/// Seconds between two polls at a worker; the trainer is looked at more often. On a machine that is busy it is more.
const PERIOD: f64 = 0.05;
/// Seconds for which a worker has a batch in work after the dataset has made its samples.
const AROUND: f64 = 0.06;
/// Seconds by which a time may be off that the job reports.
const EXACT: f64 = 0.002;
/// Of the times that must agree: one may fall into a moment in which the machine does something else.
const MOST: f64 = 0.9;

const JITTER: Situation = light("jitter");

/// From and to, in seconds of the script's clock.
type Stretch = (f64, f64);

/// What the timeline draws.
struct Drawn {
    waits: Vec<Stretch>,
    /// Seconds between two polls at the trainer and at the workers: nine in ten lie closer together.
    periods: (f64, f64),
    /// Each with worker and batch.
    loads: Vec<((u32, u64), Stretch)>,
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
    let (trainer, workers) = drawn.periods;
    note(&format!(
        "a look each {:.0} ms at the trainer, {:.0} ms at a worker",
        1000.0 * trainer,
        1000.0 * workers
    ));
    agree(
        "waits",
        &drawn.waits,
        &waits(&job.file("truth")),
        (trainer, trainer),
    )?;
    let logged = loads(&job.file("loads"));
    let pairs = drawn.loads.iter().filter_map(|(which, drawn)| {
        let (_, logged) = logged.iter().find(|(other, _)| other == which)?;
        Some((*drawn, *logged))
    });
    let (drawn_loads, logged): (Vec<_>, Vec<_>) = pairs.unzip();
    ensure(drawn_loads.len() == drawn.loads.len(), || {
        "a load is drawn that the script did not log".to_owned()
    })?;
    agree("loads", &drawn_loads, &logged, (workers, workers + AROUND))
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
    agree(
        "reported waits",
        &drawn.waits,
        &waits(&truth),
        (EXACT, EXACT),
    )
}

/// Runs it, and reads what the timeline draws at its end.
fn drawn(mut watch: Command, path: &Path) -> Result<Drawn, String> {
    let run = watch.stdin(Stdio::null()).stdout(Stdio::null()).output();
    let run = run.map_err(|error| error.to_string())?;
    ensure(run.status.success(), || {
        String::from_utf8_lossy(&run.stderr).into_owned()
    })?;
    let mut recording = Recording::open(path).map_err(|error| error.to_string())?;
    let mut engine = Engine::new(Duration::from_secs(10));
    let mut last = None;
    let (mut trainer, mut workers) = (Distances::default(), BTreeMap::<_, Distances>::new());
    for number in 0..recording.len() {
        let (sample, _) = recording.read(number).map_err(|error| error.to_string())?;
        engine.push(sample.clone());
        for rank in sample.job.iter().flat_map(|job| &job.ranks) {
            trainer.add::<TrainerNow>(&rank.polls);
            for worker in rank.loaders.iter().flat_map(|loader| &loader.workers) {
                let distances = workers.entry(worker.key).or_default();
                distances.add::<WorkerNow>(&worker.polls);
            }
        }
        last = Some(sample).filter(|sample| sample.job.is_some()).or(last);
    }
    let last = last.ok_or("no job was recorded")?;
    // The script's clock, when pipetop started.
    let then = last.at.wall.duration_since(SystemTime::UNIX_EPOCH);
    let ago = clock::wall() - then.unwrap_or_default().as_secs_f64();
    let began = clock::now() - ago - last.at.since_start.as_secs_f64();
    let rank = last.job.iter().flat_map(|job| &job.ranks).next();
    let rank = rank.ok_or("no rank was recorded")?;
    let timeline = engine.state().model.history().timeline();
    let waits = timeline.waits(rank.key);
    let waits = waits.map(|wait| {
        (
            began + wait.from.as_secs_f64(),
            began + wait.to.as_secs_f64(),
        )
    });
    let mut loads = Vec::new();
    for loader in &rank.loaders {
        for worker in &loader.workers {
            let place = WorkerPlace {
                rank: rank.key,
                loader: loader.id,
                id: worker.id,
            };
            let batches = timeline.batches(place);
            loads.extend(batches.map(|batch| {
                let stretch = (began + batch.from, began + batch.to);
                ((worker.id, batch.number), stretch)
            }));
        }
    }
    let workers = workers.into_values().flat_map(|distances| distances.found);
    let workers = Distances {
        found: workers.collect(),
        ..Distances::default()
    };
    Ok(Drawn {
        waits: waits.collect(),
        periods: (trainer.period(), workers.period()),
        loads,
    })
}

/// Slots from one poll to the next.
#[derive(Default)]
struct Distances {
    last: Option<u64>,
    found: Vec<u64>,
}

impl Distances {
    fn add<T: Seen>(&mut self, polls: &PollTrace) {
        let from = self.last.map_or(0, |last| last + 1);
        for slot in (from..polls.end()).filter(|slot| polls.seen::<T>(*slot).is_some()) {
            self.found.extend(self.last.map(|last| slot - last));
            self.last = Some(slot);
        }
    }

    /// In seconds.
    fn period(mut self) -> f64 {
        self.found.sort_unstable();
        let most = self.found.get(self.found.len() * 9 / 10);
        let seconds = most.map_or(0.0, |slots| *slots as f64 * SLOT.as_secs_f64());
        seconds.max(PERIOD)
    }
}

/// Most begins and ends lie no farther from those that were logged. What is drawn of no stretch that was logged is off by
/// as much as the nearest.
fn agree(what: &str, drawn: &[Stretch], logged: &[Stretch], (begin, end): (f64, f64)) -> Outcome {
    let off = |drawn: &Stretch| {
        let offs = logged
            .iter()
            .map(|logged| ((drawn.0 - logged.0).abs(), (drawn.1 - logged.1).abs()));
        offs.min_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)))
            .unwrap_or((f64::MAX, f64::MAX))
    };
    let offs: Vec<_> = drawn.iter().map(off).collect();
    let right = offs.iter().filter(|off| off.0 <= begin && off.1 <= end);
    let right = right.count();
    let median = |pick: fn(&(f64, f64)) -> f64| {
        let mut offs: Vec<f64> = offs.iter().map(pick).collect();
        offs.sort_by(f64::total_cmp);
        offs.get(offs.len() / 2)
            .map_or(f64::NAN, |off| 1000.0 * off)
    };
    let words = format!(
        "{right} of {} {what} agree; begins are {:.1} ms off, ends {:.1} ms (medians)",
        offs.len(),
        median(|off| off.0),
        median(|off| off.1)
    );
    note(&words);
    ensure(
        offs.len() >= 8 && right as f64 >= MOST * offs.len() as f64,
        || words.clone(),
    )
}

/// From asking for a batch to having it.
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

/// Each with worker and batch: from the first sample to the last.
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
