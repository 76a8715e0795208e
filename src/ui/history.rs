//! The history panel: figures on the time axis that all panels share, each in one or more lines.

mod series;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::symbols::bar;
use ratatui::text::Line;
use ratatui::widgets::{Sparkline, Widget};

use super::axis::{self, FIGURE, LABEL, cells};
use super::glyphs::{GAP, Glyphs};
use super::layout::{BorderStyle, count};
use super::line_builder::LineBuilder;
use super::panel::{Content, Inside};
use super::{View, format, marks};
use crate::config::Role::{self, Dim, Focus, Text, Unknown};
use crate::units::{Share, whole};
use series::HistorySeries;
pub(super) use series::{disk_read, gpu_util, past, relative_to_max};

/// Tolerance that puts a threshold exactly between two rows into the upper one.
const EXACT: f64 = 1e-6;
/// Shares that the full height may stand for, for a figure with thresholds.
const TOPS: [f64; 3] = [0.25, 0.5, 1.0];

/// Share of the full height up to which a figure without thresholds counts as low.
const LOW: f64 = 0.03;

/// Returns the number of figures.
pub(super) fn wanted(view: &View<'_>, _: u16) -> u16 {
    count(series::all(view, 0).len())
}

pub(super) fn content(view: &View<'_>, inside: Inside) -> Content {
    let (width, indent) = (inside.width, inside.border.indent());
    let cells = cells(view.screen.width, inside.border == BorderStyle::Boxed);
    let span = axis::words(view);
    let name = title(view, usize::from(view.screen.width), &span, cells);
    let mut series = series::all(view, cells);
    let height = inside.height;
    // The last line is for marks, if there is room for more than two figures.
    let marks = height >= 3 && !view.history.is_empty();
    let height = height - usize::from(marks);
    // If not all figures fit, the known ones take precedence.
    series.sort_by_key(HistorySeries::is_unknown);
    series.truncate(height);
    if series.is_empty() {
        return Content::new(&name, &span, vec![]);
    }
    let cursor = axis::cursor(view, cells);
    // Tall graphs are separated by a blank line.
    let count = series.len();
    let air = usize::from(height >= count * 4 - 1);
    let flats = series.iter().filter(|series| series.is_low()).count();
    let tall = (count - flats).max(1);
    let room = height.saturating_sub(air * (count - 1));
    let rows = (room.saturating_sub(flats) / tall).max(1);
    // Leftover lines go to the first figures.
    let mut left = room.saturating_sub(rows * tall + flats);
    let mut lines: Vec<_> = series
        .iter()
        .flat_map(|one| {
            let rows = if one.is_low() {
                1
            } else {
                let more = left.min(1);
                left -= more;
                rows + more
            };
            let mut lines = one.lines(view, width, indent, (cells, cursor), rows);
            lines.extend((0..air).map(|_| Line::default()));
            lines
        })
        .collect();
    if marks {
        lines.truncate(height);
        lines.push(marks::line(view, width, (indent, LABEL), cells));
    }
    Content::new(&name, &span, lines)
}

/// Returns the panel's name, and the text of the marks under the cursor, if there is room beside the span.
fn title(view: &View<'_>, width: usize, span: &str, cells: usize) -> String {
    let name = view.of_rank("history");
    let said = marks::words(view, cells);
    if said.is_empty() {
        return name;
    }
    let room = width.saturating_sub(name.len() + span.len() + 12);
    let said = format::clean(&said, view.config.ascii);
    format!(
        "{name}: {}",
        format::cut_words(&said, room, view.glyphs().more)
    )
}

/// Whether anything was read from disks in the time that a graph of this width shows.
pub(super) fn reads(view: &View<'_>, width: u16) -> bool {
    let cells = usize::from(width).saturating_sub(FIGURE);
    !is_flat(&disk_read(view, cells).0)
}

/// Whether no known value is above 0.
fn is_flat(values: &[Option<f64>]) -> bool {
    values.iter().flatten().all(|value| *value <= 0.0)
}

