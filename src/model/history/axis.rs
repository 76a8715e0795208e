//! A stretch of time in cells of equal length: which part of the past each cell of a plot shows.
//!
//! Depends on time only, not on what is drawn or where.

use super::downsampling::Entry;
use crate::units::whole;

/// A stretch of time, in seconds since pipetop started, that is drawn in a number of cells.
///
/// Cells begin at whole multiples of their length, at any time: what a cell shows does not change while it moves, and
/// the plot moves by whole cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    from: f64,
    cell: f64,
    cells: usize,
    /// Where the newest entry ends: cells after it are empty.
    newest: f64,
}

impl Axis {
    /// Returns the axis of the newest `seconds` up to the entry `newest`. If less than that has passed since the entry
    /// `oldest`, the axis starts with that one, and the cells after the newest stay empty. `None` if there is no cell
    /// or no length.
    pub(super) fn ending(
        oldest: (f64, f64),
        newest: (f64, f64),
        seconds: f64,
        cells: usize,
    ) -> Option<Self> {
        let cell = seconds / cells as f64;
        let lasts = cell.is_finite() && cell > 0.0;
        lasts.then(|| {
            let last = (middle(newest, cell) / cell).floor();
            // The first cell that shows the oldest: the one with its middle, or the first whose own middle is inside
            // it.
            let inside = (f64::midpoint(oldest.0, oldest.1) / cell).floor();
            let first = inside.min((oldest.0 / cell - 0.5).ceil());
            Self {
                from: first.max(last + 1.0 - cells as f64) * cell,
                cell,
                cells,
                newest: newest.1,
            }
        })
    }

    /// Returns the same axis up to an earlier end. A full axis moves by whole cells.
    #[must_use]
    pub fn until(mut self, end: f64) -> Self {
        let last = |axis: &Self| axis.from + axis.cell * (axis.cells as f64 - 1.0);
        let full = last(&self) < self.newest;
        self.newest = self.newest.min(end);
        while full && last(&self) >= self.newest && self.from > 0.0 {
            self.from -= self.cell;
        }
        self
    }

    pub fn from(&self) -> f64 {
        self.from
    }

    /// Returns the end of what is drawn: that of the last cell or of the newest entry, whichever comes first.
    pub fn to(&self) -> f64 {
        (self.from + self.cell * self.cells as f64).min(self.newest)
    }

    /// Returns the start and the end of each cell.
    pub fn bounds(&self) -> impl Iterator<Item = (f64, f64)> {
        let Self { from, cell, .. } = *self;
        let at = move |place: usize| from + cell * place as f64;
        (0..self.cells).map(move |place| (at(place), at(place + 1)))
    }

    /// Returns the cell that shows what lasted from `from` to `to`; `None` if that is outside of the axis.
    pub fn cell_of(&self, from: f64, to: f64) -> Option<usize> {
        let place = (middle((from, to), self.cell) - self.from) / self.cell;
        (place >= 0.0 && place < self.cells as f64).then_some(whole(place))
    }

    /// Returns one value per cell: those that `pick` returns for the entries whose middle is in the cell, joined by
    /// `join`. If there is no such entry, the cell has the value of the entry around its own middle.
    pub(super) fn map<'a, E: Entry + 'a, T: Copy>(
        &self,
        entries: impl Iterator<Item = &'a E>,
        pick: impl Fn(&E) -> Option<T>,
        join: impl Fn((T, f64), (T, f64)) -> T,
    ) -> Vec<Option<T>> {
        let mut inside: Vec<Option<(T, f64)>> = vec![None; self.cells];
        let mut around: Vec<Option<T>> = vec![None; self.cells];
        for entry in entries {
            let Some(value) = pick(entry) else { continue };
            let length = entry.to() - entry.from();
            let middle = f64::midpoint(entry.from(), entry.to());
            if let Some(cell) = self
                .place(middle - self.from)
                .filter(|_| middle >= self.from)
            {
                let seen = &mut inside[cell];
                *seen = Some(match *seen {
                    None => (value, length),
                    Some(before) => (join(before, (value, length)), before.1 + length),
                });
            }
            // Cells whose middle is inside the entry.
            let half = self.cell / 2.0;
            let first = self.place((entry.from() - self.from + half).max(0.0));
            let after = self.place((entry.to() - self.from + half).max(0.0));
            let after = after.unwrap_or(self.cells);
            around[first.unwrap_or(self.cells).min(after)..after].fill(Some(value));
        }
        let cells = inside.into_iter().zip(around);
        cells
            .map(|(inside, around)| inside.map(|(value, _)| value).or(around))
            .collect()
    }

    /// Returns the cell at a number of seconds after the start of the axis.
    fn place(&self, after: f64) -> Option<usize> {
        let place = after / self.cell;
        (place < self.cells as f64).then_some(whole(place))
    }
}

/// Returns where an entry is drawn: at its middle or, if it is longer than a cell, at the middle of the last cell
/// length in it.
fn middle((from, to): (f64, f64), cell: f64) -> f64 {
    f64::midpoint(from, to).max(to - cell / 2.0)
}
