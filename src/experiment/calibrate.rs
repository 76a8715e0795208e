//! Is the verdict right? Runs presets of the built-in job, each watched in two ways at once: from outside, as any
//! job, and by its own reports.
//!
//! The truth about the waits is what the job measured itself.

use std::fmt::Write;
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::job::Job;
use crate::error::Hinted;
use crate::model::Model;
use crate::sample::{Sample, Wait};
use crate::source::sampler::{Options, Sampler, launched};
use crate::units::Share;
use crate::verdict::{Cause, Judge, Kind, Verdict};
use crate::workload::Settings;
use crate::workload::presets::Preset;

/// From the start of a job: enough for a verdict, which needs ten seconds after the first batch.
pub const SPAN: Duration = Duration::from_secs(15);

/// What came of one preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub preset: &'static str,
    /// The kind that is right.
    pub expected: &'static str,
    /// With the job's own reports.
    pub told: Finding,
    /// From outside.
    pub seen: Finding,
}

/// A verdict and the wait share that it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    pub kind: Kind,
    pub cause: Option<Cause>,
    /// From inside: the exact one of the very time that the other way of watching speaks of. `None` where it
    /// could not be seen.
    pub wait: Option<Share>,
}

impl Row {
    /// The verdict is the one that the preset is made for.
    pub fn right(&self) -> bool {
        self.told.kind.to_string() == self.expected
    }

    /// How far the wait share from outside is from the job's own. `None` where either is not known.
    pub fn error(&self) -> Option<f64> {
        Some(self.seen.wait?.0 - self.told.wait?.0)
    }
}

/// Runs one preset and watches it for `span`.
///
/// # Errors
/// Where the job cannot be started or ends by itself.
pub fn run(
    preset: &Preset,
    settings: &Settings,
    options: &Options,
    span: Duration,
) -> Result<Row, Hinted> {
    let mut job = Job::start(settings)?;
    let from_inside = Options {
        probe: Some(Arc::clone(&job.listener)),
        ..options.clone()
    };
    let pid = job.running.pid();
    let (send, samples) = mpsc::channel();
    let mut samplers = vec![];
    for (which, options) in [from_inside, options.clone()].into_iter().enumerate() {
        let send = send.clone();
        let job = launched(&options.proc_root, pid);
        let sampler = Sampler::start(options, job, move |sample| {
            send.send((which, sample)).is_ok()
        });
        samplers.push(sampler.map_err(|error| {
            let message = format!("cannot start a thread: {error}");
            Hinted::new(message, "raise the limit of processes (ulimit -u)")
        })?);
    }
    drop(send);
    let mut watchers = [Watcher::new(), Watcher::new()];
    for (which, sample) in samples {
        if let Some(watcher) = watchers.get_mut(which) {
            watcher.apply(sample);
        }
        // A slow machine takes longer for as many batches.
        let enough = |watcher: &Watcher| {
            watcher.watched >= 2 * span || (watcher.watched >= span && !watcher.warms_up())
        };
        if watchers.iter().all(enough) {
            break;
        }
        if job.running.ended().is_some() {
            return Err(job.ended_early());
        }
    }
    drop(samplers);
    let [told, seen] = watchers;
    let exact = seen.window().and_then(|window| told.waited(window));
    let told = told.finding().map(|told| Finding {
        wait: exact,
        ..told
    });
    match (told, seen.finding()) {
        (Some(told), Some(seen)) => Ok(Row {
            preset: preset.name,
            expected: preset.expected,
            told,
            seen,
        }),
        _ => Err(job.ended_early()),
    }
}

/// One way of watching.
struct Watcher {
    model: Model,
    judge: Judge,
    verdict: Option<Verdict>,
    watched: Duration,
    /// When its clock began, by the wall clock: places the times of one way of watching in the other's.
    began: Option<SystemTime>,
    waits: Vec<Wait>,
}

impl Watcher {
    fn new() -> Self {
        Self {
            model: Model::new(Duration::MAX),
            judge: Judge::new(),
            verdict: None,
            watched: Duration::ZERO,
            began: None,
            waits: vec![],
        }
    }

