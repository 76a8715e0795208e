//! The data queue: batches that are ready, the one to be taken next on the left; under it, how full it was.

use ratatui::text::Line;

use super::super::history::spark;
use super::super::{format, glyphs};
use super::SimulationView;
use crate::config::Paint::{Border, Dim, Full};

/// `3 of 14 ready`
pub(super) fn remark(view: &SimulationView<'_>) -> String {
    let ready = view.simulation.ready().count();
    format!("{ready} of {} ready", view.simulation.settings().capacity())
}

pub(super) fn draw(view: &SimulationView<'_>, width: u16, lines: usize) -> Vec<Line<'static>> {
    let mut drawn = vec![batches(view, width, lines)];
    if lines > 1 {
        drawn.push(past(view, width));
    }
    drawn
}

/// A number on its hue for each batch, an empty sign for each free place, as far as there is room.
fn batches(view: &SimulationView<'_>, width: u16, lines: usize) -> Line<'static> {
    let mut row = view.row(width);
    if lines == 1 {
        row.text(Dim, "queue ");
    }
    let ready: Vec<u32> = view.simulation.ready().collect();
    let capacity = usize::try_from(view.simulation.settings().capacity()).unwrap_or(usize::MAX);
    let digits = view.digits();
    let count = format!(" {}/{capacity}", ready.len());
    let room = row.left().saturating_sub(count.len());
    // Air around the number, the number alone, a sign alone.
    let sizes = [(digits + 2, 1), (digits, 1), (1, 0)];
    let fits = |(cells, gap): &(usize, usize)| capacity.saturating_mul(cells + gap) <= room + gap;
    let (cells, gap) = sizes.into_iter().find(fits).unwrap_or((1, 0));
    let places = room.checked_div(cells + gap).unwrap_or(0).min(capacity);
    let signs = glyphs::of(view.config);
    for place in 0..places {
        match ready.get(place) {
            Some(worker) if cells > digits => {
                row.styled(view.batch(*worker), &format!(" {worker:>digits$} "));
            }
            Some(worker) if cells == digits => {
                row.styled(view.batch(*worker), &format!("{worker:>digits$}"));
            }
            Some(worker) => {
                row.styled(view.hue(*worker), signs.slot_full);
            }
            None => {
                let left = (cells - 1) / 2;
                row.space(left);
                row.styled(view.config.theme.style(Border), signs.slot_empty);
                row.space(cells - 1 - left);
            }
        }
        row.space(gap);
    }
    row.at_end(&[(Dim, &count)]);
    row.line()
}

/// How full it was in each part of the time, from the start on.
fn past(view: &SimulationView<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    let settings = view.simulation.settings();
    let outcome = view.simulation.outcome();
    let capacity = settings.capacity().max(1) as f64;
    let over_time = outcome.ready_over_time.iter();
    let values: Vec<Option<f64>> = over_time.map(|ready| Some(ready / capacity)).collect();
    let cells = values.len().min(row.left());
    row.text(Dim, "past ");
    let cells = cells.min(row.left());
    spark(&mut row, Full, &values, cells);
    let mean = format::per_second(outcome.mean_ready);
    row.at_end(&[(Dim, "mean "), (Dim, &mean)]);
    row.line()
}
