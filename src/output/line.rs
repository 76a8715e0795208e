//! One plain line per interval, for a stdout that is no terminal: a log, a pipe, a CI run.
//!
//! Waits, steps and batches are of the verdict's window, since an interval may hold less than a batch; all else is of
//! the last interval.

use super::format::{batches_per_second, bytes_per_second, ms, or_unknown, percent, ready};
use crate::report::{Headline, Report};

/// `12 s  wait 63 %  queue 0.4 of 8  step 38 ms  9.7 batches/s  gpu 37 %  disk 212 MB/s  DATA-BOUND ...`
pub(crate) fn line(report: &Report) -> String {
    let latest = &report.latest;
    let seconds = latest.at_seconds.unwrap_or_default();
    let Some(job) = &report.job else {
        return format!("{seconds:.0} s  {}", no_job(report));
    };
    let judgement = judgement(&report.verdict.headline);
    if job.ended {
        return format!("{seconds:.0} s  the job has ended; last verdict: {judgement}");
    }
    let rank = job.ranks.first();
    let step = rank.map(|rank| &rank.step);
    // A short interval may hold no poll at the queue.
    let queue = latest
        .queue
        .as_ref()
        .or(rank.and_then(|rank| rank.queue.as_ref()));
    format!(
        "{seconds:.0} s  wait {}  queue {}  step {}  {}  gpu {}  disk {}  {judgement}",
        or_unknown(rank.and_then(|rank| rank.wait_share)),
        or_unknown(queue.map(ready)),
        ms(step.and_then(|step| step.step_ms)),
        batches_per_second(step.and_then(|step| step.batches_per_s)),
        percent(latest.gpu_util_percent),
        bytes_per_second(latest.read_bytes_per_s),
    )
}

/// `DATA-BOUND (CPU preprocessing)  88 % sure`; without an answer, in place of how sure, why.
fn judgement(headline: &Headline) -> String {
    let Headline {
        kind,
        loss: [.., why],
        cause,
        certainty,
    } = headline;
    let cause = cause
        .as_ref()
        .map_or_else(String::new, |cause| format!(" ({cause})"));
    let certainty = certainty.as_ref().unwrap_or(why);
    format!("{kind}{cause}  {certainty}").trim_end().to_owned()
}

/// Why no job is watched.
fn no_job(report: &Report) -> String {
    let jobs: Vec<String> = report
        .candidates
        .iter()
        .map(|job| job.pid.to_string())
        .collect();
    if jobs.is_empty() {
        return "no training job yet".to_owned();
    }
    format!(
        "several training jobs; choose one: pipetop {}",
        jobs.join(" or ")
    )
}
