//! Tables: columns of a fixed width, the head above them and the cells below, as pieces of a [`LineBuilder`].
//!
//! Not ratatui's `Table`: most tables here are part of a page that scrolls as a whole, line by line. Columns that do
//! not fit are dropped, which its constraints cannot express.

use std::borrow::Cow;

use super::format::{UNKNOWN, width};
use super::line_builder::LineBuilder;
use crate::config::Role::{self, Dim, Focus, Unknown};

/// Blank cells before a column of words.
pub(crate) const COLUMN_GAP: usize = 2;

/// One column.
#[derive(Debug, Clone)]
pub(crate) struct TableColumn {
    head: Cow<'static, str>,
    /// Its width, including the blank cells before it.
    cells: usize,
    /// Blank cells before words.
    gap: usize,
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
            gap: COLUMN_GAP,
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

    /// Returns a column as wide as its widest cell; the first column of a table has no blank cells before it.
    pub(crate) fn fitted<'a>(
        cells: impl Iterator<Item = &'a str>,
        words: bool,
        follows: bool,
    ) -> Self {
        let gap = if follows { COLUMN_GAP } else { 0 };
        let widest = cells.map(width).max().unwrap_or(0);
        Self {
            gap,
            ..Self::new("", gap + widest, words)
        }
    }

    /// Gives the column another name.
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

    /// Adds a cell of this column to a row; an unknown figure has the colour of unknown figures.
    pub(super) fn put(&self, row: &mut LineBuilder<'_>, paint: Role, text: &str) {
        let paint = if text == UNKNOWN { Unknown } else { paint };
        self.place(row, paint, text);
    }

    /// Adds a cell in this colour, whatever it says.
    pub(crate) fn place(&self, row: &mut LineBuilder<'_>, paint: Role, text: &str) {
        if self.words {
            row.space(self.gap)
                .padded(paint, text, self.cells - self.gap);
        } else {
            row.right(paint, text, self.cells);
        }
    }

    /// Returns a cell as it is printed.
    pub(crate) fn plain(&self, text: &str) -> String {
        let air = (self.cells - self.gap).saturating_sub(width(text));
        let (before, after) = if self.words { (0, air) } else { (air, 0) };
        let before = self.gap + before;
        format!("{:before$}{text}{:after$}", "", "")
    }
}

/// Adds the names of the columns; `arrow` is put before the one that the rows are sorted by.
pub(super) fn head<'a>(
    row: &mut LineBuilder<'_>,
    columns: impl IntoIterator<Item = &'a TableColumn>,
    arrow: &str,
) {
    for column in columns {
        if column.sorted {
            row.space(column.cells.saturating_sub(column.head.len() + 1));
            row.text(Focus, arrow).text(Focus, &column.head);
        } else {
            column.put(row, Dim, &column.head);
        }
    }
}

/// The turn of a column that is always shown.
pub(crate) const KEPT: usize = 20;

/// Drops columns, the lowest turn first, until the others fit into `room`. Returns those with their places.
pub(crate) fn fitting(
    columns: Vec<(TableColumn, usize)>,
    room: usize,
) -> Vec<(usize, TableColumn)> {
    let fits = |first: &usize| {
        let shown = columns.iter().filter(|(_, turn)| turn >= first);
        shown.map(|(column, _)| column.cells).sum::<usize>() <= room
    };
    let first = (1..KEPT).find(fits).unwrap_or(KEPT);
    let all = columns.into_iter().enumerate();
    let shown = all.filter(|(_, (_, turn))| *turn >= first);
    shown.map(|(place, (column, _))| (place, column)).collect()
}
