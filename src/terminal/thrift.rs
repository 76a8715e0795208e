//! Fewer bytes for the same screen: where two changes are close to each other in a line, writing what stands between
//! them again costs less than moving the cursor over it.
//!
//! Knows cells and what they cost; knows nothing of what they mean.

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect, Size};
use unicode_width::UnicodeWidthStr;

/// A backend that draws through another one.
#[derive(Debug)]
pub struct Thrifty<B> {
    inner: B,
    /// What the terminal shows.
    shown: Buffer,
}

impl<B: Backend> Thrifty<B> {
    pub fn new(inner: B) -> Self {
        Self {
            inner,
            shown: Buffer::empty(Rect::ZERO),
        }
    }

    /// Everything on the terminal is blank.
    fn blank(&mut self) -> Result<(), B::Error> {
        let size = self.inner.size()?;
        self.shown = Buffer::empty(Rect::from((Position::ORIGIN, size)));
        Ok(())
    }

    /// The cells from `from` to `to` in line `y`, where writing them in the style of `pen` changes nothing and costs
    /// less than moving.
    fn between(&self, from: u16, to: u16, y: u16, pen: &Cell) -> Option<Vec<Cell>> {
        let move_costs = 4 + digits(y + 1) + digits(to + 1);
        // Every cell costs a byte at least, so this is not called for long gaps in vain.
        if to <= from || usize::from(to - from) >= move_costs {
            return None;
        }
        let mut costs = 0;
        let cell = |x| {
            let cell = self.shown.cell((x, y))?;
            let blank = cell.symbol() == " " && (cell.bg, cell.modifier) == (pen.bg, pen.modifier);
            let alike = blank || cell.style() == pen.style();
            costs += cell.symbol().len();
            let fits = alike && cell.symbol().width() == 1 && costs < move_costs;
            fits.then(|| {
                let mut again = pen.clone();
                again.set_symbol(cell.symbol());
                again
            })
        };
        (from..to).map(cell).collect()
    }
}

fn digits(number: u16) -> usize {
    number.checked_ilog10().map_or(1, |tens| tens as usize + 1)
}

impl<B: Backend> Backend for Thrifty<B> {
    type Error = B::Error;

    fn draw<'a, I>(&mut self, content: I) -> Result<(), B::Error>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        if self.shown.area.as_size() != self.inner.size()? {
            self.blank()?;
        }
        let mut drawn: Vec<(u16, u16, Cell)> = Vec::new();
        for (x, y, cell) in content {
            let before = drawn
                .last()
                .filter(|(_, line, last)| *line == y && last.symbol().width() == 1);
            if let Some((last, _, pen)) = before
                && let Some(between) = self.between(last + 1, x, y, pen)
            {
                let places = last + 1..x;
                drawn.extend(places.zip(between).map(|(x, cell)| (x, y, cell)));
            }
            if let Some(shown) = self.shown.cell_mut((x, y)) {
                shown.clone_from(cell);
            }
            // Its second half is nothing that could be written again.
            if cell.symbol().width() > 1
                && let Some(half) = self.shown.cell_mut((x + 1, y))
            {
                half.set_symbol("");
            }
            drawn.push((x, y, cell.clone()));
        }
        self.inner
            .draw(drawn.iter().map(|(x, y, cell)| (*x, *y, cell)))
    }

    fn clear(&mut self) -> Result<(), B::Error> {
        self.blank()?;
        self.inner.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> Result<(), B::Error> {
        if region == ClearType::All {
            return self.clear();
        }
        // What is left on the terminal is not known here: no cell of it is written again.
        self.shown.content.iter_mut().for_each(|cell| {
            cell.set_symbol("");
        });
        self.inner.clear_region(region)
    }

    fn hide_cursor(&mut self) -> Result<(), B::Error> {
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> Result<(), B::Error> {
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> Result<Position, B::Error> {
        self.inner.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> Result<(), B::Error> {
        self.inner.set_cursor_position(position)
    }

    fn size(&self) -> Result<Size, B::Error> {
        self.inner.size()
    }

    fn window_size(&mut self) -> Result<WindowSize, B::Error> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> Result<(), B::Error> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::style::{Color, Style};

    use super::*;

    /// Letters, blanks, signs of three bytes and wide ones, in three colours.
    fn frame() -> impl Strategy<Value = Vec<(usize, usize)>> {
        prop::collection::vec((0..7_usize, 0..3_usize), 60)
    }

    fn fill(buffer: &mut Buffer, cells: &[(usize, usize)]) {
        let colours = [Color::Reset, Color::Indexed(75), Color::Indexed(179)];
        for (place, (symbol, colour)) in cells.iter().enumerate() {
            let (x, y) = (place % 20, place / 20);
            let symbol = ["a", "b", " ", " ", "▁", "█", "训"][*symbol];
            let at = (u16::try_from(x).unwrap(), u16::try_from(y).unwrap());
            buffer.set_string(at.0, at.1, symbol, Style::new().fg(colours[*colour]));
        }
    }

    proptest! {
        #[test]
        fn the_screen_is_the_same(frames in prop::collection::vec(frame(), 1..5)) {
            let mut plain = Terminal::new(TestBackend::new(20, 3)).unwrap();
            let mut thrifty = Terminal::new(Thrifty::new(TestBackend::new(20, 3))).unwrap();
            for cells in &frames {
                plain.draw(|frame| fill(frame.buffer_mut(), cells)).unwrap();
                thrifty.draw(|frame| fill(frame.buffer_mut(), cells)).unwrap();
                let (one, other) = (plain.backend().buffer(), thrifty.backend().inner.buffer());
                for (cell, same) in one.content.iter().zip(&other.content) {
                    prop_assert_eq!(cell.symbol(), same.symbol());
                    // Of a blank only the ground is seen.
                    prop_assert!(cell.symbol() == " " || cell.style() == same.style());
                }
            }
        }
    }

    #[test]
    fn what_is_close_is_written_through_and_what_is_far_is_not() {
        let mut terminal = Thrifty::new(TestBackend::new(80, 24));
        let cell = |symbol: &'static str| Cell::new(symbol);
        let (one, other) = (cell("1"), cell("2"));
        let line: Vec<Cell> = "0123456789012345678901234567890"
            .chars()
            .map(|c| {
                let mut cell = Cell::default();
                cell.set_char(c);
                cell
            })
            .collect();
        let places = line.iter().zip(0_u16..).map(|(cell, x)| (x, 5, cell));
        terminal.draw(places).unwrap();
        assert_eq!(terminal.between(3, 8, 5, &one).unwrap().len(), 5);
        assert!(terminal.between(3, 28, 5, &one).is_none());
        let mut red = other;
        red.set_fg(Color::Red);
        assert!(
            terminal.between(3, 5, 5, &red).is_none(),
            "they are not red"
        );
        assert_eq!(
            terminal.between(40, 43, 5, &red).unwrap().len(),
            3,
            "blanks have no colour"
        );
    }
}
