//! The loader workers: one line each, or one line for all.

pub(super) mod table;

use ratatui::text::Line;

use super::glyphs::doing;
use super::line_builder::LineBuilder;
use super::panel::{self, Content, Inside};
use super::state::Panel;
use super::timeline::slow;
use super::{View, format};
use crate::config::Column;
use crate::config::Role::{Cpu, Dim, Read, Text, Unknown};
use crate::model::rates::{LoaderRates, WorkerRates};
use crate::sample::{LoaderKind, WorkerNow};
use table::{Columns, WorkerRow};

/// Returns the lines wanted, without the line of column names.
pub(super) fn wanted(view: &View<'_>, _: u16) -> u16 {
    let loaders = view.loaders();
    let workers = loaders.iter().map(|loader| loader.workers.len());
    super::layout::count(workers.sum())
}

pub(super) fn content(view: &View<'_>, inside: Inside) -> Content {
    let Some(loader) = view.loader() else {
        let line = inside.row(view).text(Unknown, "workers  n/a").line();
        return Content::new("workers", "", vec![line]);
    };
    let order = ordered(view);
    let all = all(view);
    let remark = remark(view, loader, &all, order.len());
    let room = inside.height;
    if all.is_empty() || room < 3 && all.len() + 1 > room {
        let line = summary(view, loader, &all, inside.row(view));
        return Content::new("workers", &remark, vec![line]);
    }
    let marked = (view.state.focus == Panel::Workers).then(|| marked(view, &order));
    let fits = order.len() < room;
    // The marked worker stays visible, with its neighbours on either side; before a worker is marked, the worker that
    // holds up the others does.
    let slots = if fits { order.len() } else { room - 2 };
    let slow = || {
        let slow = slow(&loader.workers);
        let slow = |row: &WorkerRow<'_>| row.0.id == loader.id && slow(row.1);
        order.iter().position(slow)
    };
    let unset = view.state.worker.is_none() && view.state.sort.is_none();
    let seen = slow().filter(|_| unset).or(marked).unwrap_or(0);
    let first = seen.saturating_sub(slots / 2);
    // If not all workers fit, the last line says how many are left out.
    let shown = panel::window(order.len(), slots, first);
    let columns = Columns::new(view, &all, inside);
    let mut lines = vec![columns.head(view)];
    if order.is_empty() {
        lines.push(view.no_match(inside.width, 4));
    }
    lines.extend(
        shown
            .clone()
            .map(|place| columns.line(view, order[place], marked == Some(place))),
    );
    if !fits {
        let (above, below) = (shown.start, order.len() - shown.end);
        let text = match (above, below) {
            (0, below) => format!("    and {below} more"),
            (above, 0) => format!("    and {above} more above"),
            (above, below) => format!("    and {above} more above, {below} below"),
        };
        lines.push(view.row(inside.width).text(Dim, &text).line());
    }
    Content::new("workers", &remark, lines)
}

/// Returns the remark beside the panel's name.
fn remark(view: &View<'_>, loader: &LoaderRates, all: &[WorkerRow<'_>], found: usize) -> String {
    let (busy, idle, other) = states(view, all);
    let all = all.len();
    let mut remark = match other {
        _ if view.state.filter.is_set() => {
            format!("{found} of {all} with `{}`", view.state.filter.text.trim())
        }
        _ if all == 0 || loader.kind == LoaderKind::Reported => String::new(),
        0 => format!("{busy} busy, {idle} idle"),
        1 if other == all => "1 worker".to_owned(),
        _ if other == all => format!("{other} workers"),
        _ => format!("{busy} busy, {idle} idle, {other} neither"),
    };
    if !view.span().is_empty() {
        let gap = if remark.is_empty() { "" } else { "  " };
        remark = format!("{remark}{gap}{}", view.span());
    }
    remark
}

/// Returns how many workers are busy, how many are idle, and how many are neither: unknown, stopped or gone.
fn states(view: &View<'_>, all: &[WorkerRow<'_>]) -> (usize, usize, usize) {
    let (mut busy, mut idle, mut other) = (0, 0, 0);
    for (_, worker) in all {
        match view.worker_now(worker) {
            WorkerNow::Idle => idle += 1,
            WorkerNow::Unknown | WorkerNow::Gone | WorkerNow::Stopped => other += 1,
            _ => busy += 1,
        }
    }
    (busy, idle, other)
}

