//! The loaders: a cell each, with the part of its batch that is done.

use ratatui::text::Line;

use super::region::{RegionSize, SimulationView, bar};
use crate::config::Role::{Border, Dim, Text, Wait};
use crate::lab::experiments::simulate::LoaderState;
use crate::ui::line_builder::LineBuilder;

/// `0.62`, and `idle`.
const FIGURE: usize = 4;
/// Cells between two loaders on a line.
const GAP: usize = 2;

/// One loader a line where there is room, else in columns, else a height each.
pub(super) fn draw(view: &SimulationView<'_>, room: RegionSize) -> Vec<Line<'static>> {
    let loaders: Vec<LoaderState> = view.simulation.loaders().collect();
    let RegionSize { width, lines, .. } = room;
    let lines = lines.max(1);
    let columns = loaders.len().div_ceil(lines).max(1);
    let step = (usize::from(width) + GAP) / columns;
    let cell = step.saturating_sub(GAP);
    // A number on its ground, a cell of air, the figure.
    let label = view.digits() + 2;
    if cell < label + 1 + FIGURE {
        return heights(view, width, lines, &loaders);
    }
    let rows = loaders.len().div_ceil(columns);
    let line = |line: usize| {
        let mut row = view.row(width);
        for (column, place) in (line..loaders.len()).step_by(rows).enumerate() {
            row.to(column * step);
            one(
                view,
                &mut row,
                place,
                loaders[place],
                cell - label - 1 - FIGURE,
            );
        }
        row.line()
    };
    (0..rows).map(line).collect()
}

/// Number, bar and figure; `spare` cells are for the bar.
fn one(
    view: &SimulationView<'_>,
    row: &mut LineBuilder<'_>,
    place: usize,
    loader: LoaderState,
    spare: usize,
) {
    let digits = view.digits();
    let worker = u32::try_from(place).unwrap_or(u32::MAX);
    row.styled(view.batch(worker), &format!(" {place:>digits$} "));
    row.space(1);
    // A bar of fewer cells says less than the figure does.
    let cells = spare.saturating_sub(1);
    let empty = view.config.theme.style(Border);
    let done = match loader {
        LoaderState::Loading(done) => done,
        LoaderState::Idle => 0.0,
    };
    if cells >= 3 {
        bar(row, view.hue(worker), empty, done, cells);
        row.space(1);
    }
    match loader {
        LoaderState::Loading(done) => row.text(Text, &format!("{done:.2}")),
        LoaderState::Idle => row.text(Wait, "idle"),
    };
}

/// A cell each.
fn heights(
    view: &SimulationView<'_>,
    width: u16,
    lines: usize,
    loaders: &[LoaderState],
) -> Vec<Line<'static>> {
    let width_cells = usize::from(width).max(1);
    let places: Vec<usize> = (0..loaders.len()).collect();
    let room = width_cells * lines;
    let hidden = loaders.len().saturating_sub(room);
    let more = format!(" +{}", hidden + 5);
    let shown = if hidden > 0 {
        room.saturating_sub(more.len())
    } else {
        loaders.len()
    };
    let mut drawn: Vec<Line<'static>> = Vec::new();
    for line in places[..shown].chunks(width_cells) {
        let mut row = view.row(width);
        for place in line {
            let worker = u32::try_from(*place).unwrap_or(u32::MAX);
            let glyphs = row.glyphs();
            match loaders[*place] {
                LoaderState::Idle => row.text(Wait, glyphs.sign(Wait)),
                LoaderState::Loading(done) => {
                    let step = (1..glyphs.levels.len()).rev();
                    let step = step.into_iter().find(|step| done * 8.0 >= *step as f64);
                    row.styled(view.hue(worker), glyphs.levels[step.unwrap_or(0)])
                }
            };
        }
        if hidden > 0 && line.last() == Some(&(shown - 1)) {
            row.text(Dim, &format!(" +{}", loaders.len() - shown));
        }
        drawn.push(row.line());
    }
    drawn
}
