//! How often a verdict is right at each stated confidence. Runs many loaders with random settings; each job's own
//! measurements tell which verdict is right. Writes the runs to docs/accuracy.csv, to which the factors of the
//! confidence are fitted, and from which the tables of docs/accuracy.md are made. Another test measures how soon the
//! first verdict about a clear case comes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;
use support::fuzz::Rng;
use support::machine::{Share, each, has, note, skip};
use support::measured::median;
use support::waiting::ended;

use crate::clock::now;
use crate::job::Job;
use crate::loaders::{SCRIPTS, python_with_loaders};
use crate::report::Report;
use crate::trial::{OBSERVED, PIPETOP, UNPRIVILEGED, kind_of, no_ptrace};

/// Scripts of `tests/torch/loaders` that accept a number of workers, with the package they need.
const LOADERS: [(&str, &str); 19] = [
    ("batchgenerators_nondet", "batchgenerators"),
    ("collate_in_main", "torch"),
    ("futures_processes", "torch"),
    ("futures_threads", "torch"),
    ("grain_processes", "grain"),
    ("grain_threads", "grain"),
    ("hf_trainer", "transformers"),
    ("joblib_generator", "joblib"),
    ("lightning_fit", "lightning"),
    ("litdata_streaming", "litdata"),
    ("monai_thread", "monai"),
    ("mp_queue", "torch"),
    ("queue_beside", "torch"),
    ("queue_threads", "torch"),
    ("renamed", "setproctitle"),
    ("spdl_subprocess", "spdl"),
    ("spdl_threads", "spdl"),
    ("torchdata_nodes", "torchdata"),
    ("torchdata_stateful", "torchdata"),
];
const RUNS: usize = 300;
/// One job in this many is watched without the right to attach.
const ONE_WITHOUT_RIGHT: usize = 6;
const STEADY: usize = 15;

/// The runs, one per line, to which `src/verdict/confidence.rs` is fitted.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/accuracy.csv");
const COLUMNS: &str = "draw,access,recognised,verdict,waited,share,low,high,agree,against";

/// A job with random settings.
#[derive(Debug)]
struct Draw {
    number: usize,
    script: &'static str,
    package: &'static str,
    workers: usize,
    /// Milliseconds.
    load: u32,
    step: u32,
    may_attach: bool,
}

#[derive(Debug)]
struct Outcome {
    draw: usize,
    access: String,
    /// How the loader was detected.
    recognised: &'static str,
    kind: String,
    /// Percent.
    confidence: u32,
    right: bool,
    said: bool,
    /// The wait share by the job's own measurement.
    waited: f64,
    /// The stated wait share, and both ends of its interval.
    share: [Option<f64>; 3],
    /// Signals that agree with the verdict, and those against it.
    signals: [usize; 2],
}

impl Outcome {
    fn line(&self) -> String {
        let figure = |figure: Option<f64>| figure.map_or_else(String::new, |it| format!("{it:.4}"));
        let share = self.share.map(figure).join(",");
        let [agree, against] = self.signals;
        format!(
            "{},{},{},{},{:.4},{share},{agree},{against}",
            self.draw, self.access, self.recognised, self.kind, self.waited
        )
    }
}

fn draw(number: usize) -> Draw {
    let mut rng = Rng::with_seed(number as u64);
    let (script, package) = LOADERS[rng.usize(..LOADERS.len())];
    let workers = rng.usize(1..=6);
    let step = 20.0 * 8_f64.powf(rng.f64());
    // The load time is from a fourth to four times of what the workers manage during a step.
    let demand = 0.25 * 16_f64.powf(rng.f64());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some milliseconds"
    )]
    let whole = |ms: f64| ms.round().max(1.0) as u32;
    // The main thread assembles the batches, one at a time.
    let at_once = if script == "collate_in_main" {
        1.0
    } else {
        workers as f64
    };
    Draw {
        number,
        script,
        package,
        workers,
        load: whole(step * at_once * demand),
        step: whole(step),
        may_attach: !number.is_multiple_of(ONE_WITHOUT_RIGHT),
    }
}

fn run(python: &str, draw: &Draw) -> Result<Outcome, String> {
    let figures = format!(
        "--load {} --step {} --workers {}",
        draw.load, draw.step, draw.workers
    );
    let arguments: Vec<String> = figures.split(' ').map(String::from).collect();
    let script = Path::new(SCRIPTS).join(draw.script).with_extension("py");
    let before: Vec<&str> = UNPRIVILEGED[1..].iter().copied().chain([python]).collect();
    let mut job = Job::script(UNPRIVILEGED[0], &before, Share::Eighth, &script, &arguments)?;
    job.reach(STEADY, None)?;
    let command = if draw.may_attach {
        Command::new(PIPETOP)
    } else {
        let library = no_ptrace().ok_or("libno_ptrace.so was not built")?;
        let mut command = Command::new(UNPRIVILEGED[0]);
        command.args(&UNPRIVILEGED[1..]).arg(PIPETOP);
        command.env("LD_PRELOAD", library);
        command
    };
    let report = Report::of(command, job.pid(), OBSERVED)?;
    let seconds = report.number("/window/seconds").unwrap_or_default();
    let truth = job
        .truth(None)
        .wait_share(report.ended - seconds, report.ended);
    let kind = report.kind().to_owned();
    let said = !matches!(&*kind, "unknown" | "warming-up");
    let share = report.number("/verdict/wait_share");
    let loader = "/job/ranks/0/loader";
    let recognised = match report.text(&format!("{loader}/kind")) {
        "" => "no loader",
        "other" if report.text(&format!("{loader}/name")).is_empty() => "by its place",
        "other" => "by name",
        _ => "PyTorch",
    };
    let signals = |supports: bool| {
        let evidence = report.document["verdict"]["evidence"].as_array();
        let known = ["wait", "queue-empty", "workers-busy", "gpu-idle"];
        let counts = |fact: &&Value| {
            fact["supports"] == supports && known.iter().any(|id| fact["id"] == **id)
        };
        evidence.into_iter().flatten().filter(counts).count()
    };
    let end = |end: usize| report.number(&format!("/verdict/wait_interval/{end}"));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "percent"
    )]
    let confidence =
        (100.0 * report.number("/verdict/confidence").unwrap_or_default()).round() as u32;
    let outcome = Outcome {
        draw: draw.number,
        access: report.text("/window/access").to_owned(),
        recognised,
        right: kind == kind_of(truth),
        confidence,
        said,
        kind,
        waited: truth,
        share: [share, end(0), end(1)],
        signals: [signals(true), signals(false)],
    };
    note(&format!("{draw:?}: {outcome:?}, of itself {truth:.3}"));
    if said && !outcome.right {
        note(&format!("{:#}", report.document));
    }
    Ok(outcome)
}

