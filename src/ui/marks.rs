//! The line below the history: how long ago each part was, the marks, and the text of the marks under the cursor.

use ratatui::text::Line;

use super::{View, axis, format};
use crate::config::Role::{self, Dim, Focus, Text, Trouble};
use crate::model::{Axis, Mark, MarkKind};

/// Each kind with its description in the help.
pub(super) const MEANINGS: [(MarkKind, &str); 7] = [
    (MarkKind::JobBegin, "the job started"),
    (MarkKind::Epoch, "an epoch started"),
    (
        MarkKind::Validation,
        "validation: the trainer reads other data",
    ),
    (MarkKind::Checkpoint, "a checkpoint started"),
    (MarkKind::Worker, "a worker ended or restarted"),
    (MarkKind::Verdict, "the verdict changed"),
    (MarkKind::JobEnd, "the job ended"),
];

/// Seconds between two labelled times.
const TICKS: [f64; 14] = [
    1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 86400.0,
];
/// Least cells between two labels.
const MIN_GAP: f64 = 18.0;

/// Returns a character for each cell: labels with the time before the end of the axis, where no mark is in the way.
fn ticks(axis: &Axis, placed: &[Vec<&Mark>]) -> Vec<char> {
    let cells = placed.len();
    let mut line = vec![' '; cells];
    let cell = axis.bounds().next().map_or(1.0, |(from, to)| to - from);
    let Some(step) = TICKS.into_iter().find(|step| step / cell >= MIN_GAP) else {
        return line;
    };
    for number in 1..=cells {
        let ago = step * number as f64;
        let at = axis.to() - ago;
        let Some(place) = axis.cell_of(at, at).filter(|_| at >= axis.from()) else {
            break;
        };
        let words = format!("'-{}", format::span(ago));
        // A blank cell on either side, so that a mark is not read as part of the label.
        let room = place.saturating_sub(1)..(place + words.len() + 1).min(cells);
        let free = placed
            .get(room)
            .filter(|_| place + words.len() <= cells)
            .is_some_and(|cells| cells.iter().all(Vec::is_empty));
        if free {
            line.splice(place..place + words.len(), words.chars());
        }
    }
    line
}

/// Returns the text of the marks under the cursor; empty if there is none.
pub(super) fn words(view: &View<'_>, cells: usize) -> String {
    let (Some(axis), Some(cursor)) = (axis::of(view, cells), axis::cursor(view, cells)) else {
        return String::new();
    };
    let placed = placed(view, &axis, cells);
    let here = placed.get(cursor).into_iter().flatten();
    let words: Vec<_> = here.map(|mark| mark.words.as_str()).collect();
    words.join("; ")
}

/// Returns the marks of each cell, the most important first. If a cell has marks of two kinds, such as an epoch that
/// begins after a checkpoint, the less important kind moves to the next cell if that is free.
fn placed<'a>(view: &View<'a>, axis: &Axis, cells: usize) -> Vec<Vec<&'a Mark>> {
    let mut placed: Vec<Vec<&Mark>> = vec![Vec::new(); cells];
    for mark in view.history.marks().between(axis.from(), axis.to()) {
        let cell = view.history.cell(axis, mark.at);
        if let Some(cell) = cell.and_then(|cell| placed.get_mut(cell)) {
            cell.push(mark);
        }
    }
    for cell in 0..cells {
        placed[cell].sort_by_key(|mark| mark.kind);
        let first = placed[cell].first().map(|mark| mark.kind);
        let lesser = placed[cell].partition_point(|mark| Some(mark.kind) <= first);
        if lesser < placed[cell].len() && placed.get(cell + 1).is_some_and(Vec::is_empty) {
            placed[cell + 1] = placed[cell].split_off(lesser);
        }
    }
    placed
}

/// Draws the line, `indent + label` cells from the left: the most important mark of each cell.
pub(super) fn line(
    view: &View<'_>,
    width: u16,
    (indent, label): (usize, usize),
    cells: usize,
) -> Line<'static> {
    let mut row = view.row(width);
    row.space(indent);
    let Some(axis) = axis::of(view, cells) else {
        return row.line();
    };
    let cursor = axis::cursor(view, cells);
    let placed = placed(view, &axis, cells);
    let marked = placed.iter().any(|marks| !marks.is_empty());
    row.padded(Dim, if marked { "marks" } else { "" }, label);
    // The text between two marks is one span.
    let mut ticks = ticks(&axis, &placed).into_iter();
    let mut between = String::new();
    for (cell, marks) in placed.iter().enumerate() {
        let tick = ticks.next().unwrap_or(' ');
        if marks.is_empty() && cursor != Some(cell) {
            between.push(tick);
            continue;
        }
        row.text(Dim, &std::mem::take(&mut between));
        match (marks.first().map(|mark| mark.kind), cursor == Some(cell)) {
            (Some(kind), here) => {
                let paint = if here { Focus } else { paint(kind) };
                row.text(paint, view.glyphs().mark_sign(kind))
            }
            (None, _) => row.text(Focus, view.glyphs().cursor),
        };
    }
    row.text(Dim, &between);
    row.line()
}

/// Returns the colour of a mark; only the end of the job or of a worker has the colour of trouble.
pub(super) fn paint(kind: MarkKind) -> Role {
    match kind {
        MarkKind::JobEnd | MarkKind::Worker => Trouble,
        _ => Text,
    }
}
