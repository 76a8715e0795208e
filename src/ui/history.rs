//! The past: one line or more per figure, a cell an interval, from the left edge on; once full, it scrolls.

use ratatui::Frame;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::symbols::bar;
use ratatui::text::Line;
use ratatui::widgets::{Sparkline, Widget};

use super::axis::{self, FIGURE, LABEL, cells};
use super::glyphs::Glyphs;
use super::layout::{BorderStyle, count};
use super::line_builder::LineBuilder;
use super::state::Panel;
use super::{View, format, marks, panel};
use crate::config::Role::{self, Border, Compute, Dim, Focus, Full, Read, Text, Unknown, Wait};
use crate::model::history::{Known, Point, RankPoint};
use crate::units::Share;

/// One figure over time, 0 to 1 as drawn.
struct Series {
    name: String,
    paint: Role,
    values: Vec<Option<f64>>,
    /// The figure of the window, in words.
    now: String,
    /// What the full height stands for, in words.
    top: String,
    /// Shares at which a light line stands, lowest first.
    thresholds: &'static [f64],
}

/// From slight to data-bound, as verdicts take a wait.
const WAITS: &[f64] = &[0.05, 0.1, 0.2];
/// A threshold on the edge of two rows stands in the upper one.
const EXACT: f64 = 1e-6;
/// Lines that a figure fills at most.
const TALLEST: usize = 12;
/// What the full height of a share may stand for where it has thresholds.
const TOPS: [f64; 3] = [0.25, 0.5, 1.0];

/// Figures that there are.
pub(super) fn wanted(view: &View<'_>) -> u16 {
    count(series(view, 0).len())
}

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, border: BorderStyle) {
    let indent = usize::from(border != BorderStyle::Boxed);
    let cells = cells(area.width, border == BorderStyle::Boxed);
    let span = axis::words(view);
    let name = title(view, usize::from(area.width), &span, cells);
    let inner = panel::open(view, frame, area, border, Panel::History, &name, &span);
    let mut series = series(view, cells);
    let height = usize::from(inner.height);
    // The last line, where there is room for more than a figure or two.
    let marks = height >= 3 && !view.history.is_empty();
    let height = height - usize::from(marks);
    series.truncate(if height >= 4 { 4 } else { height });
    if series.is_empty() {
        return;
    }
    let cursor = axis::cursor(view, cells);
    // Tall pictures get a line of air between them.
    let count = series.len();
    let air = usize::from(height >= count * 4 - 1);
    let rows = ((height - air * (count - 1)) / count).clamp(1, TALLEST);
    // What is left over goes to the first figures.
    let left = height.saturating_sub(rows * count + air * (count - 1));
    let mut lines: Vec<_> = series
        .iter()
        .enumerate()
        .flat_map(|(place, one)| {
            let rows = rows + usize::from(place < left);
            let mut lines = one.lines(view, inner.width, indent, (cells, cursor), rows);
            lines.extend((0..air).map(|_| Line::default()));
            lines
        })
        .collect();
    if marks {
        lines.truncate(height);
        lines.push(marks::line(view, inner.width, (indent, LABEL), cells));
    }
    panel::write(frame, inner, lines);
}

/// The panel's name, and what the marks say that the cursor is on, as far as the span leaves room.
fn title(view: &View<'_>, width: usize, span: &str, cells: usize) -> String {
    let name = if view.ranks().len() > 1 {
        format!("history of rank {}", view.rank_number())
    } else {
        "history".to_owned()
    };
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

fn series(view: &View<'_>, cells: usize) -> Vec<Series> {
    let rank = view.rank();
    let queue = rank.and_then(|rank| rank.main_loader()?.queue);
    let number = view.rank_number();
    let of_rank = |point: &Point, pick: fn(&RankPoint) -> Known| pick(point.rank(number)?).get();
    let mut series = vec![
        Series {
            name: "wait".to_owned(),
            paint: Wait,
            values: past(view, cells, |point| of_rank(point, |rank| rank.wait)),
            now: format::percent(rank.and_then(|rank| rank.wait).map(|wait| wait.share)),
            top: "100 %".to_owned(),
            thresholds: WAITS,
        },
        Series {
            name: "queue".to_owned(),
            top: "full".to_owned(),
            thresholds: &[],
            paint: Full,
            values: past(view, cells, |point| of_rank(point, |rank| rank.queue)),
            now: queue.map_or_else(
                || format::UNKNOWN.to_owned(),
                |queue| {
                    let ready = format::per_second(Some(queue.mean_ready));
                    queue.capacity.map_or_else(
                        || ready.clone(),
                        |capacity| format!("{ready} of {capacity}"),
                    )
                },
            ),
        },
    ];
    if view.history.gpus() > 0 {
        let place = view.gpu_place();
        let gpu = view.gpus().get(place);
        let name = match gpu {
            Some(gpu) if view.gpus().len() > 1 => format!("GPU {}", gpu.now.index),
            _ => "GPU".to_owned(),
        };
        let util = gpu.and_then(|gpu| gpu.util_percent);
        series.push(Series {
            name,
            top: "100 %".to_owned(),
            thresholds: &[],
            paint: Compute,
            values: past(view, cells, |point| gpu_util(point, place)),
            now: util.map_or_else(|| format::UNKNOWN.to_owned(), format::whole_percent),
        });
    }
    let (values, most) = disk_read(view, cells);
    series.push(Series {
        name: "read".to_owned(),
        top: format::rate(Some(most)),
        thresholds: &[],
        paint: Read,
        values,
        now: format::rate(
            view.figures()
                .and_then(|rates| Some(rates.job.as_ref()?.read?.0)),
        ),
    });
    series
}

/// A figure over the time that is shown, in so many cells.
pub(super) fn past(
    view: &View<'_>,
    cells: usize,
    pick: impl Fn(&Point) -> Option<f64>,
) -> Vec<Option<f64>> {
    axis::of(view, cells).map_or_else(Vec::new, |axis| view.history.means(&axis, pick))
}

/// Utilisation of the GPU at this place, 0 to 1.
pub(super) fn gpu_util(point: &Point, place: usize) -> Option<f64> {
    Some(point.gpus.get(place)?.util_percent.get()? / 100.0)
}

/// What the job read from disks, as parts of the most that it read in a cell, and that in bytes per second.
pub(super) fn disk_read(view: &View<'_>, cells: usize) -> (Vec<Option<f64>>, f64) {
    let values = past(view, cells, |point| point.disk_read.get());
    let most = values.iter().flatten().copied().fold(1.0, f64::max);
    let parts = values.iter().map(|value| value.map(|value| value / most));
    (parts.collect(), most)
}

impl Series {
    /// What the full height of so many rows stands for: all that there can be, or, where it has thresholds, less, so that
    /// they are told apart.
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
        // The share whose light line stands in this row, the lowest row being 0.
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
                let line = view.glyphs().cursor;
                let cursor = cursor.map(|cell| (cell, line));
                let threshold = threshold(level).filter(|_| level > 0);
                if threshold.is_some() && cursor.is_none() {
                    before_a_line(view, &mut row, self.paint, &texts);
                } else {
                    in_cells(&mut row, self.paint, &texts, cursor);
                }
                if level == 0 {
                    let known = if self.now == format::UNKNOWN {
                        Unknown
                    } else {
                        Text
                    };
                    row.right(known, &self.now, FIGURE);
                } else if level + 1 == rows && self.values.iter().any(Option::is_some) {
                    row.right(Border, &top, FIGURE);
                } else if let Some(share) = threshold {
                    row.right(Border, &format::percent(Some(Share(share))), FIGURE);
                }
                row.line()
            })
            .collect()
    }
}

