//! The report of `--once` as text: the verdict first, then its evidence, from trainer to disks.

use super::format;
use crate::report::{
    DeviceReport, DiskReport, GpuReport, JobReport, LoaderKind, LoaderReport, RankReport, Report,
    WorkerReport,
};
use crate::units::{counted, known};

/// Returns a page of plain text that ends with a line end.
pub(crate) fn text(report: &Report) -> String {
    let verdict = &report.verdict;
    let mut lines = vec![heading(report)];
    // Without a job there is nothing to judge.
    if report.job.is_some() {
        lines.push(verdict.headline.line());
        lines.extend(format::reasons(verdict).map(|(side, text)| entry(side, text)));
    }
    // Before the first reading of the machine there are no figures.
    if report.host.cpus.is_some() {
        lines.push(String::new());
        let ranks = report.job.iter().flat_map(JobReport::numbered_ranks);
        for (number, rank) in ranks {
            lines.extend(self::rank(number, rank));
        }
        lines.extend(report.gpus.iter().map(gpu));
        lines.extend(format::disks(report).map(disk));
        lines.push(host(report));
    }
    let unseen = format::unseen(report);
    lines.extend(unseen.iter().map(|text| entry("not seen", text)));
    for job in &report.candidates {
        let ranks = counted(job.ranks, "rank");
        let workers = counted(job.workers, "worker");
        let who = format!("  {ranks}, {workers}: {}", format::command(&job.command));
        lines.push(entry(&format!("pid {}", job.pid), &who));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn heading(report: &Report) -> String {
    let Some(job) = &report.job else {
        return "no job is watched".to_owned();
    };
    let window = &report.window;
    let seen = match window.batches {
        Some(1) => format!("1 batch seen in {}", counted_time(report, 1)),
        Some(batches) => format!(
            "{batches} batches seen in {}",
            counted_time(report, batches)
        ),
        None => format!("watched for {:.0} s, batches n/a", window.seconds),
    };
    format!(
        "{}  pid {}{}  {seen}  access {}{}",
        format::command(&job.command),
        job.pid,
        format::run(job).map_or_else(String::new, |run| format!("  {run}")),
        known(window.access.map(|access| format!("{access:?}"))),
        if job.ended { "  ended" } else { "" },
    )
}

/// Returns how long the batches were counted, as for the rate below: at first, between epochs and at the job's end nothing
/// may count them.
fn counted_time(report: &Report, batches: u64) -> String {
    let all = report.window.seconds.round();
    let rate = (report.judged_rank()).and_then(|rank| rank.step.batches_per_s);
    let counted = rate.map(|rate| (batches as f64 / rate).round());
    match counted.filter(|counted| *counted < all) {
        Some(counted) => format!("{counted:.0} of {all:.0} s"),
        None => format!("{all:.0} s"),
    }
}

fn rank(number: Option<u32>, rank: &RankReport) -> Vec<String> {
    let name = number.map_or_else(|| "trainer".to_owned(), |number| format!("rank {number}"));
    let [share, step, wait, load, rate] = format::rank(rank);
    let figures = format!("wait {share}   step {step}   wait {wait}   load {load}   {rate}");
    let mut lines = vec![entry(&name, &figures)];
    let main = rank.loader.as_ref();
    let main = main.map(|loader| (loader, &rank.queue, &rank.workers));
    let others = rank.other_loaders.iter();
    let others = others.map(|other| (&other.loader, &other.queue, &other.workers));
    for (loader, queue, workers) in main.into_iter().chain(others) {
        lines.push(self::loader(loader, !rank.other_loaders.is_empty()));
        lines.push(entry("queue", &format::queue(queue.as_ref())));
        lines.extend(workers.iter().map(worker));
    }
    // Leave out a device of which nothing is known.
    let is_known = |device: &&DeviceReport| {
        device.name.is_some() || device.notice.is_some() || device.busy_share.is_some()
    };
    lines.extend(rank.device.as_ref().filter(is_known).map(device));
    lines
}

/// Formats the device that the rank computes on, as the job reports it.
fn device(device: &DeviceReport) -> String {
    let mut parts = vec![
        known(device.name.as_ref()),
        format!("busy {}", known(device.busy_share)),
        format!("copy {}", known(device.copy_share)),
    ];
    parts.extend(device.notice.clone());
    entry("device", &parts.join("   "))
}

/// Formats a loader. `several` adds what distinguishes it from the others of the rank.
fn loader(loader: &LoaderReport, several: bool) -> String {
    let number = loader.number.filter(|_| several);
    let name = number.map_or_else(|| "loader".to_owned(), |number| format!("loader {number}"));
    let mut parts = vec![settings(loader)];
    if several {
        parts.extend(loader.validates.then(|| "validation".to_owned()));
        parts.push(format::batches_per_second(loader.batches_per_s));
        parts.extend(
            loader
                .step_ms
                .map(|step| format!("step {}", format::ms(Some(step)))),
        );
        parts.extend(loader.wait_share.map(|wait| format!("wait {wait}")));
    }
    entry(&name, &parts.join("   "))
}

fn settings(loader: &LoaderReport) -> String {
    let kind = match loader.kind {
        LoaderKind::Other => loader.name.as_deref().unwrap_or("the program's own loader"),
        LoaderKind::PytorchProcesses => "PyTorch DataLoader",
        LoaderKind::Processes => "child processes, of an unknown loader",
        LoaderKind::PytorchMain => "PyTorch DataLoader in the main thread",
        LoaderKind::Builtin => "built-in loader",
        LoaderKind::Reported => "unknown loader; the job reports its steps",
    };
    let settings = &loader.settings;
    let pinned = settings.pin_memory == Some(true);
    let parts = [
        Some(kind.to_owned()),
        settings.num_workers.map(|count| counted(count, "worker")),
        settings
            .prefetch_factor
            .map(|count| format!("prefetch {count}")),
        settings.batch_size.map(|size| format!("batch {size}")),
        pinned.then(|| "pinned".to_owned()),
        settings.start_method.clone(),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

fn worker(worker: &WorkerReport) -> String {
    let hottest = worker.activity.first().map_or_else(String::new, |hottest| {
        format!("   in {} {}", hottest.name, hottest.share)
    });
    let [cpu, busy, read, rate, load] = format::worker(worker);
    let figures = format!(
        "{} {}   CPU {cpu}   busy {busy}   read {read}   {rate}   load {load}{hottest}",
        if worker.thread { "tid" } else { "pid" },
        worker.pid,
    );
    entry(&format!("worker {}", worker.id), &figures)
}

fn gpu(gpu: &GpuReport) -> String {
    let gap = gpu
        .gap
        .as_ref()
        .map_or_else(String::new, |gap| format!("   {gap}"));
    let [util, memory, power, temperature] = format::gpu(gpu);
    let name = known(gpu.name.as_ref());
    let figures = format!(
        "{name}   util {util}   memory {memory}   power {power}   temperature {temperature}{gap}"
    );
    entry(&format!("GPU {}", gpu.index), &figures)
}

fn disk(disk: &DiskReport) -> String {
    let [read, write, util, wait] = format::disk(disk);
    let name = &disk.device;
    let figures = format!("{name}   read {read}   write {write}   util {util}   wait {wait}");
    entry("disk", &figures)
}

fn host(report: &Report) -> String {
    let [cpu, pressure, io, memory] = format::host(&report.host);
    let cost = report.window.own_cpu_percent;
    let cost = known(cost.map(|cost| format!("{cost:.1} %")));
    let figures = format!(
        "CPU {cpu}   pressure cpu {pressure}   io {io}   memory {memory}   own cost {cost}"
    );
    entry("host", &figures)
}

fn entry(name: &str, text: &str) -> String {
    format!("{name:<9} {text}")
}
