//! A stretch of time in cells of equal length: which part of the past each cell of a picture stands for.
//!
//! Knows time alone; not what is drawn, and on which screen.

use super::downsampling::Entry;

/// A stretch of time that is drawn in so many cells, in seconds since pipetop started.
///
/// Cells begin at whole multiples of their length, however the time goes on: what a cell shows stays as it
/// is while it moves, and the picture moves by whole cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    from: f64,
    cell: f64,
    cells: usize,
    /// Where the newest entry ends: cells behind it are free.
    newest: f64,
}

impl Axis {
    /// The newest `seconds` before and at the entry `newest`. While there is less than that since the entry `oldest`,
    /// the axis begins with that one, and the cells behind the newest stay free. `None` without a cell or a length.
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
            // The first cell that shows the oldest: that of its middle, or the first whose own middle lies in it.
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

    /// The same up to an earlier end. While it is full it moves by whole cells.
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

    /// The end of what is drawn: of the last cell, or of the newest entry where that comes first.
    pub fn to(&self) -> f64 {
        (self.from + self.cell * self.cells as f64).min(self.newest)
    }

    /// From and to when each cell lasts.
    pub fn bounds(&self) -> impl Iterator<Item = (f64, f64)> {
        let Self { from, cell, .. } = *self;
        let at = move |place: usize| from + cell * place as f64;
        (0..self.cells).map(move |place| (at(place), at(place + 1)))
    }

    /// The cell that shows what lasted from `from` to `to`; `None` where it lies outside.
    pub fn cell_of(&self, from: f64, to: f64) -> Option<usize> {
        let place = (middle((from, to), self.cell) - self.from) / self.cell;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the cells"
        )]
        (place >= 0.0 && place < self.cells as f64).then_some(place as usize)
    }

    /// One value for each cell: of the entries whose middle lies in it all that `pick` gives, joined by `join`;
    /// where there is none, that of the entry in which the cell's own middle lies.
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
            // Cells whose middle lies in the entry.
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

    /// The cell that a time after the begin lies in.
    fn place(&self, after: f64) -> Option<usize> {
        let place = after / self.cell;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the cells"
        )]
        (place < self.cells as f64).then_some(place.max(0.0) as usize)
    }
}

/// Where an entry is drawn: its middle; of one that is longer than a cell, the last cell that lies in it.
fn middle((from, to): (f64, f64), cell: f64) -> f64 {
    f64::midpoint(from, to).max(to - cell / 2.0)
}
