//! Writes the changes of the screen with few bytes, for slow links.
//!
//! ratatui's own backend moves the cursor to an absolute position for every gap, and sends both colours if one changes,
//! which makes up a fifth of the bytes of a frame for a noisy job. Everything else is left to it. Must not know what is
//! drawn.

use std::io::{self, Write};

use crossterm::cursor::{MoveRight, MoveTo};
use crossterm::queue;
use crossterm::style::{Attribute, Print, SetAttribute, SetBackgroundColor, SetForegroundColor};
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use ratatui::prelude::IntoCrossterm;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// The modifiers that the screen uses.
const ATTRIBUTES: [(Modifier, Attribute); 4] = [
    (Modifier::BOLD, Attribute::Bold),
    (Modifier::DIM, Attribute::Dim),
    (Modifier::UNDERLINED, Attribute::Underlined),
    (Modifier::REVERSED, Attribute::Reverse),
];
/// The first of the symbols and emoji, whose width differs between terminals.
const DISPUTED_FROM: char = '\u{2600}';

#[derive(Debug)]
pub struct TerseBackend<W: Write>(CrosstermBackend<W>);

impl<W: Write> TerseBackend<W> {
    pub const fn new(writer: W) -> Self {
        Self(CrosstermBackend::new(writer))
    }
}

impl<W: Write> Backend for TerseBackend<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let out = &mut self.0;
        // Where the next character would be written; `None` after a character whose width differs between terminals.
        let mut cursor = None;
        let (mut fg, mut bg, mut modifier) = (Color::Reset, Color::Reset, Modifier::empty());
        for (x, y, cell) in content {
            match cursor {
                Some((column, row)) if row == y && column == x => {}
                Some((column, row)) if row == y && column < x => {
                    queue!(out, MoveRight(x - column))?;
                }
                _ => queue!(out, MoveTo(x, y))?,
            }
            if !(modifier - cell.modifier).is_empty() {
                queue!(out, SetAttribute(Attribute::Reset))?;
                (fg, bg, modifier) = (Color::Reset, Color::Reset, Modifier::empty());
            }
            for (one, attribute) in ATTRIBUTES {
                if (cell.modifier - modifier).contains(one) {
                    queue!(out, SetAttribute(attribute))?;
                }
            }
            if cell.fg != fg {
                queue!(out, SetForegroundColor(cell.fg.into_crossterm()))?;
            }
            if cell.bg != bg {
                queue!(out, SetBackgroundColor(cell.bg.into_crossterm()))?;
            }
            (fg, bg, modifier) = (cell.fg, cell.bg, cell.modifier);
            let symbol = cell.symbol();
            queue!(out, Print(symbol))?;
            let agreed = symbol.width() == 1 && symbol.chars().all(|it| it < DISPUTED_FROM);
            cursor = agreed.then_some((x + 1, y));
        }
        queue!(out, SetAttribute(Attribute::Reset))
    }

    fn append_lines(&mut self, lines: u16) -> io::Result<()> {
        self.0.append_lines(lines)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.0.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        // ratatui's terminal prints an error of this when it is dropped, which panics where standard error is the same
        // terminal and gone. Whatever else is written to it meets the same error.
        let _ = self.0.show_cursor();
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        self.0.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.0.set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.0.clear_region(region)
    }

    fn size(&self) -> io::Result<Size> {
        self.0.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.0.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    const AREA: Rect = Rect::new(0, 0, 40, 6);
    const TEXTS: [&str; 7] = ["a", "█", "▁", " ", "é", "e\u{301}", "漢"];

    fn style() -> impl Strategy<Value = Style> {
        let colour = || {
            let any = [
                Color::Reset,
                Color::Red,
                Color::Indexed(114),
                Color::Rgb(1, 2, 3),
            ];
            select(any.to_vec())
        };
        // Terminals differ in what bold and dim are together.
        let intensity = select(vec![Modifier::empty(), Modifier::BOLD, Modifier::DIM]);
        let modifiers = (intensity, any::<bool>(), any::<bool>());
        let style = |(fg, bg, (intensity, underlined, reversed))| {
            let or_none = |given, modifier| if given { modifier } else { Modifier::empty() };
            let all = intensity
                | or_none(underlined, Modifier::UNDERLINED)
                | or_none(reversed, Modifier::REVERSED);
            Style::new().fg(fg).bg(bg).add_modifier(all)
        };
        (colour(), colour(), modifiers).prop_map(style)
    }

    /// Returns what a terminal shows of a cell.
    fn shown(cell: &vt100::Cell) -> String {
        let text = if cell.has_contents() {
            cell.contents()
        } else {
            " "
        };
        let modifiers = [cell.bold(), cell.dim(), cell.underline(), cell.inverse()];
        format!(
            "{text} {:?} {:?} {modifiers:?}",
            cell.fgcolor(),
            cell.bgcolor()
        )
    }

    proptest! {
            /// The same frames, by ratatui's own backend and by this one, whose cursor moves relatively.
            #[test]
            fn a_terminal_shows_the_same_by_both_backends(
                frames in vec(vec((0..39_u16, 0..6_u16, select(TEXTS.to_vec()), style()), 0..60), 1..6),
            ) {
                let mut old = Buffer::empty(AREA);
                let [mut terse, mut verbose] = [0; 2].map(|_| {
     let [rows, columns] = [6, 40].map(|size| NonZero::new(size).unwrap());
     vt100::Parser::new(rows, columns, 0)
    });
                for frame in frames {
                    let mut new = old.clone();
                    for (x, y, text, style) in frame {
                        new.set_stringn(x, y, text, 2, Style::reset());
                        new.set_stringn(x, y, text, 2, style);
                    }
                    let [mut few, mut many] = [vec![], vec![]];
                    TerseBackend::new(&mut few).draw(old.diff(&new).into_iter()).unwrap();
                    CrosstermBackend::new(&mut many).draw(old.diff(&new).into_iter()).unwrap();
                    terse.process(&few);
                    verbose.process(&many);
                    for (y, x) in (0..6).flat_map(|y| (0..40).map(move |x| (y, x))) {
                        let of = |parser: &vt100::Parser| parser.screen().cell(y, x).map(shown);
                        prop_assert_eq!(of(&terse), of(&verbose), "{}, {}", x, y);
                    }
                    old = new;
                }
            }
        }

    #[test]
    fn a_gap_and_a_colour_take_few_bytes() {
        let old = Buffer::empty(AREA);
        let mut new = old.clone();
        let style = Style::new().fg(Color::Indexed(114));
        new.set_string(10, 2, "▁", style);
        new.set_string(14, 2, "█", style);
        let mut bytes = vec![];
        TerseBackend::new(&mut bytes)
            .draw(old.diff(&new).into_iter())
            .unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text, "\x1b[3;11H\x1b[38;5;114m▁\x1b[3C█\x1b[0m");
    }
}
