//! Tables: columns of a fixed width, the head above them and the cells below, as pieces of a [`LineBuilder`].
//!
//! Not ratatui's `Table`: most tables here are part of a page that scrolls as a whole, line by line, and columns that do
//! not fit are dropped, which its constraints cannot express.

use std::borrow::Cow;

use super::format::UNKNOWN;
use super::line_builder::LineBuilder;
use crate::config::Role::{self, Dim, Focus, Unknown};

/// Blank cells before a column of words.
pub(super) const COLUMN_GAP: usize = 2;

/// One column.
#[derive(Debug, Clone)]
pub(super) struct TableColumn {
    head: Cow<'static, str>,
    /// Its width, including the blank cells before it.
    cells: usize,
    /// Words are left-aligned, figures right-aligned.
    words: bool,
    /// The rows are sorted by it.
    sorted: bool,
}

impl TableColumn {
    const fn new(head: &'static str, cells: usize, words: bool) -> Self {
        Self {
            head: Cow::Borrowed(head),
            cells,
            words,
            sorted: false,
        }
    }

    pub(super) const fn figures(head: &'static str, cells: usize) -> Self {
        Self::new(head, cells, false)
    }

    pub(super) const fn words(head: &'static str, cells: usize) -> Self {
        Self::new(head, cells, true)
    }

    /// Gives it another name.
    pub(super) fn named(self, head: String) -> Self {
        let head = head.into();
        Self { head, ..self }
    }

    pub(super) fn sorted(self, sorted: bool) -> Self {
        Self { sorted, ..self }
    }

    pub(super) fn head(&self) -> &str {
        &self.head
    }

    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// Adds a cell of this column to a row; one that is not known has the colour of that.
    pub(super) fn put(&self, row: &mut LineBuilder<'_>, paint: Role, text: &str) {
        let paint = if text == UNKNOWN { Unknown } else { paint };
        if self.words {
            row.space(COLUMN_GAP)
                .padded(paint, text, self.cells - COLUMN_GAP);
        } else {
            row.right(paint, text, self.cells);
        }
    }
}

/// Adds the names of the columns; `arrow` is added to the one that the rows are sorted by.
pub(super) fn head(row: &mut LineBuilder<'_>, columns: &[TableColumn], arrow: &str) {
    for column in columns {
        if column.sorted {
            row.space(column.cells.saturating_sub(column.head.len() + 1));
            row.text(Focus, arrow).text(Focus, &column.head);
        } else {
            column.put(row, Dim, &column.head);
        }
    }
}
