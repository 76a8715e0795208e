//! How much each process reads and writes, where the data comes from, and how busy the devices are.

use ratatui::text::Line;

use super::content::Content;
use super::figures::{bar, heading, labelled};
use crate::config::Role::{Dim, Full, Read, Text, Title};
use crate::model::rates::{DiskRates, Rates};
use crate::ui::table::{self, TableColumn};
use crate::ui::{View, format};
use crate::units::{BytesPerSecond, Share};

/// Cells of the names on the left.
const NAME: usize = 22;
/// Cells of one rate.
const RATE: usize = 11;

pub(in crate::ui) fn content(view: &View<'_>, width: u16) -> Content {
    let Some(rates) = view.figures() else {
        let lines = labelled(view, width, 0, "", "nothing read yet");
        return Content::new("disk", "", lines);
    };
    let mut lines = processes(view, width);
    lines.push(Line::default());
    lines.extend(sources(view, rates, width));
    lines.push(Line::default());
    lines.extend(devices(view, rates, width));
    Content::new("disk", &view.span(), lines)
}

/// One process: bytes read from and written to devices, bytes requested, and the share of time it was blocked.
struct ProcessIo {
    name: String,
    read: Option<BytesPerSecond>,
    write: Option<BytesPerSecond>,
    asked: Option<BytesPerSecond>,
    blocked: Option<Share>,
    faults: Option<f64>,
}

/// Returns a line for each process of the job, in a stable order.
fn processes(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    let mut all: Vec<ProcessIo> = Vec::new();
    for (place, rank) in view.ranks().iter().enumerate() {
        let number = rank.number(place);
        all.push(ProcessIo {
            name: format!("rank {number:<7} {}", rank.key.pid),
            read: rank.io.map(|io| io.read),
            write: rank.io.map(|io| io.write),
            asked: rank.io.map(|io| io.rchar),
            blocked: rank.disk,
            faults: None,
        });
        let workers = rank.loaders.iter().flat_map(|loader| &loader.workers);
        all.extend(workers.map(|worker| ProcessIo {
            name: format!("  worker {:<3} {}", worker.id, worker.pid()),
            read: worker.read,
            write: worker.write,
            asked: worker.rchar,
            blocked: worker.disk,
            faults: worker.major_faults_per_s,
        }));
    }
    let mut head = view.row(width);
    head.padded(Title, "PROCESSES", NAME);
    let columns = columns(["read", "write", "asked for", "blocked", "faults/s"]);
    table::head(&mut head, &columns, "");
    let line = |process: &ProcessIo| {
        let mut row = view.row(width);
        row.padded(Text, &process.name, NAME);
        let rate = |rate: Option<BytesPerSecond>| format::rate(rate.map(|rate| rate.0));
        let cells = [
            (Read, rate(process.read)),
            (Full, rate(process.write)),
            (Text, rate(process.asked)),
            (Text, format::percent(process.blocked)),
            (Text, format::per_second(process.faults)),
        ];
        for (column, (paint, text)) in columns.iter().zip(cells) {
            column.put(&mut row, paint, &text);
        }
        row.line()
    };
    let mut lines = vec![head.line()];
    lines.extend(all.iter().map(line));
    lines
}

/// Returns the columns: three rates and two figures.
fn columns(heads: [&'static str; 5]) -> Vec<TableColumn> {
    let cells = [RATE, RATE, RATE, 9, 10];
    let columns = heads.into_iter().zip(cells);
    columns
        .map(|(head, cells)| TableColumn::figures(head, cells))
        .collect()
}

/// Returns the data that the workers requested, by its source.
fn sources(view: &View<'_>, rates: &Rates, width: u16) -> Vec<Line<'static>> {
    let mut lines = vec![heading(view, width, "WHERE THE WORKERS' DATA COMES FROM")];
    let workers = view.ranks().iter().flat_map(|rank| &rank.loaders);
    let workers: Vec<_> = workers.flat_map(|loader| &loader.workers).collect();
    let sum = |of: fn(&crate::model::rates::WorkerRates) -> Option<BytesPerSecond>| {
        let known = workers.iter().filter_map(|worker| Some(of(worker)?.0));
        known.reduce(|one, other| one + other)
    };
    let both = sum(|worker| worker.rchar).zip(sum(|worker| worker.read));
    let Some((asked, read)) = both else {
        let why = if workers.is_empty() {
            "no worker processes; the rank's own line shows its reads"
        } else {
            "no permission to read the workers' counters: run pipetop as the job's user or as root"
        };
        lines.extend(labelled(view, width, 5, format::UNKNOWN, why));
        return lines;
    };
    // Readahead can fetch more than was requested.
    let device = Share::of(read, asked.max(read));
    let nothing = "nothing was read";
    let cached = device.map(Share::complement);
    let labels = [
        ("from devices", Read, device),
        ("page cache, pipes", Text, cached),
    ];
    lines.extend(
        labels.map(|(label, paint, share)| {
            bar(view, width, (label, NAME), paint, share.ok_or(nothing))
        }),
    );
    if let Some(io) = rates.host.pressure_io {
        let text = "a process of the machine or cgroup waits for I/O";
        let mut line = view.row(width);
        line.padded(Text, "pressure io", NAME);
        line.right(Text, &io.to_string(), 6)
            .space(2)
            .sentence(Dim, text);
        lines.push(line.line());
    }
    lines
}

/// Returns a line for every block device of the machine.
fn devices(view: &View<'_>, rates: &Rates, width: u16) -> Vec<Line<'static>> {
    let mut head = view.row(width);
    head.padded(Title, "DEVICES", NAME);
    let columns = columns(["read", "write", "in use", "latency", "in queue"]);
    table::head(&mut head, &columns, "");
    let mut lines = vec![head.line()];
    if rates.disks.is_empty() {
        let why = view
            .gap("disk")
            .map_or("no block device", |gap| &gap.reason);
        lines.extend(labelled(view, width, 5, format::UNKNOWN, why));
    }
    let line = |disk: &DiskRates| {
        let mut row = view.row(width);
        row.padded(Text, &disk.device, NAME);
        let latency = disk
            .await_ms
            .map_or_else(|| "-".to_owned(), |ms| format::millis(Some(ms)));
        let cells = [
            (Read, format::rate(Some(disk.read.0))),
            (Full, format::rate(Some(disk.write.0))),
            (Text, format::percent(Some(disk.util))),
            (Text, latency),
            (Text, format::per_second(Some(disk.queue_depth))),
        ];
        for (column, (paint, text)) in columns.iter().zip(cells) {
            column.put(&mut row, paint, &text);
        }
        if disk.holds_job_files {
            row.item(2, &[(Dim, "holds the job's files")]);
        }
        row.line()
    };
    lines.extend(rates.disks.iter().map(line));
    lines
}
