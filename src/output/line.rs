//! One plain line per interval, for a stdout that is not a terminal: a log, a pipe, a CI run.
//!
//! Waits, steps and batches cover the verdict's window, since an interval may contain less than a batch; all other
//! figures cover the last interval. Figures of a rank are those of the rank that the verdict is about.

use std::time::Duration;

use super::format::{batches_per_second, bytes_per_second, ms, percent, ready};
use crate::report::{Headline, Report};
use crate::units::known;

/// Returns the line of an interval:
/// `12 s  wait 63 %  queue 0.4 of 8  step 38 ms  9.7 batches/s  gpu 37 %  disk 212 MB/s  DATA-BOUND ...`
pub(crate) fn line(report: &Report, interval: Duration) -> String {
    let latest = &report.latest;
    let at = time(latest.at_seconds.unwrap_or_default(), interval);
    let Some(job) = &report.job else {
        return format!("{at}  {}", no_job(report));
    };
    let judgement = judgement(&report.verdict.headline);
    if job.ended {
        return format!("{at}  the job has ended; last verdict: {judgement}");
    }
    let rank = report.judged_rank();
    let mut numbered = job.numbered_ranks().filter(|_| job.ranks.len() > 1);
    let named = numbered.find(|(_, of)| rank.is_some_and(|rank| rank.pid == of.pid));
    let named = named.and_then(|(number, _)| Some(format!("rank {}  ", number?)));
    let step = rank.map(|rank| &rank.step);
    // A short interval may have no poll of the queue.
    let queue = latest
        .queue
        .as_ref()
        .or(rank.and_then(|rank| rank.queue.as_ref()));
    format!(
        "{at}  {}wait {}  queue {}  step {}  {}  gpu {}  disk {}  {judgement}",
        named.unwrap_or_default(),
        known(rank.and_then(|rank| rank.wait_share)),
        known(queue.map(ready)),
        ms(step.and_then(|step| step.step_ms)),
        batches_per_second(step.and_then(|step| step.batches_per_s)),
        percent(latest.gpu_util_percent),
        bytes_per_second(latest.read_bytes_per_s),
    )
}

/// Returns `12 s`; `12.0 s` where the interval is no whole number of seconds. A sample that comes late does not matter.
pub(crate) fn time(seconds: f64, interval: Duration) -> String {
    let decimals = usize::from(interval.subsec_nanos() > 0);
    format!("{seconds:.decimals$} s")
}

/// Returns for example `DATA-BOUND (CPU preprocessing)  88 % sure`; without an answer, the reason replaces the
/// certainty.
fn judgement(headline: &Headline) -> String {
    let Headline {
        kind,
        loss: [_, short, shortest],
        cause,
        certainty,
    } = headline;
    let cause = cause
        .as_ref()
        .map_or_else(String::new, |cause| format!(" ({cause})"));
    // A line of a log has more room than the smallest screen.
    let why = if shortest.is_empty() { short } else { shortest };
    let certainty = certainty.as_ref().unwrap_or(why);
    format!("{kind}{cause}  {certainty}").trim_end().to_owned()
}

/// Returns why no job is watched.
fn no_job(report: &Report) -> String {
    let jobs: Vec<String> = report
        .candidates
        .iter()
        .map(|job| job.pid.to_string())
        .collect();
    if jobs.is_empty() {
        let why = report.gaps.iter().find(|gap| gap.source == "job");
        let why = why.map_or_else(String::new, |gap| format!(": {}", gap.reason));
        return format!("no training job yet{why}");
    }
    format!(
        "several training jobs, none chosen: {} (watch one with `pipetop PID`)",
        jobs.join(", ")
    )
}
