//! The loader workers: one line each, or all of them in one.

pub(super) mod table;

use std::cmp::Ordering;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::glyphs::doing;
use super::layout::BorderStyle;
use super::state::{Panel, Sort};
use super::{View, format, panel};
use crate::action::Action;
use crate::config::Role::{Cpu, Dim, Key, Read, Text, Unknown};
use crate::model::rates::{LoaderRates, WorkerRates};
use crate::sample::{LoaderKind, WorkerNow};
use table::{Columns, cpu};

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, border: BorderStyle) {
    let Some(loader) = view.loader() else {
        let inner = panel::open(view, frame, area, border, Panel::Workers, "workers", "");
        let mut row = view.row(inner.width);
        row.space(usize::from(border != BorderStyle::Boxed))
            .text(Unknown, "workers  n/a");
        return panel::write(frame, inner, vec![row.line()]);
    };
    let order = ordered(view, loader);
    let remark = remark(view, loader, order.len());
    let inner = panel::open(
        view,
        frame,
        area,
        border,
        Panel::Workers,
        "workers",
        &remark,
    );
    let room = usize::from(inner.height);
    if loader.workers.is_empty() || room < 3 && loader.workers.len() + 1 > room {
        return panel::write(
            frame,
            inner,
            vec![summary(view, loader, inner.width, border)],
        );
    }
    let marked = (view.state.focus == Panel::Workers).then(|| marked(view, &order));
    let all = order.len() < room;
    // The mark stays in sight, with those on either side of it.
    let slots = if all { order.len() } else { room - 2 };
    let first = marked.unwrap_or(0).saturating_sub(slots / 2);
    // Where not all fit, the last line says how many are left out.
    let shown = panel::window(order.len(), slots, first);
    let columns = Columns::new(view, loader, inner.width, border);
    let mut lines = vec![columns.head(view)];
    if order.is_empty() {
        lines.push(nothing(view, inner.width));
    }
    lines.extend(shown.clone().map(|place| {
        let worker = order[place];
        columns.line(view, loader, worker, marked == Some(place))
    }));
    if !all {
        let mut row = view.row(inner.width);
        let (above, below) = (shown.start, order.len() - shown.end);
        let text = match (above, below) {
            (0, below) => format!("    and {below} more"),
            (above, 0) => format!("    and {above} more above"),
            (above, below) => format!("    and {above} more above, {below} below"),
        };
        row.text(Dim, &text);
        lines.push(row.line());
    }
    panel::write(frame, inner, lines);
}

/// What stands beside the panel's name.
fn remark(view: &View<'_>, loader: &LoaderRates, found: usize) -> String {
    let (busy, idle, other) = states(view, loader);
    let all = loader.workers.len();
    let mut remark = match other {
        _ if view.state.filter.is_set() => {
            format!(
                "{found} of {all} with `{}`",
                view.state.filter.text().trim()
            )
        }
        _ if loader.kind == LoaderKind::Reported => String::new(),
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

/// The filter finds nobody.
fn nothing(view: &View<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    row.space(4).text(Dim, "no match");
    if let Some(key) = view.config.keys.keys(Action::Cancel).first() {
        row.item(
            0,
            &[(Dim, "; "), (Key, &key.to_string()), (Dim, " shows all")],
        );
    }
    row.line()
}

/// Workers that are busy, idle, and of which neither can be said.
fn states(view: &View<'_>, loader: &LoaderRates) -> (usize, usize, usize) {
    let (mut busy, mut idle, mut other) = (0, 0, 0);
    for worker in &loader.workers {
        match view.worker_now(worker) {
            WorkerNow::Idle => idle += 1,
            WorkerNow::Unknown | WorkerNow::Gone | WorkerNow::Stopped => other += 1,
            _ => busy += 1,
        }
    }
    (busy, idle, other)
}

/// The worker that is marked, with its loader. `None` where no worker is shown.
pub(super) fn chosen<'a>(view: &View<'a>) -> Option<(&'a LoaderRates, &'a WorkerRates)> {
    let loader = view.loader()?;
    let order = ordered(view, loader);
    let worker = *order.get(marked(view, &order))?;
    Some((loader, worker))
}

/// The numbers of the workers, in the order of the table.
pub(super) fn shown(view: &View<'_>) -> Vec<u32> {
    let loader = view.loader();
    let order = loader.map(|loader| ordered(view, loader));
    let numbers = order.iter().flatten().map(|worker| worker.id);
    numbers.collect()
}

/// The place of the marked worker in this order: the first where the one that was marked is not there.
fn marked(view: &View<'_>, order: &[&WorkerRates]) -> usize {
    let chosen = |worker: &&WorkerRates| Some(worker.id) == view.state.worker;
    order.iter().rposition(chosen).unwrap_or(0)
}

fn ordered<'a>(view: &View<'_>, loader: &'a LoaderRates) -> Vec<&'a WorkerRates> {
    let shown = |worker: &&WorkerRates| {
        let (_, word, _) = doing(view.worker_now(worker), view.glyphs());
        view.state.filter.finds(worker, word)
    };
    let mut order: Vec<&WorkerRates> = loader.workers.iter().filter(shown).collect();
    let figure = |worker: &WorkerRates| match view.state.sort {
        Sort::Id => Some(-f64::from(worker.id)),
        Sort::Cpu => worker.cpu,
        Sort::Delay => worker.run_delay.map(|share| share.0),
        Sort::Read => worker.read.map(|rate| rate.0),
        Sort::Batches => worker.batches_per_s,
        Sort::Load => worker.load_ms,
    };
    // Most first, unknown last, the worker's number where they are alike.
    order.sort_by(|a, b| match (figure(a), figure(b)) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    if view.state.reversed {
        order.reverse();
    }
    order
}

/// All workers in one line.
fn summary(
    view: &View<'_>,
    loader: &LoaderRates,
    width: u16,
    border: BorderStyle,
) -> Line<'static> {
    let mut row = view.row(width);
    row.space(usize::from(border != BorderStyle::Boxed));
    if loader.kind == LoaderKind::Reported {
        row.text(Dim, "workers  ").text(Unknown, "n/a  ");
        row.sentence(Text, "none found: all figures come from the job's reports");
        return row.line();
    }
    if loader.kind == LoaderKind::Other && loader.workers.is_empty() {
        let name = loader.name.as_deref().unwrap_or("the program's own loader");
        row.text(Dim, "workers  ").text(Unknown, "n/a  ");
        row.sentence(Text, &format!("{name}: single threads are not shown"));
        return row.line();
    }
    if loader.kind == LoaderKind::PytorchMain || loader.workers.is_empty() {
        row.text(Dim, "workers  ");
        row.sentence(
            Text,
            "none: the trainer's main thread loads the batches itself",
        );
        return row.line();
    }
    let mean = |figure: fn(&WorkerRates) -> Option<f64>| {
        let known: Vec<f64> = loader.workers.iter().filter_map(figure).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let (busy, _, other) = states(view, loader);
    let all = loader.workers.len();
    let of = if other == all {
        format!("{all}, busy n/a")
    } else {
        format!("{busy} of {all} busy")
    };
    row.text(Dim, "workers  ").text(Text, &of);
    row.item(2, &[(Dim, "CPU "), (Cpu, &cpu(mean(|worker| worker.cpu)))]);
    row.item(
        2,
        &[
            (Dim, "load "),
            (Text, &format::millis(mean(|worker| worker.load_ms))),
        ],
    );
    let read = mean(|worker| Some(worker.read?.0));
    row.item(
        2,
        &[(Dim, "read "), (Read, &format::rate(read)), (Dim, " each")],
    );
    row.line()
}
