//! The line of marks below the past, and what those say that the cursor is on.

use ratatui::text::Line;

use super::{View, axis};
use crate::config::Role::{self, Dim, Focus, Text, Trouble};
use crate::model::{Axis, Mark, MarkKind};

/// Each kind with what the help says of it.
pub(super) const MEANINGS: [(MarkKind, &str); 7] = [
    (MarkKind::JobBegin, "the job started"),
    (MarkKind::Epoch, "an epoch started"),
    (
        MarkKind::Validation,
        "validation: the trainer reads other data",
    ),
    (MarkKind::Checkpoint, "a checkpoint was written"),
    (MarkKind::Worker, "a single worker ended or was restarted"),
    (MarkKind::Verdict, "the verdict changed"),
    (MarkKind::JobEnd, "the job ended"),
];

/// Anything happened in the time that is shown.
pub(super) fn any(view: &View<'_>, cells: usize) -> bool {
    axis::of(view, cells).is_some_and(|axis| {
        let marks = view.history.marks();
        !marks.between(axis.from(), axis.to()).is_empty()
    })
}

/// What the marks say that the cursor is on; empty where it is on none.
pub(super) fn words(view: &View<'_>, cells: usize) -> String {
    let (Some(axis), Some(cursor)) = (axis::of(view, cells), axis::cursor(view, cells)) else {
        return String::new();
    };
    let placed = placed(view, &axis, cells);
    let here = placed.get(cursor).into_iter().flatten();
    let words: Vec<_> = here.map(|mark| mark.words.as_str()).collect();
    words.join("; ")
}

/// By cell: its marks, the most important first. Of two kinds in a cell, as an epoch that begins after a checkpoint,
/// the lesser stands in the next, where that is free.
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

/// The line, beginning `indent + label` cells from the left: of each cell the most important.
pub(super) fn line(
    view: &View<'_>,
    width: u16,
    (indent, label): (usize, usize),
    cells: usize,
) -> Line<'static> {
    let mut row = view.row(width);
    row.space(indent).padded(Dim, "marks", label);
    let Some(axis) = axis::of(view, cells) else {
        return row.line();
    };
    let cursor = axis::cursor(view, cells);
    for (cell, marks) in placed(view, &axis, cells).iter().enumerate() {
        match (marks.first().map(|mark| mark.kind), cursor == Some(cell)) {
            (Some(kind), here) => {
                let paint = if here { Focus } else { paint(kind) };
                row.text(paint, view.glyphs().happened(kind))
            }
            (None, true) => row.text(Focus, view.glyphs().cursor),
            (None, false) => row.space(1),
        };
    }
    row.line()
}

/// In the colour of trouble only what ended.
pub(super) fn paint(kind: MarkKind) -> Role {
    match kind {
        MarkKind::JobEnd | MarkKind::Worker => Trouble,
        _ => Text,
    }
}
