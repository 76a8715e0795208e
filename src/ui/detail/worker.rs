//! One loader worker: its present and past states, how its time is spent, what it reads and produces.

use ratatui::text::Line;

use super::figures::{functions, heading, labelled, section, signed_bar};
use super::loads;
use crate::config::Role::{Dim, Read, Text};
use crate::model::rates::{LoaderRates, WorkerRates};
use crate::sample::WorkerNow;
use crate::ui::glyphs::doing;
use crate::ui::panel::{Content, side_by_side, stacked};
use crate::ui::workers::{self, table};
use crate::ui::{View, axis, format};
use crate::units::{Share, counted};

/// Cells of the labels.
const LABEL: usize = 11;
/// Least width at which two parts are side by side.
const WIDE: u16 = 100;
/// States in the order that a batch passes through them, each with its name here.
const LANES: [(&str, &[WorkerNow]); 6] = [
    ("waiting for index", &[WorkerNow::Idle]),
    ("reading", &[WorkerNow::Read, WorkerNow::Network]),
    ("on the CPU", &[WorkerNow::Cpu, WorkerNow::Starting]),
    ("runnable", &[WorkerNow::Runnable]),
    ("blocked on queue", &[WorkerNow::Handover]),
    (
        "asleep, stopped",
        &[WorkerNow::Sleep, WorkerNow::Stopped, WorkerNow::Gone],
    ),
];
/// Cells of the names of the states.
const LANE: usize = 19;

pub(in crate::ui) fn content(view: &View<'_>, width: u16) -> Content {
    let Some((loader, worker)) = workers::chosen(view) else {
        return Content::new("worker", "", labelled(view, width, 0, "", &none(view)));
    };
    let all = match loader.workers.len() {
        1 => "the only one".to_owned(),
        count => format!("one of {count}"),
    };
    let kind = if worker.thread { "thread" } else { "pid" };
    let of = match view.loaders().len() {
        0 | 1 => String::new(),
        _ => format!(" of {}", loader.title()),
    };
    let name = format!("worker {}{of}  {kind} {}  ({all})", worker.id, worker.pid());
    let half = if width < WIDE { width } else { (width - 4) / 2 };
    let left = time(view, worker, half);
    let seen_in = functions(view, half, &worker.activity);
    let seen_in = section(view, half, "WAS SEEN IN, WHILE BUSY", seen_in);
    let right = stacked([figures(view, worker, half), seen_in]);
    let lines = stacked([
        if half < width {
            side_by_side(view, width, &left, &right, half)
        } else {
            stacked([right, left])
        },
        timeline(view, loader, worker, width),
        loads::lines(view, loader, worker, width, WIDE),
        open_files(view, worker, width),
    ]);
    Content::new(&name, &view.span(), lines)
}

/// Returns why there is no worker to show.
fn none(view: &View<'_>) -> String {
    let Some(loader) = view.loader() else {
        return "no loader found yet".to_owned();
    };
    workers::why_none(loader).unwrap_or_else(|| "no worker matches the filter".to_owned())
}

