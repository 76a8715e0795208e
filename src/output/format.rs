//! Formats figures and sentences of the report, the same for every output.
//!
//! Does not depend on columns or markup. Each output adds its own labels.

use crate::job::script;
use crate::report::{
    DiskReport, GpuReport, HostReport, JobReport, QueueReport, RankReport, Report, RunSource,
    VerdictReport, WorkerReport,
};

use crate::units::{BytesPerSecond, known, shortened};

/// Returns the command without its interpreter, for example `train.py --lr 1`. A long line is cut at the end.
pub(crate) fn command(line: &str) -> String {
    const MAX_CHARACTERS: usize = 100;
    shortened(&script(line), MAX_CHARACTERS, " ...")
}

/// Returns the name that a scheduler gave the job; `None` for a plain process.
pub(super) fn run(job: &JobReport) -> Option<&str> {
    let run = job.run.as_ref()?;
    (run.source != RunSource::Process).then_some(run.id.as_str())
}

/// Formats milliseconds, for example `412 ms`; below ten with one decimal.
pub(super) fn ms(value: Option<f64>) -> String {
    known(value.map(|ms| format!("{ms:.*} ms", usize::from(ms < 9.95))))
}

/// Formats a rate, for example `9.7 batches/s`.
pub(super) fn batches_per_second(rate: Option<f64>) -> String {
    format!("{} batches/s", known(rate.map(|rate| format!("{rate:.1}"))))
}

/// Formats a rate, for example `212 MB/s`.
pub(super) fn bytes_per_second(rate: Option<u64>) -> String {
    known(rate.map(|rate| BytesPerSecond(rate as f64)))
}

/// Formats percent, for example `63 %`.
pub(super) fn percent(percent: Option<f64>) -> String {
    whole(percent, "%")
}

fn whole(value: Option<f64>, unit: &str) -> String {
    known(value.map(|value| format!("{value:.0} {unit}")))
}

/// Formats the fill level of a queue, for example `0.4 of 8`.
pub(super) fn ready(queue: &QueueReport) -> String {
    format!("{:.1} of {}", queue.ready, known(queue.capacity))
}

/// Formats a queue, for example `0.4 of 8, empty 91 %`.
pub(super) fn queue(queue: Option<&QueueReport>) -> String {
    known(queue.map(|queue| format!("{}, empty {}", ready(queue), queue.empty_share)))
}

/// Returns advice and evidence in order of importance, each with its label.
pub(super) fn reasons(verdict: &VerdictReport) -> impl Iterator<Item = (&'static str, &str)> {
    let advice = verdict.advice.iter().map(|advice| ("do", advice.as_str()));
    let evidence = verdict.evidence.iter().map(|fact| {
        let side = if fact.supports { "for" } else { "but" };
        (side, fact.text.as_str())
    });
    advice.chain(evidence)
}

/// Returns everything that could not be read, why, and how to get it, each once: the verdict repeats the gaps that
/// concern it.
pub(super) fn unseen(report: &Report) -> Vec<String> {
    let missing = &report.verdict.missing;
    let known = |what: &str| missing.iter().any(|signal| signal.id == what);
    let gaps = report.gaps.iter();
    let gaps = gaps.filter(|gap| !known(&gap.source) && !gap.is_no_gpu());
    let gaps = gaps.map(|gap| [&gap.source, &gap.reason, &gap.hint]);
    let missing = missing.iter();
    let missing = missing.map(|signal| [&signal.id, &signal.why, &signal.hint]);
    let line = |[what, why, hint]: [&String; 3]| match hint.as_str() {
        "" => format!("{what}: {why}"),
        hint => format!("{what}: {why} ({hint})"),
    };
    missing.chain(gaps).map(line).collect()
}

/// Returns wait share, step, wait, load and rate of a rank.
pub(super) fn rank(rank: &RankReport) -> [String; 5] {
    [
        known(rank.wait_share),
        ms(rank.step.step_ms),
        ms(rank.step.wait_ms),
        ms(rank.step.load_ms),
        batches_per_second(rank.step.batches_per_s),
    ]
}

/// Returns CPU, busy share, reads, rate and load time of a worker.
pub(super) fn worker(worker: &WorkerReport) -> [String; 5] {
    [
        percent(worker.cpu_percent),
        known(worker.busy_share),
        bytes_per_second(worker.read_bytes_per_s),
        batches_per_second(worker.batches_per_s),
        ms(worker.load_ms),
    ]
}

/// Returns utilisation, memory, power and temperature of a GPU.
pub(super) fn gpu(gpu: &GpuReport) -> [String; 4] {
    let memory = [gpu.mem_used_bytes, gpu.mem_total_bytes].map(known);
    [
        percent(gpu.util_percent),
        memory.join(" of "),
        whole(gpu.power_watts, "W"),
        whole(gpu.temperature_c, "C"),
    ]
}

/// Returns reads, writes, utilisation and request time of a disk.
pub(super) fn disk(disk: &DiskReport) -> [String; 4] {
    [
        bytes_per_second(disk.read_bytes_per_s),
        bytes_per_second(disk.write_bytes_per_s),
        percent(disk.util_percent),
        ms(disk.await_ms),
    ]
}

/// Returns the disks that hold files of the job; the others are left out.
pub(super) fn disks(report: &Report) -> impl Iterator<Item = &DiskReport> {
    report.disks.iter().filter(|disk| disk.holds_job_files)
}

/// Returns CPU, and pressure on CPU, I/O and memory.
pub(super) fn host(host: &HostReport) -> [String; 4] {
    [
        percent(host.cpu_percent),
        known(host.psi.cpu),
        known(host.psi.io),
        known(host.psi.memory),
    ]
}
