//! The data queue: batches that are ready, the one to be taken next on the left; under it, how full it was.

use ratatui::text::Line;

use super::region::{RegionSize, SimulationView};
use crate::config::Role::{Border, Dim, Full};
use crate::ui::history::spark;
use crate::ui::{format, glyphs};

/// `3 of 14 ready, 0.4 on average`
pub(super) fn remark(view: &SimulationView<'_>) -> String {
    let ready = view.simulation.ready().count();
    let capacity = view.simulation.settings().capacity();
    let mean = format::per_second(view.simulation.outcome().mean_ready);
    format!("{ready} of {capacity} ready, {mean} on average")
}

pub(super) fn draw(view: &SimulationView<'_>, room: RegionSize) -> Vec<Line<'static>> {
    let mut drawn = vec![batches(view, room)];
    if room.lines > 1 {
        drawn.push(past(view, room.width));
    }
    drawn
}

/// A number on its hue for each batch, an empty sign for each free place, as far as there is room.
fn batches(view: &SimulationView<'_>, room: RegionSize) -> Line<'static> {
    let mut row = view.row(room.width);
    let mut count = String::new();
    let ready: Vec<u32> = view.simulation.ready().collect();
    let capacity = usize::try_from(view.simulation.settings().capacity()).unwrap_or(usize::MAX);
    let digits = view.digits();
    if room.unnamed {
        row.text(Dim, "queue ");
        count = format!("{}/{capacity}", ready.len());
    }
    // Two cells of air before the count.
    let kept = if count.is_empty() { 0 } else { count.len() + 2 };
    let room = row.left().saturating_sub(kept);
    // Air around the number, the number alone, a sign alone.
    let sizes = [(digits + 2, 1), (digits, 1), (1, 0)];
    let fits = |(cells, gap): &(usize, usize)| capacity.saturating_mul(cells + gap) <= room + gap;
    let (cells, gap) = sizes.into_iter().find(fits).unwrap_or((1, 0));
    let places = ((room + gap) / (cells + gap)).min(capacity);
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
    if !count.is_empty() {
        row.at_end(&[(Dim, &count)]);
    }
    row.line()
}

/// How full it was.
fn past(view: &SimulationView<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    row.text(Dim, "past  ");
    let capacity = view.simulation.settings().capacity().max(1) as f64;
    let room = row.left();
    let moments = view.past(&mut row, room);
    let values: Vec<Option<f64>> = moments
        .map(|moment| Some(moment.ready as f64 / capacity))
        .collect();
    spark(&mut row, Full, &values, values.len(), None);
    row.line()
}