impl HistorySeries {
    /// Whether the figure was always close to 0 (with thresholds: 0), so that several lines would show no more than
    /// one.
    fn is_low(&self) -> bool {
        let most = if self.thresholds.is_empty() { LOW } else { 0.0 };
        self.values.iter().flatten().all(|value| *value <= most)
    }

    /// Returns what the full height of this many rows stands for: the maximum, or, for a figure with thresholds, a
    /// lower share, which moves the thresholds further apart.
    fn top(&self, rows: usize) -> (f64, String) {
        let most = self.values.iter().flatten().copied().fold(0.0, f64::max);
        let mut tops = TOPS
            .into_iter()
            .filter(|_| !self.thresholds.is_empty() && rows > 1);
        match tops.find(|top| most <= *top) {
            Some(top) => (top, format::percent(Some(Share(top)))),
            None => (1.0, self.top.clone()),
        }
    }

    fn lines(
        &self,
        view: &View<'_>,
        width: u16,
        indent: usize,
        (cells, cursor): (usize, Option<usize>),
        rows: usize,
    ) -> Vec<Line<'static>> {
        let (full, top) = self.top(rows);
        let values = self.values.iter();
        let values: Vec<_> = values
            .map(|value| value.map(|value| value / full))
            .collect();
        let picture = sparkline(view.glyphs(), &values, cells, rows);
        // A figure that was always 0 needs no attention.
        let paint = if is_flat(&self.values) {
            Dim
        } else {
            self.paint
        };
        // The highest threshold whose light line is in this row; row 0 is the lowest.
        let threshold = |level: usize| {
            let height = full / rows as f64;
            let row = level as f64 * height..(level + 1) as f64 * height;
            let mut shares = self.thresholds.iter().copied();
            shares.rfind(|share| *share < full && row.contains(&(share + EXACT)))
        };
        (0..rows)
            .rev()
            .map(|level| {
                let mut row = view.row(width);
                row.space(indent);
                row.padded(Dim, if level == 0 { &self.name } else { "" }, LABEL);
                let texts = texts(&picture, rows - 1 - level);
                if self.is_unknown() {
                    row.text(Unknown, "n/a  not visible so far");
                    return row.line();
                }
                let line = view.glyphs().cursor;
                let cursor = cursor.map(|cell| (cell, line));
                let threshold = threshold(level).filter(|_| level > 0);
                if threshold.is_some() && cursor.is_none() {
                    before_a_line(view, &mut row, paint, &texts);
                } else {
                    in_cells(&mut row, paint, &texts, cursor);
                }
                if level == 0 {
                    let known = if self.now == format::UNKNOWN {
                        Unknown
                    } else {
                        Text
                    };
                    row.right(known, &self.now, FIGURE);
                } else if level + 1 == rows && self.values.iter().any(Option::is_some) {
                    row.right(Dim, &top, FIGURE);
                } else if let Some(share) = threshold {
                    row.right(Dim, &format::percent(Some(Share(share))), FIGURE);
                }
                row.line()
            })
            .collect()
    }
}

/// Fills the remaining lines of a panel with a graph; the full height stands for `top`. Draws nothing if all values are
/// 0, or in a single line, which would show too little.
pub(super) fn graph(
    view: &View<'_>,
    paint: Role,
    width: u16,
    rows: usize,
    (values, top): (impl Fn(usize) -> Vec<Option<f64>>, &str),
) -> Vec<Line<'static>> {
    let cells = usize::from(width).saturating_sub(FIGURE);
    if rows < 2 || cells == 0 {
        return Vec::new();
    }
    let values = values(cells);
    if is_flat(&values) {
        return Vec::new();
    }
    let picture = sparkline(view.glyphs(), &values, cells, rows);
    let line = |place: usize| {
        let mut row = view.row(width);
        row.text(paint, &texts(&picture, place).concat());
        if place == 0 {
            row.right(Dim, top, FIGURE);
        }
        row.line()
    };
    (0..rows).map(line).collect()
}

