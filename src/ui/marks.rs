//! The line of marks below the past, and what those say that the cursor is on.

use ratatui::text::Line;

use super::{View, axis};
use crate::config::Paint::{self, Dim, Focus, Text, Trouble};
use crate::model::MarkKind;

/// Each kind with what the help says of it.
pub(super) const MEANINGS: [(MarkKind, &str); 7] = [
    (MarkKind::JobBegin, "the job began"),
    (
        MarkKind::Epoch,
        "an epoch: the training data is gone through anew",
    ),
    (
        MarkKind::Validation,
        "other data is gone through than that of training",
    ),
    (MarkKind::Checkpoint, "a checkpoint is written"),
    (MarkKind::Worker, "a single worker ended or was made anew"),
    (MarkKind::Verdict, "the verdict turned"),
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
    let marks = view.history.marks();
    let marks = marks.between(axis.from(), axis.to()).iter();
    let here = marks.filter(|mark| view.history.cell(&axis, mark.at) == Some(cursor));
    let words: Vec<_> = here.map(|mark| mark.words.as_str()).collect();
    words.join("; ")
}

/// The line: the most important of each cell, beginning `indent + label` cells from the left.
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
    let mut kinds: Vec<Option<MarkKind>> = vec![None; cells];
    for mark in view.history.marks().between(axis.from(), axis.to()) {
        let cell = view.history.cell(&axis, mark.at);
        if let Some(kind) = cell.and_then(|cell| kinds.get_mut(cell)) {
            *kind = Some(kind.map_or(mark.kind, |other| other.min(mark.kind)));
        }
    }
    for (cell, kind) in kinds.into_iter().enumerate() {
        match (kind, cursor == Some(cell)) {
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
pub(super) fn paint(kind: MarkKind) -> Paint {
    match kind {
        MarkKind::JobEnd | MarkKind::Worker => Trouble,
        _ => Text,
    }
}
