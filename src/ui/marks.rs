//! The line of marks below the past, and what the one says that the cursor is on.

use ratatui::text::Line;

use super::{View, axis, format};
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
    let mut said = Vec::new();
    for mark in view.history.marks().between(axis.from(), axis.to()) {
        let Some(cell) = view.history.cell(&axis, mark.at) else {
            continue;
        };
        if let Some(kind) = kinds.get_mut(cell) {
            *kind = Some(kind.map_or(mark.kind, |other| other.min(mark.kind)));
        }
        if cursor == Some(cell) {
            said.push(mark.words.as_str());
        }
    }
    let said = said.join("; ");
    // The words stand beside the cursor, where there is more room.
    let words = cursor.filter(|_| !said.is_empty()).map(|cursor| {
        let (left, right) = (cursor, cells - cursor - 1);
        let room = left.max(right).saturating_sub(1);
        let text = format::cut_words(
            &format::clean(&said, view.config.ascii),
            room,
            view.glyphs().more,
        );
        let long = format::width(&text);
        let from = if right >= left {
            cursor + 2
        } else {
            cursor.saturating_sub(long + 1)
        };
        (from, text, long)
    });
    let mut cell = 0;
    while cell < cells {
        if let Some((from, text, long)) = &words
            && *from == cell
            && *long > 0
        {
            row.text(Text, text);
            cell += long;
            continue;
        }
        match kinds[cell] {
            Some(kind) if cursor == Some(cell) => row.text(Focus, view.glyphs().happened(kind)),
            Some(kind) => row.text(paint(kind), view.glyphs().happened(kind)),
            None if cursor == Some(cell) => row.text(Focus, view.glyphs().cursor),
            None => row.space(1),
        };
        cell += 1;
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
