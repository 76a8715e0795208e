//! The report of `--once` for a human: the verdict first, then what it rests on, in the order of the
//! data's way.

use crate::model::Model;
use crate::model::rates::{
    DeviceRates, GpuRates, JobRates, LoaderRates, RankRates, Rates, WorkerRates,
};
use crate::report::{certainty, loss, ms, or_unknown, per_second, queue, wait_share};
use crate::sample::{Gap, LoaderKind};
use crate::units::Share;
use crate::verdict::Verdict;

/// A page of plain text that ends with a line end.
pub fn text(model: &Model, verdict: &Verdict) -> String {
    let rates = model.window().or_else(|| model.latest());
    let job = rates.and_then(|rates| rates.job.as_ref());
    let mut lines = vec![heading(job, verdict)];
    lines.extend(judgement(verdict));
    if rates.is_some() {
        lines.push(String::new());
    }
    for rank in job.iter().flat_map(|job| &job.ranks) {
        lines.extend(self::rank(rank));
    }
    if let Some(rates) = rates {
        lines.extend(machine(rates));
    }
    for missing in &verdict.missing {
        lines.push(entry(
            "not seen",
            &because(&missing.id, &missing.why, &missing.hint),
        ));
    }
    let sample = model.sample();
    // The verdict passes on what it missed itself.
    let told = |gap: &&Gap| !verdict.missing.iter().any(|signal| signal.id == gap.source);
    for gap in sample.iter().flat_map(|sample| &sample.gaps).filter(told) {
        lines.push(entry(
            "not seen",
            &because(&gap.source, &gap.reason, &gap.hint),
        ));
    }
    for job in sample.iter().flat_map(|sample| &sample.candidates) {
        let who = format!(
            "{} ranks, {} workers: {}",
            job.ranks, job.workers, job.command
        );
        lines.push(entry(&format!("pipetop {}", job.pid), &format!("  {who}")));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn heading(job: Option<&JobRates>, verdict: &Verdict) -> String {
    let Some(job) = job else {
        return "no job is watched".to_owned();
    };
    format!(
        "{}  pid {}  {} seen in {:.0} s  access {:?}{}",
        job.command,
        job.key.pid,
        or_unknown(verdict.batches.map(|batches| format!("{batches} batches"))),
        verdict.seconds,
        job.access,
        if job.ended { "  ended" } else { "" },
    )
}

fn judgement(verdict: &Verdict) -> Vec<String> {
    let mut sentence = vec![verdict.kind.words().to_owned(), loss(verdict)];
    sentence.extend(
        verdict
            .cause
            .map(|cause| format!("cause: {}", cause.words())),
    );
    sentence.push(certainty(verdict));
    sentence.retain(|part| !part.is_empty());
    let mut lines = vec![sentence.join("   ")];
    lines.extend(verdict.advice.iter().map(|advice| entry("do", advice)));
    for fact in &verdict.evidence {
        let side = if fact.supports { "for" } else { "but" };
        lines.push(entry(side, &fact.text));
    }
    lines
}

fn rank(rank: &RankRates) -> Vec<String> {
    let name = rank
        .rank
        .map_or_else(|| "trainer".to_owned(), |rank| format!("rank {rank}"));
    let step = rank.step;
    let mut lines = vec![entry(
        &name,
        &format!(
            "wait {}   step {}   wait {}   load {}   {}",
            or_unknown(wait_share(rank)),
            ms(step.step_ms),
            ms(step.wait_ms),
            ms(step.load_ms),
            per_second(step.batches_per_s, "batches"),
        ),
    )];
    if let Some(loader) = rank.busiest_loader() {
        lines.push(entry("loader", &settings(loader)));
        lines.push(entry("queue", &queue(rank)));
        lines.extend(loader.workers.iter().map(worker));
    }
    lines.extend(rank.device.as_ref().map(device));
    lines
}

/// What the rank computes on, in its own words.
fn device(device: &DeviceRates) -> String {
    let parts = [
        Some(or_unknown(device.name.as_ref())),
        Some(format!("busy {}", or_unknown(device.busy))),
        Some(format!("copy {}", or_unknown(device.copying))),
        device.notice.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    entry("device", &parts.join("   "))
}

fn settings(loader: &LoaderRates) -> String {
    let settings = &loader.settings;
    let kind = match loader.kind {
        LoaderKind::PytorchProcesses => "PyTorch DataLoader",
        LoaderKind::PytorchMain => "PyTorch DataLoader in the main thread",
        LoaderKind::Builtin => "built-in loader",
        LoaderKind::Reported => "known by the job's own reports",
    };
    let parts = [
        Some(kind.to_owned()),
        settings.num_workers.map(|count| format!("{count} workers")),
        settings
            .prefetch_factor
            .map(|factor| format!("prefetch {factor}")),
        settings.batch_size.map(|size| format!("batch {size}")),
        settings
            .pin_memory
            .filter(|pinned| *pinned)
            .map(|_| "pinned".to_owned()),
        settings.start_method.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

fn worker(worker: &WorkerRates) -> String {
    let activity = worker.activity.first().map_or_else(String::new, |hottest| {
        format!("   in {} {}", hottest.name, hottest.share)
    });
    let figures = format!(
        "pid {}   CPU {}   busy {}   read {}   {}   load {}{activity}",
        worker.key.pid,
        or_unknown(worker.cpu.map(Share)),
        or_unknown(worker.busy),
        or_unknown(worker.read),
        per_second(worker.batches_per_s, "batches"),
        ms(worker.load_ms),
    );
    entry(&format!("worker {}", worker.id), &figures)
}

fn machine(rates: &Rates) -> Vec<String> {
    let mut lines: Vec<String> = rates.gpus.iter().map(gpu).collect();
    for disk in rates.disks.iter().filter(|disk| disk.holds_job_files) {
        let figures = format!(
            "{}   read {}   write {}   util {}   wait {}",
            disk.device,
            disk.read,
            disk.write,
            disk.util,
            ms(disk.await_ms),
        );
        lines.push(entry("disk", &figures));
    }
    let host = &rates.host;
    let figures = format!(
        "CPU {}   pressure cpu {}   io {}   memory {}   own cost {}",
        or_unknown(host.cpu),
        or_unknown(host.pressure_cpu),
        or_unknown(host.pressure_io),
        or_unknown(host.pressure_memory),
        or_unknown(rates.own_cpu.map(|cpu| format!("{:.1} %", cpu.percent()))),
    );
    lines.push(entry("host", &figures));
    lines
}

fn gpu(gpu: &GpuRates) -> String {
    let now = &gpu.now;
    let whole = |value: Option<f64>, unit: &str| {
        or_unknown(value.map(|value| format!("{value:.0} {unit}")))
    };
    let gap = now
        .gap
        .as_ref()
        .map_or_else(String::new, |gap| format!("   {gap}"));
    let figures = format!(
        "{}   util {}   memory {} of {}   {}   {}{gap}",
        or_unknown(now.name.as_ref()),
        whole(gpu.util_percent, "%"),
        or_unknown(now.mem_used),
        or_unknown(now.mem_total),
        whole(now.power_watts, "W"),
        whole(now.temperature_c, "C"),
    );
    entry(&format!("GPU {}", now.index), &figures)
}

fn because(what: &str, why: &str, hint: &str) -> String {
    let hint = if hint.is_empty() {
        String::new()
    } else {
        format!(" ({hint})")
    };
    format!("{what}: {why}{hint}")
}

fn entry(name: &str, text: &str) -> String {
    format!("{name:<9} {text}")
}
