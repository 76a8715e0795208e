//! Tables: columns of a fixed width, the head above them and the cells below, as pieces of a [`LineBuilder`].
//!
//! Not ratatui's `Table`: most tables here are a part of a page that scrolls as a whole, line by line, and what does
//! not fit is left out by column, which its constraints cannot say.

use std::borrow::Cow;

use super::line_builder::LineBuilder;
use crate::config::Role::{self, Dim, Focus};

/// Cells of the air before a column of words.
pub(super) const AIR: usize = 2;

/// One column.
#[derive(Debug, Clone)]
pub(super) struct Column {
    head: Cow<'static, str>,
    /// The air before it among them.
    cells: usize,
    /// Words stand on the left, figures on the right.
    words: bool,
    /// The rows are in the order of it.
    sorted: bool,
}

impl Column {
    pub(super) fn figures(head: &'static str, cells: usize) -> Self {
        Self {
            head: head.into(),
            cells,
            words: false,
            sorted: false,
        }
    }

    pub(super) fn words(head: impl Into<Cow<'static, str>>, cells: usize) -> Self {
        Self {
            head: head.into(),
            cells,
            words: true,
            sorted: false,
        }
    }

    pub(super) fn sorted(self, sorted: bool) -> Self {
        Self { sorted, ..self }
    }

    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// What stands in it.
    pub(super) fn put(&self, row: &mut LineBuilder<'_>, paint: Role, text: &str) {
        if self.words {
            row.space(AIR).padded(paint, text, self.cells - AIR);
        } else {
            row.right(paint, text, self.cells);
        }
    }
}

/// The names of the columns; `arrow` is put to that in whose order the rows are.
pub(super) fn head(row: &mut LineBuilder<'_>, columns: &[Column], arrow: &str) {
    for column in columns {
        if column.sorted {
            row.space(column.cells.saturating_sub(column.head.len() + 1));
            row.text(Focus, arrow).text(Focus, &column.head);
        } else {
            column.put(row, Dim, &column.head);
        }
    }
}
