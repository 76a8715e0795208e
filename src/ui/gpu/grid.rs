//! Many GPUs in few lines: several beside each other, each with its number, its utilisation and a graph.

use ratatui::text::Line;

use super::{errors, line};
use crate::config::Role::{Compute, Dim, Text, Trouble};
use crate::model::rates::GpuRates;
use crate::ui::{View, format};

/// Cells of the narrowest GPU: ` 0 100 %`.
const MIN_GPU_CELLS: usize = 8;
/// Least cells of a graph or a word.
const PAST: usize = 4;
/// Cells between two GPUs of a line.
const GAP: usize = 1;

/// Returns the grid; `None` if it does not fit, or if a GPU has parts, which need lines of their own.
pub(super) fn grid(
    view: &View<'_>,
    gpus: &[GpuRates],
    width: u16,
    room: usize,
    indent: usize,
) -> Option<Vec<Line<'static>>> {
    let columns = gpus.len().div_ceil(room.max(1));
    let cells = ((usize::from(width) + GAP - indent) / columns).checked_sub(GAP)?;
    let divided = gpus.iter().any(|gpu| !gpu.now.instances.is_empty());
    // On a small screen this is all that is visible of most GPUs, so there must be room for a word about errors.
    let words = if indent > 0 { 2 + PAST } else { 0 };
    if divided || cells < MIN_GPU_CELLS + words || room < 2 {
        return None;
    }
    let rows = gpus.len().div_ceil(columns);
    let line = |row: usize| {
        let mut line = view.row(width);
        for (column, place) in (row..gpus.len()).step_by(rows).enumerate() {
            line.to(indent + column * (cells + GAP))
                .append(&one(view, place, &gpus[place], cells));
        }
        line.line()
    };
    Some((0..rows).map(line).collect())
}

/// Draws one GPU. If something is wrong with it, that replaces its graph.
fn one(view: &View<'_>, place: usize, gpu: &GpuRates, cells: usize) -> Line<'static> {
    let mut row = view.row(super::super::layout::count(cells));
    let not_the_jobs = gpu.now.visible_to_job == Some(false);
    let [label, paint] = if not_the_jobs {
        [Dim; 2]
    } else {
        [Text, Compute]
    };
    row.stale(gpu.stale_seconds.is_some());
    row.right(label, &gpu.now.index.to_string(), 2);
    if let Some(gap) = &gpu.now.gap {
        row.space(2).text(Trouble, format::UNKNOWN).space(2);
        row.sentence(Text, gap);
        return row.line();
    }
    let wrong = errors::short_error(gpu).or_else(|| errors::throttle_reason(gpu));
    let paint = wrong.as_ref().map_or(paint, |_| Trouble);
    let lags = line::lags(view.gpus())(gpu);
    row.right(
        if lags { Trouble } else { paint },
        &format::whole_percent(gpu.util_percent),
        6,
    );
    match wrong {
        _ if row.left() < 2 + PAST => {
            // A column this narrow has room for a sign only.
            let sign = wrong.map_or("", |_| view.glyphs().sign(Trouble));
            row.text(Trouble, sign);
        }
        Some(what) => {
            row.space(2).sentence(Trouble, &what);
        }
        None => {
            row.space(2);
            line::past(view, place, paint, row.left(), &mut row);
        }
    }
    row.line()
}
