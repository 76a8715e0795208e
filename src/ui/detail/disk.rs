//! How much each process reads and writes, where the data comes from, and how busy the devices are.

use ratatui::text::Line;

use super::figures::{bar, heading, labelled};
use crate::config::Role::{self, Dim, Full, Read, Text, Title};
use crate::model::rates::{DiskRates, RankRates, Rates};
use crate::ui::line_builder::LineBuilder;
use crate::ui::panel::{Content, stacked};
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
    let lines = stacked([
        processes(view, width),
        sources(view, rates, width),
        devices(view, rates, width),
    ]);
    Content::new("disk", &view.span(), lines)
}

/// Returns a line for each process of the job, in a stable order.
fn processes(view: &View<'_>, width: u16) -> Vec<Line<'static>> {
    let heads = ["read", "write", "asked for", "blocked", "faults/s"];
    let mut lines = vec![head(view, width, "PROCESSES", heads)];
    let rate = |rate: Option<BytesPerSecond>| format::rate(rate.map(|rate| rate.0));
    for rank in view.ranks() {
        let number = rank.number;
        let name = format!("rank {number:<7} {}", rank.key.pid);
        let figures = [
            rate(rank.io.map(|io| io.read)),
            rate(rank.io.map(|io| io.write)),
            rate(rank.io.map(|io| io.rchar)),
            format::percent(rank.disk),
            format::UNKNOWN.to_owned(),
        ];
        lines.push(row(view, width, &name, figures).line());
        for worker in rank.workers() {
            let name = format!("  worker {:<3} {}", worker.id, worker.pid());
            let figures = [
                rate(worker.read),
                rate(worker.write),
                rate(worker.rchar),
                format::percent(worker.disk),
                format::per_second(worker.major_faults_per_s),
            ];
            lines.push(row(view, width, &name, figures).line());
        }
    }
    lines
}

/// Returns the columns of a table, three rates and two figures, with their colours.
fn columns(heads: [&'static str; 5]) -> [(TableColumn, Role); 5] {
    let [read, write, third, fourth, fifth] = heads;
    [
        (read, RATE, Read),
        (write, RATE, Full),
        (third, RATE, Text),
        (fourth, 9, Text),
        (fifth, 10, Text),
    ]
    .map(|(head, cells, paint)| (TableColumn::figures(head, cells), paint))
}

fn head(view: &View<'_>, width: u16, name: &str, heads: [&'static str; 5]) -> Line<'static> {
    let mut head = view.row(width);
    head.padded(Title, name, NAME);
    table::head(&mut head, &columns(heads).map(|(column, _)| column), "");
    head.line()
}

fn row<'a>(view: &View<'a>, width: u16, name: &str, figures: [String; 5]) -> LineBuilder<'a> {
    let mut row = view.row(width);
    row.padded(Text, name, NAME);
    for ((column, paint), text) in columns([""; 5]).iter().zip(figures) {
        column.put(&mut row, *paint, &text);
    }
    row
}

/// Returns the data that the workers requested, by its source.
fn sources(view: &View<'_>, rates: &Rates, width: u16) -> Vec<Line<'static>> {
    let mut lines = vec![heading(view, width, "WHERE THE WORKERS' DATA COMES FROM")];
    let workers: Vec<_> = view.ranks().iter().flat_map(RankRates::workers).collect();
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
    let heads = ["read", "write", "in use", "latency", "in queue"];
    let mut lines = vec![head(view, width, "DEVICES", heads)];
    if rates.disks.is_empty() {
        let why = view
            .gap("disk")
            .map_or("no block device", |gap| &gap.reason);
        lines.extend(labelled(view, width, 5, format::UNKNOWN, why));
    }
    let line = |disk: &DiskRates| {
        let latency = disk
            .await_ms
            .map_or_else(|| "-".to_owned(), |ms| format::millis(Some(ms)));
        let figures = [
            format::rate(Some(disk.read.0)),
            format::rate(Some(disk.write.0)),
            format::percent(Some(disk.util)),
            latency,
            format::per_second(Some(disk.queue_depth)),
        ];
        let mut row = row(view, width, &disk.device, figures);
        if disk.holds_job_files {
            row.item(2, &[(Dim, "holds the job's files")]);
        }
        row.line()
    };
    lines.extend(rates.disks.iter().map(line));
    lines
}
