//! Where the data comes from: devices, the job's reads, and what the machine lacks.

use ratatui::text::Line;

use super::history::{disk_read, graph, spark};
use super::line_builder::LineBuilder;
use super::panel::{Content, Inside};
use super::{View, axis, format};
use crate::config::Role::{Dim, Read, Text, Trouble};
use crate::model::rates::{DiskRates, JobRates, Rates, WorkerRates};
use crate::units::{mean, sorted};

pub(super) fn wanted(view: &View<'_>, _: u16) -> u16 {
    let Some(rates) = view.figures() else {
        return 1;
    };
    // Devices, the job, its workers, the machine.
    let disks = shown(rates).len().max(1);
    let workers = view
        .loader()
        .is_some_and(|loader| read(&loader.workers).next().is_some());
    super::layout::count(disks + usize::from(rates.job.is_some()) + usize::from(workers) + 1)
}

pub(super) fn content(view: &View<'_>, inside: Inside) -> Content {
    let room = inside.height;
    let start = || inside.row(view);
    let Some(rates) = view.figures() else {
        let line = start().text(Dim, "disk  n/a").line();
        return Content::new("disk", "", vec![line]);
    };
    let disks = shown(rates);
    let mut lines = Vec::new();
    // From three lines on, one is for the job and one for the machine.
    let devices = disks.len().min(room.saturating_sub(2).max(1));
    for disk in disks.iter().take(devices) {
        lines.push(device(view, disk, start(), rates, devices == 1, room == 1));
    }
    if disks.is_empty() {
        let mut row = start();
        row.text(Dim, "disk  ")
            .text(Dim, "no block device holds the job's files");
        lines.push(row.line());
    }
    if let Some(job) = &rates.job {
        lines.push(job_line(job, start()));
    }
    let workers = view.loader().map_or(&[][..], |loader| &loader.workers);
    lines.extend(workers_line(workers, start()));
    lines.push(machine(rates, start()));
    let (left, width) = (room.saturating_sub(lines.len()), inside.width);
    let (_, most) = disk_read(view, usize::from(width));
    let past = |cells| disk_read(view, cells).0;
    let top = format::rate(Some(most));
    lines.extend(graph(view, Read, width, left, (past, &top)));
    Content::new("disk", &view.span(), lines)
}

/// Returns the devices with the job's files, then other busy ones.
fn shown(rates: &Rates) -> Vec<&DiskRates> {
    let busy = |disk: &DiskRates| disk.util.0 >= 0.005 || disk.read.0 + disk.write.0 >= 1000.0;
    let mut disks: Vec<_> = rates
        .disks
        .iter()
        .filter(|disk| disk.holds_job_files || busy(disk))
        .collect();
    disks.sort_by_key(|disk| !disk.holds_job_files);
    if disks.is_empty() {
        disks.extend(rates.disks.first());
    }
    disks.truncate(4);
    disks
}

fn device(
    view: &View<'_>,
    disk: &DiskRates,
    mut row: LineBuilder<'_>,
    rates: &Rates,
    only: bool,
    alone: bool,
) -> Line<'static> {
    row.padded(Text, &disk.device, 8);
    row.text(Dim, " read")
        .right(Read, &format::rate(Some(disk.read.0)), 9);
    let write = format::rate(Some(disk.write.0));
    let tail = [
        ("util ", format!("{:>4}", format::percent(Some(disk.util)))),
        ("wait ", format!("{:>6}", format::millis(disk.await_ms))),
        ("write ", format!("{write:>8}")),
    ];
    let needed = tail
        .iter()
        .map(|(label, text)| 2 + label.len() + text.len());
    let needed: usize = needed.sum();
    let cells = row.left().saturating_sub(needed + 2).min(20);
    if only && !alone && cells >= 4 {
        let (scaled, _) = disk_read(view, cells);
        row.space(2);
        spark(&mut row, Read, &scaled, cells, axis::cursor(view, cells));
    }
    for (label, text) in &tail {
        row.figure(2, label, text);
    }
    let cached = rates.job.as_ref().and_then(cached).filter(|_| alone);
    if let Some(cached) = cached {
        row.figure(2, "cache ", &format!("~{}", format::rate(Some(cached))));
    }
    row.line()
}

/// Returns the bytes that read calls returned without a device: from the page cache, or through pipes. `None` if there
/// are next to none: the few bytes with which processes wake each other are not data.
fn cached(job: &JobRates) -> Option<f64> {
    Some((job.rchar?.0 - job.read?.0).max(0.0)).filter(|rate| *rate >= 1000.0)
}

fn job_line(job: &JobRates, mut row: LineBuilder<'_>) -> Line<'static> {
    row.padded(Dim, "job", 8).text(Dim, " read");
    row.right(Read, &format::rate(job.read.map(|rate| rate.0)), 9)
        .text(Dim, " from disk");
    if let Some(cached) = cached(job) {
        let cached = format!("~{}", format::rate(Some(cached)));
        row.item(2, &[(Text, &cached), (Dim, " from cache")]);
    }
    row.line()
}

/// Returns what each worker reads, in bytes per second, if that is known.
fn read(workers: &[WorkerRates]) -> impl Iterator<Item = f64> {
    workers.iter().filter_map(|worker| Some(worker.read?.0))
}

/// Draws `workers  53 MB/s each` or `worker  53 MB/s`, and the lowest and highest rate if they differ.
fn workers_line(workers: &[WorkerRates], mut row: LineBuilder<'_>) -> Option<Line<'static>> {
    let rates = sorted(read(workers));
    let (low, high) = (*rates.first()?, *rates.last()?);
    let (name, each) = match workers.len() {
        1 => ("worker", ""),
        _ => ("workers", " each"),
    };
    row.padded(Dim, name, 8).text(Dim, " read");
    row.right(Read, &format::rate(mean(rates)), 9)
        .text(Dim, each);
    if high > low * 1.2 + 1000.0 {
        let ends = format!(
            "{} to {}",
            format::bytes(Some(low)),
            format::rate(Some(high))
        );
        row.figure(2, "from ", &ends);
    }
    Some(row.line())
}

/// Returns the resources that the machine, or the job's cgroup, lacks.
fn machine(rates: &Rates, mut row: LineBuilder<'_>) -> Line<'static> {
    let host = &rates.host;
    let pressures = [
        ("cpu ", host.pressure_cpu),
        ("io ", host.pressure_io),
        ("memory ", host.pressure_memory),
    ];
    row.padded(Dim, "pressure", 9);
    if pressures.iter().all(|(_, share)| share.is_none()) {
        row.text(Dim, format::UNKNOWN);
    } else {
        for (gap, (label, share)) in [0, 2, 2].into_iter().zip(pressures) {
            row.space(gap);
            row.figure(0, label, &format::percent(share));
        }
    }
    // A simulation has no machine, so no CPUs to count.
    if host.cpus > 0 {
        let cpus = host.cpus.to_string();
        row.item(
            3,
            &[
                (Dim, "host cpu "),
                (Text, &format::percent(host.cpu)),
                (Dim, " of "),
                (Text, &cpus),
            ],
        );
    }
    let group = rates.job.as_ref().and_then(|job| job.cgroup.as_ref());
    let throttled = group.and_then(|group| group.throttled_periods);
    if let Some(throttled) = throttled.filter(|share| share.0 >= 0.005) {
        let text = format!("quota cut {}", format::percent(Some(throttled)));
        row.item(3, &[(Trouble, &text)]);
    }
    row.line()
}
