//! The way of a batch on one line: workers, queue, trainer; under it what each step takes.

mod flow;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::layout::BorderStyle;
use super::line_builder::LineBuilder;
use super::state::Panel;
use super::{View, format, panel};
use crate::config::Role::{self, Dim, Text};
use crate::model::rates::{LoaderRates, QueueRates, RankRates};
use flow::flow;

pub(super) fn wanted(view: &View<'_>) -> u16 {
    let ranks = view.ranks().len();
    2 + other_loaders(view)
        + if ranks > 1 {
            super::layout::count(ranks)
        } else {
            0
        }
}

/// A line each.
pub(super) fn other_loaders(view: &View<'_>) -> u16 {
    super::layout::count(view.rank().map_or(0, |rank| rank.other_loaders().count()))
}

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, border: BorderStyle) {
    let inner = panel::open(
        view,
        frame,
        area,
        border,
        Panel::Pipeline,
        "pipeline",
        &view.span(),
    );
    let wide = border == BorderStyle::Boxed;
    let mut lines = vec![flow(view, inner.width, wide, inner.height == 1)];
    lines.push(times(view, inner.width, wide));
    let others = view.rank().into_iter().flat_map(RankRates::other_loaders);
    lines.extend(
        (2..)
            .zip(others)
            .map(|other| other_line(view, other, inner.width, wide)),
    );
    if view.ranks().len() > 1 {
        let shown = panel::window(
            view.ranks().len(),
            usize::from(inner.height).saturating_sub(lines.len()),
            view.rank_place(),
        );
        for place in shown {
            lines.push(rank_line(view, place, inner.width));
        }
    }
    panel::write(frame, inner, lines);
}

/// What a batch takes where. The figures follow from each other as they are shown.
fn times(view: &View<'_>, width: u16, wide: bool) -> Line<'static> {
    let mut row = view.row(width);
    if !wide {
        row.space(1);
    }
    let Some(rank) = view.rank() else {
        return row.line();
    };
    let step = rank.step;
    let gap = if wide { 3 } else { 2 };
    row.text(Dim, "load ")
        .text(Text, &format::millis(step.load_ms));
    let workers = view.loader().map_or(0, |loader| loader.workers.len());
    if let (Some(load), true) = (step.load_ms, workers > 1) {
        let each = format::millis(Some(shown(load) / workers as f64));
        if wide {
            row.item(1, &[(Dim, "a batch")]);
        }
        row.item(
            gap,
            &[(Dim, &format!("/{workers} workers = ")), (Text, &each)],
        );
    }
    row.item(
        gap * 2,
        &[(Dim, "step "), (Text, &format::millis(step.step_ms))],
    );
    row.item(
        gap,
        &[(Dim, "wait "), (Text, &format::millis(step.wait_ms))],
    );
    if let (Some(step_ms), Some(wait_ms)) = (step.step_ms, step.wait_ms) {
        let every = format::millis(Some(shown(step_ms) + shown(wait_ms)));
        row.item(gap, &[(Dim, "every "), (Text, &every)]);
    }
    row.item(
        gap,
        &[
            (Text, &format::per_second(step.batches_per_s)),
            (Dim, " batches/s"),
        ],
    );
    if let Some(period) = rank.period_batches {
        row.item(
            gap,
            &[
                (Dim, "waits every "),
                (Text, &period.to_string()),
                (Dim, " batches"),
            ],
        );
    }
    row.line()
}

/// Milliseconds as [`format::millis`] shows them, so that sums on screen come out.
fn shown(ms: f64) -> f64 {
    if ms < 19.95 {
        (ms * 10.0).round() / 10.0
    } else {
        ms.round()
    }
}

fn rank_line(view: &View<'_>, place: usize, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    let Some(rank) = view.ranks().get(place) else {
        return row.line();
    };
    let shown = place == view.rank_place();
    let mark = if shown { view.glyphs().mark } else { " " };
    let name = rank.number(place);
    row.text(Role::Focus, mark)
        .text(Dim, " rank ")
        .right(Text, &name.to_string(), 2);
    let wait = format::percent(rank.wait.map(|wait| wait.share));
    row.space(2).text(Dim, "wait ").right(Text, &wait, 5);
    row.space(2)
        .text(Dim, "step ")
        .right(Text, &format::millis(rank.step.step_ms), 7);
    row.space(2)
        .right(Text, &format::per_second(rank.step.batches_per_s), 5)
        .text(Dim, " batches/s");
    if let Some(queue) = queue_of(rank) {
        queue_item(&mut row, queue);
    }
    row.item(2, &[(Dim, "pid "), (Dim, &rank.key.pid.to_string())]);
    row.line()
}

/// A loader beside the one that the lines above are of.
fn other_line(
    view: &View<'_>,
    (number, loader): (u32, &LoaderRates),
    width: u16,
    wide: bool,
) -> Line<'static> {
    let mut row = view.row(width);
    if !wide {
        row.space(1);
    }
    let workers = match loader.workers.len() {
        0 => "in the main thread".to_owned(),
        1 => "1 worker".to_owned(),
        count => format!("{count} workers"),
    };
    row.text(Dim, &format!("loader {number}  "))
        .text(Text, &workers);
    row.item(
        2,
        &[
            (Text, &format::per_second(loader.batches_per_s)),
            (Dim, " batches/s"),
        ],
    );
    if let Some(queue) = loader.queue {
        queue_item(&mut row, queue);
    }
    row.line()
}

fn queue_item(row: &mut LineBuilder<'_>, queue: QueueRates) {
    let capacity = queue
        .capacity
        .map_or_else(String::new, |capacity| format!(" of {capacity}"));
    let ready = format::per_second(Some(queue.mean_ready));
    row.item(
        2,
        &[
            (Dim, "queue "),
            (Text, &format!("{ready:>4}")),
            (Dim, &capacity),
        ],
    );
}

fn queue_of(rank: &RankRates) -> Option<QueueRates> {
    rank.main_loader()?.queue
}