/// Lines that a panel has left, filled with a figure of the past; the full height stands for `top`. A single line says too
/// little.
pub(super) fn graph(
    view: &View<'_>,
    paint: Role,
    width: u16,
    lines: usize,
    (values, top): (impl Fn(usize) -> Vec<Option<f64>>, &str),
) -> Vec<Line<'static>> {
    let cells = usize::from(width).saturating_sub(FIGURE);
    let rows = lines.min(TALLEST);
    if rows < 2 || cells == 0 {
        return Vec::new();
    }
    let picture = sparkline(view.glyphs(), &values(cells), cells, rows);
    let line = |place: usize| {
        let mut row = view.row(width);
        row.text(paint, &texts(&picture, place).concat());
        if place == 0 {
            row.right(Border, top, FIGURE);
        }
        row.line()
    };
    (0..rows).map(line).collect()
}

/// A line of heights: values from 0 to 1, the last at the right end of `cells`; the one at the cursor stands out.
pub(crate) fn spark(
    row: &mut LineBuilder<'_>,
    paint: Role,
    values: &[Option<f64>],
    cells: usize,
    cursor: Option<usize>,
) {
    let picture = sparkline(row.glyphs(), values, cells, 1);
    let texts = texts(&picture, 0);
    let cursor = cursor.and_then(|cell| Some((cell, *texts.get(cell)?)));
    in_cells(row, paint, &texts, cursor);
}

/// A text for each cell; at the cursor another one in the colour of what has the keys.
fn in_cells(row: &mut LineBuilder<'_>, paint: Role, texts: &[&str], cursor: Option<(usize, &str)>) {
    match cursor.filter(|(cell, _)| *cell < texts.len()) {
        None => row.text(paint, &texts.concat()),
        Some((cell, line)) => row
            .text(paint, &texts[..cell].concat())
            .text(Focus, line)
            .text(paint, &texts[cell + 1..].concat()),
    };
}

/// A text for each cell, and a light line where there is none.
fn before_a_line(view: &View<'_>, row: &mut LineBuilder<'_>, paint: Role, texts: &[&str]) {
    let gap = view.glyphs().gap;
    for piece in texts.chunk_by(|one, other| (*one == gap) == (*other == gap)) {
        if piece[0] == gap {
            row.text(Border, &view.glyphs().light.repeat(piece.len()));
        } else {
            row.text(paint, &piece.concat());
        }
    }
}

/// Values from 0 to 1, the last at the right end of `cells`.
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
    // The lowest line always shows something, and the last eighth stays free, so that what is full does not run into
    // the line above.
    let most = 8 * rows as u64;
    let eighths = |value: f64| {
        let height = (value.clamp(0.0, 1.0) * (most - 1) as f64).round();
        (1..most).rev().find(|eighths| height >= *eighths as f64)
    };
    let data = values
        .iter()
        .map(|value| value.map(|value| eighths(value).unwrap_or(1)));
    let sparkline = Sparkline::default()
        .data(data)
        .max(most)
        .bar_set(bars)
        .absent_value_symbol(glyphs.gap);
    let mut picture = Buffer::empty(Rect::new(0, 0, count(cells), count(rows)));
    let area = Rect {
        x: count(cells - values.len()),
        width: count(values.len()),
        ..picture.area
    };
    sparkline.render(area, &mut picture);
    picture
}

/// A text for each cell of a line of it, the highest line first.
fn texts(picture: &Buffer, line: usize) -> Vec<&str> {
    let width = usize::from(picture.area.width);
    let mut lines = picture.content.chunks(width.max(1));
    let cells = lines.nth(line).into_iter().flatten();
    cells.map(Cell::symbol).collect()
}
