//! How figures and sentences of the report read, the same in every output.
//!
//! Knows neither columns nor markup. Each output puts its own labels around these.

use std::fmt::Display;

use crate::job::script;
use crate::report::{
    DiskReport, GpuReport, Headline, HostReport, JobReport, QueueReport, RankReport, Report,
    RunSource, VerdictReport, WorkerReport,
};

use crate::units::BytesPerSecond;

/// The value, or `n/a`.
pub(super) fn or_unknown<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "n/a".to_owned(), |value| value.to_string())
}

/// What runs, without its interpreter: `train.py --lr 1`. Of a long line its beginning.
pub(crate) fn command(line: &str) -> String {
    const LONGEST: usize = 100;
    let script = script(line);
    match script.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &script[..end]),
        None => script,
    }
}

/// The name that a scheduler gave the job; a process has none but its number.
pub(super) fn run(job: &JobReport) -> Option<&str> {
    let run = job.run.as_ref()?;
    (run.source != RunSource::Process).then_some(run.id.as_str())
}

/// `1 worker`, `8 workers`
pub(super) fn count(number: impl Into<u64>, what: &str) -> String {
    let number = number.into();
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// `412 ms`; below ten with one decimal.
pub(super) fn ms(value: Option<f64>) -> String {
    or_unknown(value.map(|ms| format!("{ms:.*} ms", usize::from(ms < 9.95))))
}

/// `9.7 batches/s`
pub(super) fn batches_per_second(rate: Option<f64>) -> String {
    format!(
        "{} batches/s",
        or_unknown(rate.map(|rate| format!("{rate:.1}")))
    )
}

/// `212 MB/s`
pub(super) fn bytes_per_second(rate: Option<u64>) -> String {
    or_unknown(rate.map(|rate| BytesPerSecond(rate as f64)))
}

/// `63 %`
pub(super) fn percent(percent: Option<f64>) -> String {
    whole(percent, "%")
}

fn whole(value: Option<f64>, unit: &str) -> String {
    or_unknown(value.map(|value| format!("{value:.0} {unit}")))
}

/// `0.4 of 8`
pub(super) fn ready(queue: &QueueReport) -> String {
    format!("{:.1} of {}", queue.ready, or_unknown(queue.capacity))
}

/// `0.4 of 8, empty 91 %`
pub(super) fn queue(queue: Option<&QueueReport>) -> String {
    or_unknown(queue.map(|queue| format!("{}, empty {}", ready(queue), queue.empty_share)))
}

/// The verdict in parts: what is lost, why, and how sure that is. Left out is what is not known.
pub(super) fn judgement(verdict: &VerdictReport) -> Vec<String> {
    let Headline {
        loss: [loss, ..],
        cause,
        certainty,
        ..
    } = &verdict.headline;
    let cause = cause.as_ref().map(|cause| format!("cause: {cause}"));
    let parts = [Some(loss.clone()), cause, certainty.clone()];
    parts.into_iter().flatten().collect()
}

/// Advice and evidence in the order of their weight, each with its label.
pub(super) fn reasons(verdict: &VerdictReport) -> impl Iterator<Item = (&'static str, &str)> {
    let advice = verdict.advice.iter().map(|advice| ("do", advice.as_str()));
    let evidence = verdict.evidence.iter().map(|fact| {
        let side = if fact.supports { "for" } else { "but" };
        (side, fact.text.as_str())
    });
    advice.chain(evidence)
}

/// Something that could not be read.
pub(super) struct Unseen<'a> {
    pub(super) what: &'a str,
    pub(super) why: &'a str,
    /// What would change that; empty where nothing would.
    pub(super) hint: &'a str,
}

/// Everything that could not be read, each once: the verdict repeats the gaps that concern it.
pub(super) fn unseen(report: &Report) -> Vec<Unseen<'_>> {
    let missing = &report.verdict.missing;
    let known = |what: &str| missing.iter().any(|signal| signal.id == what);
    let gaps = report.gaps.iter();
    let gaps = gaps.filter(|gap| !known(&gap.source) && !gap.is_no_gpu());
    let gaps = gaps.map(|gap| Unseen {
        what: &gap.source,
        why: &gap.reason,
        hint: &gap.hint,
    });
    let missing = missing.iter().map(|signal| Unseen {
        what: &signal.id,
        why: &signal.why,
        hint: &signal.hint,
    });
    missing.chain(gaps).collect()
}

/// Wait share, step, wait, load and rate of a rank.
pub(super) fn rank(rank: &RankReport) -> [String; 5] {
    [
        or_unknown(rank.wait_share),
        ms(rank.step.step_ms),
        ms(rank.step.wait_ms),
        ms(rank.step.load_ms),
        batches_per_second(rank.step.batches_per_s),
    ]
}

/// CPU, busy share, reads, rate and load time of a worker.
pub(super) fn worker(worker: &WorkerReport) -> [String; 5] {
    [
        percent(worker.cpu_percent),
        or_unknown(worker.busy_share),
        bytes_per_second(worker.read_bytes_per_s),
        batches_per_second(worker.batches_per_s),
        ms(worker.load_ms),
    ]
}

/// Utilisation, memory, power and temperature of a GPU.
pub(super) fn gpu(gpu: &GpuReport) -> [String; 4] {
    let memory = [gpu.mem_used_bytes, gpu.mem_total_bytes].map(or_unknown);
    [
        percent(gpu.util_percent),
        memory.join(" of "),
        whole(gpu.power_watts, "W"),
        whole(gpu.temperature_c, "C"),
    ]
}

/// Reads, writes, utilisation and time of a request of a disk.
pub(super) fn disk(disk: &DiskReport) -> [String; 4] {
    [
        bytes_per_second(disk.read_bytes_per_s),
        bytes_per_second(disk.write_bytes_per_s),
        percent(disk.util_percent),
        ms(disk.await_ms),
    ]
}

/// Disks that hold files of the job: the others are not worth a line.
pub(super) fn disks(report: &Report) -> impl Iterator<Item = &DiskReport> {
    report.disks.iter().filter(|disk| disk.holds_job_files)
}

/// CPU, and pressure on CPU, I/O and memory.
pub(super) fn host(host: &HostReport) -> [String; 4] {
    [
        percent(host.cpu_percent),
        or_unknown(host.psi.cpu),
        or_unknown(host.psi.io),
        or_unknown(host.psi.memory),
    ]
}
