//! How often a verdict is right at which stated confidence: jobs of many loaders with settings taken by chance, each labelled
//! by what it measured of itself. Prints the tables of docs/accuracy.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use serde_json::{Value, json};
use support::fuzz::Rng;
use support::machine::{Share, each, has, note, skip};

use crate::job::Job;
use crate::loaders::SCRIPTS;
use crate::report::Report;
use crate::trial::{OBSERVED, PIPETOP, UNPRIVILEGED, kind_of, no_ptrace};

/// Scripts of `tests/torch/loaders` that take a number of workers, with what must be installed.
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
/// Of so many, one is watched without the right to attach.
const ONE_WITHOUT_RIGHT: usize = 6;
const STEADY: usize = 15;

/// A job with settings taken by chance.
#[derive(Debug)]
struct Draw {
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
    /// Access tier, and how the loader was recognised.
    way: String,
    kind: String,
    /// Percent.
    confidence: u32,
    right: bool,
    said: bool,
    off: Option<f64>,
    /// What it measured of itself.
    waited: f64,
    /// The ends of the stated interval.
    interval: Value,
}

fn draw(number: usize) -> Draw {
    let mut rng = Rng::with_seed(number as u64);
    let (script, package) = LOADERS[rng.usize(..LOADERS.len())];
    let workers = rng.usize(1..=6);
    let step = 20.0 * 8_f64.powf(rng.f64());
    // As much loading as the workers manage in a step, from a fourth of it to four times as much.
    let demand = 0.25 * 16_f64.powf(rng.f64());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some milliseconds"
    )]
    let whole = |ms: f64| ms.round().max(1.0) as u32;
    // Its batches are put together by the main thread.
    let at_once = if script == "collate_in_main" {
        1.0
    } else {
        workers as f64
    };
    Draw {
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
        "" => "no loader".to_owned(),
        "other" if report.text(&format!("{loader}/name")).is_empty() => "by its place".to_owned(),
        "other" => "by name".to_owned(),
        _ => "PyTorch".to_owned(),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "percent"
    )]
    let confidence =
        (100.0 * report.number("/verdict/confidence").unwrap_or_default()).round() as u32;
    let outcome = Outcome {
        way: format!("{}, {recognised}", report.text("/window/access")),
        right: kind == kind_of(truth),
        confidence,
        said,
        off: share.filter(|_| said).map(|share| (share - truth).abs()),
        kind,
        waited: truth,
        interval: report.document["verdict"]["wait_interval"].clone(),
    };
    note(&format!("{draw:?}: {outcome:?}, of itself {truth:.3}"));
    if said && !outcome.right {
        note(&format!("{:#}", report.document));
    }
    Ok(outcome)
}

#[derive(Default)]
struct Row {
    runs: u32,
    said: u32,
    right: u32,
    stated: u32,
    off: Vec<f64>,
}

impl Row {
    fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.said += u32::from(outcome.said);
        self.right += u32::from(outcome.said && outcome.right);
        self.stated += if outcome.said { outcome.confidence } else { 0 };
        self.off.extend(outcome.off);
    }

    fn line(&self, name: &str) -> String {
        let mut off = self.off.clone();
        off.sort_by(f64::total_cmp);
        let at = |part: usize| off.get(off.len().saturating_sub(1) * part / 100);
        let off = |part| at(part).map_or_else(|| "n/a".to_owned(), |off| format!("{off:.3}"));
        let of_said = |sum: u32| match self.said {
            0 => "n/a".to_owned(),
            said => format!("{:.0} %", f64::from(sum) / f64::from(said)),
        };
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} |",
            self.runs,
            self.runs - self.said,
            of_said(self.stated),
            of_said(100 * self.right),
            off(50),
            off(95)
        )
    }
}

fn table(title: &str, outcomes: &[Outcome], name: impl Fn(&Outcome) -> String) {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for outcome in outcomes {
        rows.entry(name(outcome)).or_default().add(outcome);
    }
    note(&format!(
        "\n| {title} | runs | of these silent | stated | right | wait share off, median | 95 % |\n|---|---|---|---|---|---|---|"
    ));
    for (name, row) in rows {
        note(&row.line(&name));
    }
}

#[test]
#[ignore = "takes half an hour; its figures are docs/accuracy.md"]
fn stated_confidence_is_a_frequency() {
    let Ok(python) = std::env::var("PIPETOP_LOADERS_PYTHON") else {
        return skip("PIPETOP_LOADERS_PYTHON names no Python with the loaders");
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
    let (outcomes, failed) = (outcomes.into_inner().unwrap(), failed.into_inner().unwrap());
    table("access, recognised", &outcomes, |outcome| {
        outcome.way.clone()
    });
    table("stated confidence", &outcomes, |outcome| {
        match (outcome.said, outcome.confidence / 10) {
            (false, _) => "silent".to_owned(),
            (true, ten) => format!("{} to {} %", 10 * ten, 10 * ten + 9),
        }
    });
    table("verdict", &outcomes, |outcome| outcome.kind.clone());
    let list: Vec<Value> = outcomes
        .iter()
        .map(|outcome| {
            json!({
                "way": outcome.way, "kind": outcome.kind, "confidence": outcome.confidence, "right": outcome.right,
                "waited": outcome.waited, "interval": outcome.interval,
            })
        })
        .collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("accuracy.json");
    fs::write(&file, json!(list).to_string()).unwrap();
    let wrong = |outcome: &&Outcome| outcome.said && !outcome.right && outcome.confidence >= 60;
    let wrong: Vec<&Outcome> = outcomes.iter().filter(wrong).collect();
    note(&format!(
        "wrong at 60 % or more: {wrong:#?}\nnot run: {failed:#?}"
    ));
    assert!(failed.len() * 20 < draws.len(), "{failed:?}");
}