/// Returns what identifies a worker within the rank.
fn key((loader, worker): &WorkerRow<'_>) -> (u64, u32) {
    (loader.id, worker.id)
}

/// Returns the marked worker. `None` if no worker is shown.
pub(super) fn chosen<'a>(view: &View<'a>) -> Option<WorkerRow<'a>> {
    let order = ordered(view);
    order.get(marked(view, &order)).copied()
}

/// Returns the workers in the order of the table.
pub(super) fn shown(view: &View<'_>) -> Vec<(u64, u32)> {
    ordered(view).iter().map(key).collect()
}

/// Returns the place of the marked worker in this order; the first if the marked one is not there.
fn marked(view: &View<'_>, order: &[WorkerRow<'_>]) -> usize {
    let chosen = |row: &WorkerRow<'_>| Some(key(row)) == view.state.worker;
    order.iter().rposition(chosen).unwrap_or(0)
}

/// Returns the workers of all loaders.
fn all<'a>(view: &View<'a>) -> Vec<WorkerRow<'a>> {
    let of = |loader: &'a LoaderRates| loader.workers.iter().map(move |worker| (loader, worker));
    view.loaders().into_iter().flat_map(of).collect()
}

fn ordered<'a>(view: &View<'a>) -> Vec<WorkerRow<'a>> {
    let shown = |(_, worker): &WorkerRow<'a>| {
        let (_, word, _) = doing(view.worker_now(worker), view.glyphs());
        view.state.filter.matches_worker(worker, word)
    };
    let mut order: Vec<WorkerRow<'a>> = all(view).into_iter().filter(shown).collect();
    let figure = |worker: &WorkerRates| match view.state.sort {
        None => None,
        Some(Column::Cpu) => worker.cpu,
        Some(Column::Delay) => worker.run_delay.map(|share| share.0),
        Some(Column::Read) => worker.read.map(|rate| rate.0),
        Some(Column::Batches) => worker.batches_per_s,
        Some(_) => worker.load_ms,
    };
    // Highest first, unknown last; equal ones by loader and number.
    let figure = |worker| figure(worker).unwrap_or(f64::NEG_INFINITY);
    order.sort_by(|(_, a), (_, b)| figure(b).total_cmp(&figure(a)));
    if view.state.reversed {
        order.reverse();
    }
    order
}

/// Returns the text shown in place of the workers; `None` if workers are listed.
pub(super) fn why_none(loader: &LoaderRates) -> Option<String> {
    let none = loader.workers.is_empty();
    match loader.kind {
        LoaderKind::Reported => Some("n/a  all figures come from the job's reports".to_owned()),
        LoaderKind::Other if none => {
            let name = loader.name.as_deref().unwrap_or("the program's own loader");
            Some(format!("n/a  {name}: none of its workers was recognised"))
        }
        LoaderKind::PytorchMain => Some(LOADS_ITSELF.to_owned()),
        _ => none.then(|| LOADS_ITSELF.to_owned()),
    }
}

const LOADS_ITSELF: &str = "none: the trainer's main thread loads the batches itself";

/// Draws all workers in one line.
fn summary(
    view: &View<'_>,
    loader: &LoaderRates,
    rows: &[WorkerRow<'_>],
    mut row: LineBuilder<'_>,
) -> Line<'static> {
    if let Some(why) = why_none(loader) {
        row.text(Dim, "workers  ").sentence(Text, &why);
        return row.line();
    }
    let mean = |figure: fn(&WorkerRates) -> Option<f64>| {
        crate::units::mean(rows.iter().filter_map(|(_, worker)| figure(worker)))
    };
    let (busy, _, other) = states(view, rows);
    let all = rows.len();
    let of = if other == all {
        format!("{all}, busy n/a")
    } else {
        format!("{busy} of {all} busy")
    };
    row.text(Dim, "workers  ").text(Text, &of);
    row.item(
        2,
        &[
            (Dim, "CPU "),
            (Cpu, &format::cores(mean(|worker| worker.cpu))),
        ],
    );
    row.figure(2, "load ", &format::millis(mean(|worker| worker.load_ms)));
    let read = mean(|worker| Some(worker.read?.0));
    row.item(
        2,
        &[(Dim, "read "), (Read, &format::rate(read)), (Dim, " each")],
    );
    row.line()
}