/// Draws values from 0 to 1 as a line of bars that ends at the right end of `cells`; the bar at the cursor stands out.
pub(crate) fn spark(
    row: &mut LineBuilder<'_>,
    paint: Role,
    values: &[Option<f64>],
    cells: usize,
    cursor: Option<usize>,
) {
    let picture = sparkline(row.glyphs(), values, cells, 1);
    let texts = texts(&picture, 0);
    let paint = if is_flat(values) { Dim } else { paint };
    let cursor = cursor.and_then(|cell| Some((cell, *texts.get(cell)?)));
    in_cells(row, paint, &texts, cursor);
}

/// Draws a text in each cell; the one at the cursor is replaced and has the colour of the focus.
fn in_cells(row: &mut LineBuilder<'_>, paint: Role, texts: &[&str], cursor: Option<(usize, &str)>) {
    match cursor.filter(|(cell, _)| *cell < texts.len()) {
        None => row.text(paint, &texts.concat()),
        Some((cell, line)) => row
            .text(paint, &texts[..cell].concat())
            .text(Focus, line)
            .text(paint, &texts[cell + 1..].concat()),
    };
}

/// Draws a text in each cell, and a light line in empty ones.
fn before_a_line(view: &View<'_>, row: &mut LineBuilder<'_>, paint: Role, texts: &[&str]) {
    for piece in texts.chunk_by(|one, other| (*one == GAP) == (*other == GAP)) {
        if piece[0] == GAP {
            row.text(Dim, &view.glyphs().light.repeat(piece.len()));
        } else {
            row.text(paint, &piece.concat());
        }
    }
}

/// Renders values from 0 to 1, the last at the right end of `cells`.
fn sparkline(glyphs: &Glyphs, values: &[Option<f64>], cells: usize, rows: usize) -> Buffer {
    let values = &values[values.len().saturating_sub(cells)..];
    let levels = glyphs.levels;
    let bars = bar::Set {
        empty: " ",
        one_eighth: levels[0],
        one_quarter: levels[1],
        three_eighths: levels[2],
        half: levels[3],
        five_eighths: levels[4],
        three_quarters: levels[5],
        seven_eighths: levels[6],
        full: levels[7],
    };
    // Every value shows at least one eighth, and the topmost eighth stays free, so that a full bar does not touch the
    // line above.
    let most = 8 * rows;
    let eighths = |value: f64| {
        let height = (value.clamp(0.0, 1.0) * (most - 1) as f64).round();
        whole(height).max(1) as u64
    };
    let data = values.iter().map(|value| value.map(eighths));
    let sparkline = Sparkline::default()
        .data(data)
        .max(most as u64)
        .bar_set(bars)
        .absent_value_symbol(GAP);
    let mut picture = Buffer::empty(Rect::new(0, 0, count(cells), count(rows)));
    let area = Rect {
        x: count(cells - values.len()),
        width: count(values.len()),
        ..picture.area
    };
    sparkline.render(area, &mut picture);
    picture
}

/// Returns the text of each cell in one line of the picture; line 0 is the top.
fn texts(picture: &Buffer, line: usize) -> Vec<&str> {
    let width = usize::from(picture.area.width);
    let mut lines = picture.content.chunks(width.max(1));
    let cells = lines.nth(line).into_iter().flatten();
    cells.map(Cell::symbol).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_next_to_nothing_takes_one_line_unless_it_has_thresholds() {
        let series = |value, thresholds| HistorySeries {
            name: String::new(),
            paint: Text,
            values: vec![None, Some(0.0), Some(value)],
            now: String::new(),
            top: String::new(),
            thresholds,
        };
        assert!(series(0.02, &[]).is_low());
        assert!(!series(0.05, &[]).is_low());
        assert!(series(0.0, &[0.05]).is_low());
        assert!(!series(0.02, &[0.05]).is_low());
    }
}