#[test]
#[ignore = "takes half an hour; its runs are docs/accuracy.csv"]
fn stated_confidence_is_a_frequency() {
    let Some(python) = python_with_loaders() else {
        return;
    };
    let draws: Vec<Draw> = (0..RUNS)
        .map(draw)
        .filter(|draw| has(&python, draw.package))
        .collect();
    let (outcomes, failed) = (Mutex::new(vec![]), Mutex::new(vec![]));
    each(&draws, Share::Eighth, |draw| match run(&python, draw) {
        Ok(outcome) => outcomes.lock().unwrap().push(outcome),
        Err(why) => failed.lock().unwrap().push(format!("{draw:?}: {why}")),
    });
    let (mut outcomes, failed) = (outcomes.into_inner().unwrap(), failed.into_inner().unwrap());
    outcomes.sort_by_key(|outcome| outcome.draw);
    let lines = [COLUMNS.to_owned()].into_iter();
    let lines: Vec<String> = lines.chain(outcomes.iter().map(Outcome::line)).collect();
    fs::write(RECORDED, lines.join("\n") + "\n").unwrap();
    let wrong = |outcome: &&Outcome| outcome.said && !outcome.right && outcome.confidence >= 60;
    let wrong: Vec<&Outcome> = outcomes.iter().filter(wrong).collect();
    note(&format!(
        "wrong at 60 % or more: {wrong:#?}\nnot run: {failed:#?}"
    ));
    assert!(failed.len() * 20 < draws.len(), "{failed:?}");
}

/// Returns the first verdict about a job that clearly waits, or clearly does not, and the seconds until it came. `None`
/// = there was none in 20 s.
fn first_verdict(
    python: &str,
    script: &str,
    starved: bool,
) -> Result<Option<(f64, String)>, String> {
    let figures = match (script, starved) {
        // The main thread assembles the batches, one at a time.
        ("collate_in_main", true) => "--load 200 --step 50 --workers 4",
        ("collate_in_main", false) => "--load 2 --step 100 --workers 2",
        (_, true) => "--load 400 --step 50 --workers 4",
        (_, false) => "--load 40 --step 100 --workers 2",
    };
    let arguments: Vec<String> = figures.split(' ').map(String::from).collect();
    let path = Path::new(SCRIPTS).join(script).with_extension("py");
    let mut job = Job::script(python, &[], Share::Eighth, &path, &arguments)?;
    job.reach(STEADY, None)?;
    let began = now();
    let watching = Command::new(PIPETOP)
        .args([&*job.pid().to_string(), "--json"])
        .args(["--interval", "500ms", "--for", "20s"])
        .stdout(Stdio::piped())
        .spawn();
    let mut watching = watching.map_err(|error| error.to_string())?;
    let mut first: Option<(f64, String)> = None;
    for line in BufReader::new(watching.stdout.take().expect("piped")).lines() {
        let line = line.map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let kind = report["verdict"]["kind"].as_str().unwrap_or_default();
        match &first {
            Some((_, first)) if first != kind => return Err(format!("{first}, then {kind}")),
            None if !["warming-up", "unknown"].contains(&kind) => {
                first = Some((now() - began, kind.to_owned()));
            }
            _ => {}
        }
    }
    ended(&mut watching);
    Ok(first)
}

#[test]
#[ignore = "takes three minutes; its figures are in docs/accuracy.md"]
fn the_first_verdict_about_clear_cases_is_right_and_stays() {
    let Some(python) = python_with_loaders() else {
        return;
    };
    let jobs: Vec<(&str, &str, bool)> = LOADERS
        .iter()
        .flat_map(|(script, package)| [true, false].map(|starved| (*script, *package, starved)))
        .collect();
    let seconds = Mutex::new(vec![]);
    each(&jobs, Share::Eighth, |(script, package, starved)| {
        if !has(&python, package) {
            return skip(&format!("{python} has no {package}"));
        }
        let first = first_verdict(&python, script, *starved);
        let first = first.unwrap_or_else(|why| panic!("{script}, starved {starved}: {why}"));
        note(&format!("{script}, starved {starved}: {first:?}"));
        let right = if *starved {
            "data-bound"
        } else {
            "compute-bound"
        };
        let after = first.map_or(f64::INFINITY, |(after, kind)| {
            assert_eq!(kind, right, "{script}");
            after
        });
        seconds.lock().unwrap().push(after);
    });
    let median = median(seconds.into_inner().unwrap());
    note(&format!("the median is {median:.1} s"));
}
