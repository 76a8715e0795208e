//! Jobs on a real GPU against their own figures: when they waited, and when the GPU worked according to its events.

use std::path::Path;
use std::process::Command;

use support::machine::{Share, last_torch, note};

use crate::job::Job;
use crate::report::Report;
use crate::trial::{Outcome, PIPETOP, ensure};
use crate::truth::Truth;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/torch/loaders/on_a_gpu.py"
);
/// Tolerance between two shares that should be the same.
const NEAR: f64 = 0.04;
const STEADY: usize = 20;
const SECONDS: u32 = 14;

/// Situations of the script, with the right kind and cause. `None` = any cause.
const JOBS: [(&str, &str, Option<&str>); 14] = [
    ("synchronises", "data-bound", None),
    ("runs-ahead", "data-bound", None),
    ("pins", "data-bound", None),
    ("decodes", "data-bound", Some("cpu-preprocess")),
    ("many-workers", "data-bound", Some("cpu-preprocess")),
    ("fed", "compute-bound", None),
    ("fed-and-ahead", "compute-bound", None),
    ("receives", "balanced", None),
    ("short-steps", "data-bound", None),
    ("launches", "host-bound", Some("launch")),
    ("copies", "host-bound", Some("transfer")),
    ("pageable", "host-bound", Some("transfer")),
    ("learns", "data-bound", None),
    ("learns-and-fed", "compute-bound", None),
];

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn jobs_on_a_gpu_are_judged_by_what_it_does() {
    last_torch(Share::Whole, |python| {
        let failed: Vec<String> = JOBS
            .iter()
            .filter_map(|job| run(&python.path, *job).err())
            .collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    });
}

fn run(python: &str, (situation, kind, cause): (&str, &str, Option<&str>)) -> Outcome {
    let arguments = [situation.to_owned()];
    let mut job = Job::script(python, &[], Share::Whole, Path::new(SCRIPT), &arguments)?;
    job.reach(STEADY, None)?;
    let report = Report::of(Command::new(PIPETOP), job.pid(), SECONDS)?;
    let (to, number) = (report.ended, |at: &str| {
        report.number(at).unwrap_or(f64::NAN)
    });
    let from = to - number("/window/seconds");
    let truth = job.truth(None);
    let waited = truth.wait_share(from, to);
    let idle = idle(&job.file("device"));
    let lost = lost(&truth, &idle, from, to);
    let (share, low, high) = (
        number("/verdict/stall_share"),
        number("/verdict/stall_interval/0"),
        number("/verdict/stall_interval/1"),
    );
    let found = (report.kind(), report.text("/verdict/cause"));
    note(&format!(
        "{situation}: {found:?} wait {:.3} ({waited:.3}), lost {share:.3} in {low:.3} to {high:.3} ({lost:.3}), idle {:.3}",
        number("/verdict/wait_share"),
        number("/verdict/gpu_idle_share"),
    ));
    let say = |what: &str| format!("{situation}: {what}\n{:#}", report.document["verdict"]);
    ensure(found.0 == kind, || say("the kind"))?;
    ensure(cause.is_none_or(|cause| found.1 == cause), || {
        say("the cause")
    })?;
    let near = (number("/verdict/wait_share") - waited).abs() <= NEAR;
    ensure(near, || say("the waits"))?;
    let inside = (low - NEAR..=high + NEAR).contains(&lost);
    ensure(inside, || say("what is lost"))
}

/// Returns the intervals in which the GPU was idle, from the script's lines `busy FROM TO`.
fn idle(marks: &str) -> Vec<(f64, f64)> {
    let whole = marks.rfind('\n').map_or("", |end| &marks[..end]);
    let busy = whole.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1).map(|word| word.parse().ok());
        Some((words.next()??, words.next()??))
    });
    let busy: Vec<(f64, f64)> = busy.collect();
    let pairs = busy.iter().zip(busy.iter().skip(1));
    pairs
        .filter(|((_, end), (begin, _))| begin > end)
        .map(|((_, end), (begin, _))| (*end, *begin))
        .collect()
}

/// Returns the share of the time between the two moments in which the script waited and the GPU was idle.
fn lost(truth: &Truth, idle: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let inside = idle
        .iter()
        .filter(|(begin, end)| *begin >= from && *end <= to);
    let both: f64 = inside
        .map(|(begin, end)| truth.wait_share(*begin, *end) * (end - begin))
        .sum();
    both / (to - from)
}
