//! The figures of one GPU over time, in lines of their own or in the free part of other lines.

use ratatui::text::Line;

use super::line::idle;
use crate::config::Role::{Compute, Read, Trouble};
use crate::model::history::{GpuPoint, Known};
use crate::model::rates::GpuRates;
use crate::ui::history::{self, relative_to_max, spark};
use crate::ui::line_builder::LineBuilder;
use crate::ui::{View, axis, format};
use crate::units::Share;

/// Least cells at the end of a line for a useful graph.
const MIN_GRAPH_CELLS: usize = 10;
/// Least share of the time with copies only that is shown.
const MIN_COPIES: f64 = 0.1;

/// Draws ` 37 %  past  idle 60 %  swings every 2.0 s`.
pub(super) fn util(view: &View<'_>, gpu: &GpuRates, mut row: LineBuilder<'_>) -> Line<'static> {
    row.right(Compute, &format::whole_percent(gpu.util_percent), 5);
    let absent = gpu.now.absent.iter().find(|absent| absent.figure == "util");
    let why = gpu.now.gap.as_ref();
    let why = why.or_else(|| Some(&absent?.reason));
    if let (None, Some(why)) = (gpu.util_percent, why) {
        row.space(2).sentence(Trouble, why);
        return row.line();
    }
    let idle = idle(view, gpu, place(view, gpu)).map(|idle| format!("{idle:>5}"));
    let swing = gpu.swing.map(|swing| format!("{:.1} s", swing.period));
    // The utilisation includes copies, so a GPU that is in use may run no kernel.
    let copies = gpu.copies_only.filter(|copies| copies.0 >= MIN_COPIES);
    let label = if copies.is_some() {
        "no kernel "
    } else {
        "idle "
    };
    let copies = copies.map(|copies| format!("{copies:>5}"));
    let percents = past(view, gpu, |gpu| gpu.util_percent);
    with_past(
        view,
        row,
        |cells| percents(cells, 100.0),
        [
            (label, idle),
            ("only copies ", copies),
            ("swings every ", swing),
        ],
    )
}

/// Draws the share of multiprocessors with work and the share of the device memory's bandwidth in use, a line each.
pub(super) fn counters<'a>(
    view: &View<'_>,
    gpu: &GpuRates,
    start: impl Fn(&str) -> LineBuilder<'a>,
) -> Vec<Line<'static>> {
    type Figure = (&'static str, Option<Share>);
    let counters = gpu.counters;
    let line = |(name, now): Figure, pick: fn(&GpuPoint) -> Known, (label, beside): Figure| {
        let mut row = start(name);
        row.right(Compute, &format::percent(now), 5);
        let past = past(view, gpu, pick);
        let beside = beside.map(|share| format!("{share:>5}"));
        with_past(view, row, |cells| past(cells, 1.0), [(label, beside)])
    };
    let (occupancy, tensor) = (counters.sm_occupancy, counters.tensor);
    vec![
        line(
            ("SMs", counters.sm_active),
            |gpu| gpu.sm_active,
            ("occupancy ", occupancy),
        ),
        line(("DRAM", counters.dram), |gpu| gpu.dram, ("tensor ", tensor)),
    ]
}

/// Adds a graph of the power as a part of its limit to the rest of a line.
pub(super) fn power(view: &View<'_>, gpu: &GpuRates, row: &mut LineBuilder<'_>) {
    if let Some(limit) = gpu.now.power_limit_watts {
        let watts = past(view, gpu, |gpu| gpu.power_watts);
        behind(view, row, |cells| watts(cells, limit));
    }
}

/// Adds a graph of the bytes received over the bus, as a part of the maximum shown.
pub(super) fn received(view: &View<'_>, gpu: &GpuRates, row: &mut LineBuilder<'_>) {
    let bytes = past(view, gpu, |gpu| gpu.pcie_rx);
    behind(view, row, |cells| relative_to_max(bytes(cells, 1.0)).0);
}

fn place(view: &View<'_>, gpu: &GpuRates) -> usize {
    let mut gpus = view.gpus().iter();
    let place = gpus.position(|other| other.now.index == gpu.now.index);
    place.unwrap_or(0)
}

/// Returns a figure of this GPU over the shown time, in this many cells, each divided by `full`.
fn past<'a>(
    view: &'a View<'_>,
    gpu: &GpuRates,
    pick: impl Fn(&GpuPoint) -> Known + 'a,
) -> impl Fn(usize, f64) -> Vec<Option<f64>> + 'a {
    let place = place(view, gpu);
    move |cells, full| {
        history::past(view, cells, |point| {
            Some(pick(point.gpus.get(place)?).get()? / full)
        })
    }
}

/// Draws a graph in the room that the figures behind it leave.
fn with_past<const N: usize>(
    view: &View<'_>,
    mut row: LineBuilder<'_>,
    past: impl Fn(usize) -> Vec<Option<f64>>,
    behind: [(&str, Option<String>); N],
) -> Line<'static> {
    row.space(2);
    let figures = behind.into_iter();
    let figures: Vec<_> = figures
        .filter_map(|(label, figure)| Some((label, figure?)))
        .collect();
    let taken = figures
        .iter()
        .map(|(label, figure)| 2 + label.len() + figure.len());
    let cells = row.left().saturating_sub(taken.sum());
    let values = past(cells);
    // Without a graph the figures move to its place.
    if !values.is_empty() {
        spark(&mut row, Compute, &values, cells, axis::cursor(view, cells));
    }
    for (label, figure) in &figures {
        row.figure(2, label, figure);
    }
    row.line()
}

fn behind(view: &View<'_>, row: &mut LineBuilder<'_>, past: impl Fn(usize) -> Vec<Option<f64>>) {
    let cells = row.left().saturating_sub(3);
    if cells < MIN_GRAPH_CELLS {
        return;
    }
    let values = past(cells);
    if values.iter().any(Option::is_some) {
        row.space(3);
        spark(row, Read, &values, cells, axis::cursor(view, cells));
    }
}