fn figures(view: &View<'_>, worker: &WorkerRates, width: u16) -> Vec<Line<'static>> {
    let known = |rate: Option<crate::units::BytesPerSecond>| format::rate(rate.map(|rate| rate.0));
    let (_, now, _) = doing(view.worker_now(worker), view.glyphs());
    let cpu = format::cores(worker.cpu);
    let allowed = worker.cpus_allowed.map_or_else(String::new, |count| {
        format!(" of a CPU; may run on {}", counted(count, "CPU"))
    });
    let cached = worker.rchar.zip(worker.read);
    let cached = cached.map_or_else(String::new, |(asked, read)| {
        let rest = (asked.0 - read.0).max(0.0);
        format!(", ~{} of it from memory", format::rate(Some(rest)))
    });
    let figures = [
        ("now", now.to_owned()),
        ("CPU", format!("{cpu}{allowed}")),
        (
            "batches",
            format!(
                "{} a second, {} each on average",
                format::per_second(worker.batches_per_s),
                format::millis(worker.load_ms)
            ),
        ),
        ("from disk", known(worker.read)),
        ("asked for", format!("{}{cached}", known(worker.rchar))),
        ("written", format!("{} to disk", known(worker.write))),
        (
            "faults",
            format!("{} a second", format::per_second(worker.major_faults_per_s)),
        ),
    ];
    figures
        .iter()
        .flat_map(|(label, text)| labelled(view, width, LABEL, label, text))
        .collect()
}

/// Returns how its time was spent, from polls of it and from the scheduler's count.
fn time(view: &View<'_>, worker: &WorkerRates, width: u16) -> Vec<Line<'static>> {
    let wants_cpu = worker.wants_cpu();
    let parts = wants_cpu.and_then(|(all, waits)| Some((Share(all.0 - waits?.0), waits?)));
    let (running, not_running) = parts.unzip();
    let parts = [
        ("waiting for index", WorkerNow::Idle, worker.idle()),
        ("reading, disk", WorkerNow::Read, worker.disk),
        ("reading, network", WorkerNow::Network, worker.network),
        ("on the CPU", WorkerNow::Cpu, running),
        ("runnable", WorkerNow::Runnable, not_running),
        ("blocked on queue", WorkerNow::Handover, worker.handover),
        ("asleep", WorkerNow::Sleep, worker.asleep),
        ("stopped", WorkerNow::Stopped, worker.stopped),
    ];
    let why = match (worker.stopped, worker.busy) {
        (Some(_), None) => "stopped most of the time",
        _ => "no permission: run pipetop as the job's user",
    };
    let parts = parts.map(|(label, now, share)| {
        let (paint, _, sign) = doing(now, view.glyphs());
        // Many exclamation marks would be hard to read.
        let stopped = now == WorkerNow::Stopped;
        let sign = if stopped { view.glyphs().bar_low } else { sign };
        signed_bar(view, width, (label, LANE), (paint, sign), share.ok_or(why))
    });
    section(view, width, "ITS TIME", parts)
}

/// Returns the worker's states over time, one line per state.
fn timeline(
    view: &View<'_>,
    loader: &LoaderRates,
    worker: &WorkerRates,
    width: u16,
) -> Vec<Line<'static>> {
    let cells = usize::from(width).saturating_sub(LANE + 2);
    let states = table::states(view, loader, worker, cells);
    let title = format!("WHAT IT DID  {}", axis::words(view));
    if states.is_empty() {
        let why = labelled(view, width, 5, format::UNKNOWN, "no history yet");
        return section(view, width, &title, why);
    }
    let lanes = LANES.map(|(name, lane)| {
        let mut row = view.row(width);
        row.padded(Dim, name, LANE);
        row.space(cells.saturating_sub(states.len()));
        for state in &states {
            match state {
                // An unknown state is drawn as unknown in all lanes.
                Some(now) if lane.contains(now) || *now == WorkerNow::Unknown => {
                    let (paint, _, sign) = doing(*now, view.glyphs());
                    row.text(paint, sign)
                }
                Some(_) | None => row.space(1),
            };
        }
        row.line()
    });
    section(view, width, &title, lanes)
}

/// Returns the regular files that it has open, and its position in each.
fn open_files(view: &View<'_>, worker: &WorkerRates, width: u16) -> Vec<Line<'static>> {
    const PLACE: usize = 20;
    let mut lines = vec![heading(view, width, "ITS OPEN FILES")];
    let found = view.files.filter(|files| files.process == worker.key);
    let why = match found.map(|found| &found.files) {
        _ if view.state.replay.is_some() => "recordings contain no file names",
        None if view.past.is_some() => "only files that are open now can be listed",
        None => "not read yet",
        Some(Err(reason)) => reason,
        Some(Ok(files)) if files.is_empty() => {
            "none now; mapped files and files already closed are not listed"
        }
        Some(Ok(_)) => "",
    };
    if !why.is_empty() {
        lines.extend(labelled(view, width, 5, format::UNKNOWN, why));
        return lines;
    }
    let files = found.and_then(|found| found.files.as_ref().ok());
    for file in files.into_iter().flatten() {
        let mut row = view.row(width);
        let size = file.size.map(|size| format::bytes(Some(size.0 as f64)));
        let of = size.map_or_else(String::new, |size| format!(" of {size}"));
        let at = format::bytes(Some(file.position as f64));
        row.padded(Read, &format!("{at}{of}"), PLACE);
        let gone = if file.deleted { "  deleted" } else { "" };
        let room = row.left().saturating_sub(gone.len());
        row.ending(Text, &file.path, room).text(Dim, gone);
        lines.push(row.line());
    }
    let more = found.map_or(0, |found| found.more);
    if more > 0 {
        lines.push(
            view.row(width)
                .text(Dim, &format!("and {more} more"))
                .line(),
        );
    }
    lines
}
