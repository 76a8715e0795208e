//! One plain line per interval, for a stdout that is no terminal: a log, a pipe, a CI run.
//!
//! Figures are of the last interval; the verdict is of its window.

use crate::model::Model;
use crate::report::{certainty, ms, or_unknown, per_second, wait_share};
use crate::units::BytesPerSecond;
use crate::verdict::Verdict;

/// `12 s  wait 63 %  queue 0.4 of 8  step 38 ms  9.7 batches/s  gpu 37 %  disk 212 MB/s  DATA-BOUND ...`
pub fn line(model: &Model, verdict: &Verdict) -> String {
    let seconds = model
        .sample()
        .map_or(0.0, |sample| sample.at.since_start.as_secs_f64());
    let cause = verdict
        .cause
        .map_or_else(String::new, |cause| format!(" ({})", cause.words()));
    let judgement = format!("{}{cause}  {}", verdict.kind.words(), certainty(verdict));
    let rates = model.latest();
    let job = rates.and_then(|rates| rates.job.as_ref());
    if job.is_none() {
        return format!("{seconds:.0} s  {}", looking(model));
    }
    if job.is_some_and(|job| job.ended) {
        return format!("{seconds:.0} s  the job has ended; it was {judgement}");
    }
    let rank = job.and_then(|job| job.ranks.first());
    let step = rank.map(|rank| rank.step).unwrap_or_default();
    let queue = rank
        .and_then(|rank| rank.busiest_loader()?.queue)
        .map(|queue| format!("{:.1} of {}", queue.mean_ready, or_unknown(queue.capacity)));
    let gpus = rates.map_or(&[][..], |rates| &rates.gpus);
    let utils: Vec<f64> = gpus.iter().filter_map(|gpu| gpu.util_percent).collect();
    let util = utils.iter().sum::<f64>() / utils.len() as f64;
    let util = (!utils.is_empty()).then(|| format!("{util:.0} %"));
    let read: Option<BytesPerSecond> = job.and_then(|job| job.read);
    format!(
        "{seconds:.0} s  wait {}  queue {}  step {}  {}  gpu {}  disk {}  {judgement}",
        or_unknown(rank.and_then(wait_share)),
        or_unknown(queue),
        ms(step.step_ms),
        per_second(step.batches_per_s, "batches"),
        or_unknown(util),
        or_unknown(read),
    )
}

/// Why there is no job to speak of.
fn looking(model: &Model) -> String {
    let jobs = model.sample().map_or(&[][..], |sample| &sample.candidates);
    let jobs: Vec<String> = jobs.iter().map(|job| job.pid.to_string()).collect();
    if jobs.is_empty() {
        return "no training job yet".to_owned();
    }
    format!(
        "several training jobs, name one: pipetop {}",
        jobs.join(" or ")
    )
}
