//! The path of a batch in one line: workers, queue, trainer; below it the time of each step.

pub(super) mod batch;
mod flow;

use ratatui::text::Line;

use super::layout::BorderStyle;
use super::line_builder::LineBuilder;
use super::panel::{self, Content, Inside};
use super::{View, format};
use crate::config::Role::{self, Dim, Text};
use crate::model::rates::{LoaderRates, QueueRates, RankRates};
use crate::units::{counted, median};
use flow::flow;

/// Most workers of a rank that get a cell each.
const MAX_HEAT_CELLS: usize = 32;
/// Difference from the median wait share above which a rank is listed first.
const OUTLIER: f64 = 0.1;

pub(super) fn wanted(view: &View<'_>, _: u16) -> u16 {
    let ranks = view.ranks().len();
    // Without a loader there is no batch.
    let batch = if view.loader().is_some() { 2 } else { 0 };
    1 + batch
        + loaders(view)
        + if ranks > 1 {
            super::layout::count(ranks)
        } else {
            0
        }
}

/// Returns one line per loader if there are several, otherwise none.
pub(super) fn loaders(view: &View<'_>) -> u16 {
    let count = view.loaders().len();
    super::layout::count(if count > 1 { count } else { 0 })
}

pub(super) fn content(view: &View<'_>, inside: Inside) -> Content {
    let Inside { width, height, .. } = inside;
    let wide = inside.border == BorderStyle::Boxed;
    let mut lines = vec![flow(view, width, wide, height == 1)];
    if view.loader().is_some() {
        let full = height >= 3 + usize::from(loaders(view));
        lines.extend(batch::lines(view, width, wide, full));
    }
    let several = view.loaders();
    let several = several.iter().filter(|_| several.len() > 1);
    lines.extend(several.map(|loader| loader_line(view, loader, width, wide)));
    if view.ranks().len() > 1 {
        let order = order(view);
        let shown = panel::window(
            view.ranks().len(),
            height.saturating_sub(lines.len()),
            order
                .iter()
                .position(|place| *place == view.rank_place())
                .unwrap_or(0),
        );
        lines.extend(shown.map(|line| rank_line(view, order[line], width)));
    }
    Content::new("pipeline", &view.span(), lines)
}

fn rank_line(view: &View<'_>, place: usize, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    let Some(rank) = view.ranks().get(place) else {
        return row.line();
    };
    let shown = place == view.rank_place();
    let mark = if shown { view.glyphs().mark } else { " " };
    row.text(Role::Focus, mark)
        .text(Dim, " rank ")
        .right(Text, &rank.number.to_string(), 2);
    let workers = |rank: &RankRates| rank.main_loader().map_or(0, |loader| loader.workers.len());
    let cells = view
        .ranks()
        .iter()
        .map(workers)
        .max()
        .unwrap_or(0)
        .min(MAX_HEAT_CELLS);
    if let Some(loader) = rank.main_loader().filter(|_| width >= 80 && cells > 0) {
        row.space(2);
        batch::heat(view, loader, &mut row, cells);
    }
    let wait = format::percent(rank.wait_share());
    row.space(2).text(Dim, "wait ").right(Text, &wait, 5);
    row.space(2)
        .text(Dim, "step ")
        .right(Text, &format::millis(rank.step.step_ms), 7);
    row.space(2)
        .right(Text, &format::per_second(rank.step.batches_per_s), 5)
        .text(Dim, " batches/s");
    if let Some(queue) = rank.main_loader().and_then(|loader| loader.queue) {
        queue_item(&mut row, queue);
    }
    row.item(2, &[(Dim, "pid "), (Dim, &rank.key.pid.to_string())]);
    row.line()
}

/// Returns the places of the ranks: first those that wait far more or less than most do.
fn order(view: &View<'_>) -> Vec<usize> {
    let ranks = view.ranks();
    let wait = |rank: &RankRates| rank.wait_share().map(|wait| wait.0);
    let median = median(ranks.iter().filter_map(wait));
    let odd = |place: &usize| {
        let wait = wait(&ranks[*place]).zip(median);
        wait.is_some_and(|(wait, median)| (wait - median).abs() > OUTLIER)
    };
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    if ranks.len() > 2 {
        order.sort_by_key(|place| !odd(place));
    }
    order
}

/// Draws one of several loaders, with a mark if the lines above are about it.
fn loader_line(view: &View<'_>, loader: &LoaderRates, width: u16, wide: bool) -> Line<'static> {
    let mut row = view.row(width);
    if !wide {
        row.space(1);
    }
    let shown = view.loader().is_some_and(|main| main.id == loader.id);
    let workers = match loader.workers.len() {
        0 => "in the main thread".to_owned(),
        count => counted(count, "worker"),
    };
    row.text(Role::Focus, if shown { view.glyphs().mark } else { " " })
        .text(Dim, &format!(" {}  ", loader.title()))
        .text(Text, &workers);
    if loader.validates {
        row.item(2, &[(Dim, "validation")]);
    }
    if let Some(wait) = loader.wait {
        row.figure(2, "wait ", &wait.to_string());
    }
    row.item(
        2,
        &[
            (Text, &format::per_second(loader.batches_per_s)),
            (Dim, " batches/s"),
        ],
    );
    if let Some(step) = loader.step_ms {
        row.figure(2, "step ", &format::millis(Some(step)));
    }
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