    fn apply(&mut self, sample: Sample) {
        self.watched = sample.at.since_start;
        self.began = sample.at.wall.checked_sub(sample.at.since_start);
        let ranks = sample.job.iter().flat_map(|job| &job.ranks);
        self.waits.extend(ranks.flat_map(|rank| &rank.waits));
        self.model.apply(sample);
        self.verdict = Some(self.judge.judge(&self.model));
    }

    fn warms_up(&self) -> bool {
        let kind = self.verdict.as_ref().map(|verdict| verdict.kind);
        kind == Some(Kind::WarmingUp)
    }

    /// The time that its wait share speaks of, by the wall clock.
    fn window(&self) -> Option<(SystemTime, SystemTime)> {
        let seconds = Duration::try_from_secs_f64(self.model.window()?.seconds).ok()?;
        let to = self.model.sample()?.at.wall;
        Some((to.checked_sub(seconds)?, to))
    }

    /// The share of a time in which the job waited, by its own measure.
    fn waited(&self, (from, to): (SystemTime, SystemTime)) -> Option<Share> {
        let began = self.began?;
        // What ended last says how far the reports reach.
        let to = to.min(began + self.waits.last()?.to);
        let within = |wait: &Wait| {
            let (from, to) = ((began + wait.from).max(from), (began + wait.to).min(to));
            to.duration_since(from).unwrap_or_default()
        };
        let waited: Duration = self.waits.iter().map(within).sum();
        Share::of(
            waited.as_secs_f64(),
            to.duration_since(from).ok()?.as_secs_f64(),
        )
    }

    fn finding(self) -> Option<Finding> {
        let verdict = self.verdict?;
        Some(Finding {
            kind: verdict.kind,
            cause: verdict.cause,
            wait: verdict.wait.map(|wait| wait.share),
        })
    }
}

/// The head of the table.
pub fn head() -> String {
    line([
        "PRESET", "EXPECTED", "VERDICT", "CAUSE", "WAIT", "SEEN", "OFF", "SEEN AS",
    ])
}

/// A line of the table.
pub fn text(row: &Row) -> String {
    let share = |share: Option<Share>| share.map_or("n/a".to_owned(), |share| share.to_string());
    let cause = row
        .told
        .cause
        .map_or("-".to_owned(), |cause| cause.to_string());
    let off = row.error().map(|error| format!("{:+.1}", error * 100.0));
    let verdict = row.told.kind.to_string();
    line([
        row.preset,
        row.expected,
        if row.right() { &verdict } else { "WRONG" },
        &cause,
        &share(row.told.wait),
        &share(row.seen.wait),
        off.as_deref().unwrap_or("n/a"),
        &row.seen.kind.to_string(),
    ])
}

/// What the table says in all.
pub fn foot(rows: &[Row]) -> String {
    let right = rows.iter().filter(|row| row.right()).count();
    let largest = rows
        .iter()
        .filter_map(Row::error)
        .map(f64::abs)
        .fold(0.0, f64::max);
    let mut text = format!("{right} of {} verdicts are right; ", rows.len());
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "the wait share seen from outside is off by {:.1} points at most",
        largest * 100.0
    );
    text
}

fn line(cells: [&str; 8]) -> String {
    let [preset, expected, verdict, cause, wait, seen, off, as_kind] = cells;
    let text = format!(
        "{preset:<15}{expected:<15}{verdict:<15}{cause:<20}{wait:>6}{seen:>7}{off:>7}  {as_kind}"
    );
    format!("{}\n", text.trim_end())
}

/// The document of `--json`.
pub fn json(rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "preset": row.preset,
            "expected": row.expected,
            "kind": row.told.kind,
            "cause": row.told.cause,
            "wait_share": row.seen.wait,
            "wait_share_exact": row.told.wait,
            "kind_from_outside": row.seen.kind,
            "cause_from_outside": row.seen.cause,
            "right": row.right(),
        })
    };
    json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
}
