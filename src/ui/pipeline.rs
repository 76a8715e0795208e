//! The way of a batch on one line: workers, queue, trainer; under it what each step takes.

pub(super) mod batch;
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

/// Workers of a rank that get a cell each, at most.
const HEAT: usize = 32;
/// By how much more or less than most a rank waits that stands first.
const ODD: f64 = 0.1;

pub(super) fn wanted(view: &View<'_>) -> u16 {
    let ranks = view.ranks().len();
    3 + other_loaders(view)
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
    lines.extend(batch::lines(
        view,
        inner.width,
        wide,
        inner.height >= 3 + other_loaders(view),
    ));
    let others = view.rank().into_iter().flat_map(RankRates::other_loaders);
    lines.extend(
        (2..)
            .zip(others)
            .map(|other| other_line(view, other, inner.width, wide)),
    );
    if view.ranks().len() > 1 {
        let order = order(view);
        let shown = panel::window(
            view.ranks().len(),
            usize::from(inner.height).saturating_sub(lines.len()),
            order
                .iter()
                .position(|place| *place == view.rank_place())
                .unwrap_or(0),
        );
        lines.extend(shown.map(|line| rank_line(view, order[line], inner.width)));
    }
    panel::write(frame, inner, lines);
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
    let workers = |rank: &RankRates| rank.main_loader().map_or(0, |loader| loader.workers.len());
    let cells = view
        .ranks()
        .iter()
        .map(workers)
        .max()
        .unwrap_or(0)
        .min(HEAT);
    if let Some(loader) = rank.main_loader().filter(|_| width >= 80 && cells > 0) {
        row.space(2);
        batch::heat(view, loader, &mut row, cells);
    }
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

/// The places of the ranks: first those that wait far more or less than most do.
fn order(view: &View<'_>) -> Vec<usize> {
    let ranks = view.ranks();
    let wait = |rank: &RankRates| rank.wait.map(|wait| wait.share.0);
    let mut waits: Vec<f64> = ranks.iter().filter_map(wait).collect();
    waits.sort_by(f64::total_cmp);
    let median = waits.get(waits.len() / 2).copied();
    let odd = |place: &usize| {
        let wait = wait(&ranks[*place]).zip(median);
        wait.is_some_and(|(wait, median)| (wait - median).abs() > ODD)
    };
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    if ranks.len() > 2 {
        order.sort_by_key(|place| !odd(place));
    }
    order
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
