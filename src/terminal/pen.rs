//! What is written to the terminal, in as few bytes as it takes: the cursor goes by the shortest way, and colours are
//! named where they change.
//!
//! Knows sequences that every terminal since the VT100 understands; knows no frame.

use std::io::Write;

use ratatui::layout::Position;
use ratatui::style::{Color, Modifier};

use super::spot::Look;

/// Collects bytes, and knows where they leave the cursor, and how they make letters look.
#[derive(Debug, Default)]
pub(super) struct Pen {
    bytes: Vec<u8>,
    /// Where the next letter would go; `None` where terminals do not agree.
    at: Option<Position>,
    look: Look,
}

impl Pen {
    /// The cursor goes there.
    pub(super) fn go(&mut self, to: Position) {
        let Some(at) = self.at.replace(to) else {
            return self.jump(to);
        };
        if at == to {
            return;
        }
        let (across, along) = (to.x.abs_diff(at.x), to.x.checked_sub(at.x));
        let down = to.y.checked_sub(at.y);
        let jump = 4 + digits(to.y + 1) + digits(to.x + 1);
        let sideways = match along {
            _ if across == 0 => 0,
            None => usize::from(across).min(step(across)),
            Some(_) => step(across),
        };
        let home = if to.x == 0 { 1 } else { 1 + step(to.x) };
        // A line feed alone goes back to the begin of the line where the terminal's settings are not raw: not so
        // behind a carriage return.
        let feeds = down.map_or(usize::MAX, |down| usize::from(down).saturating_add(home));
        let steps = match down {
            None => usize::MAX,
            Some(0) => sideways,
            Some(down) => step(down) + sideways,
        };
        if jump <= feeds.min(steps) {
            self.jump(to);
        } else if feeds <= steps {
            self.bytes.push(b'\r');
            let down = usize::from(down.unwrap_or(0));
            self.bytes.resize(self.bytes.len() + down, b'\n');
            self.sequence(to.x, b'C');
        } else {
            self.sequence(down.unwrap_or(0), b'B');
            match along {
                Some(along) => self.sequence(along, b'C'),
                None if usize::from(across) <= step(across) => {
                    let end = self.bytes.len() + usize::from(across);
                    self.bytes.resize(end, 0x08);
                }
                None => self.sequence(across, b'D'),
            }
        }
    }

    /// The same from wherever it is.
    fn jump(&mut self, to: Position) {
        self.bytes.extend_from_slice(b"\x1b[");
        self.number(to.y + 1);
        self.bytes.push(b';');
        self.number(to.x + 1);
        self.bytes.push(b'H');
    }

    /// Letters that follow look so.
    pub(super) fn look(&mut self, look: Look) {
        let before = std::mem::replace(&mut self.look, look);
        if before == look {
            return;
        }
        self.bytes.extend_from_slice(b"\x1b[");
        if look != Look::default() {
            let mut before = before;
            if !look.modifier.contains(before.modifier) {
                self.bytes.extend_from_slice(b"0;");
                before = Look::default();
            }
            for (modifier, code) in MODIFIERS {
                if look.modifier.contains(modifier) && !before.modifier.contains(modifier) {
                    self.bytes.extend_from_slice(code);
                }
            }
            if look.fg != before.fg {
                self.colour(look.fg, 0);
            }
            if look.bg != before.bg {
                self.colour(look.bg, 10);
            }
            // Every part ends so.
            self.bytes.pop();
        }
        self.bytes.push(b'm');
    }

    /// A colour of letters, or of their ground where its number is that much higher.
    fn colour(&mut self, colour: Color, ground: u16) {
        let index = match colour {
            Color::Reset => {
                self.number(39 + ground);
                return self.bytes.push(b';');
            }
            Color::Rgb(red, green, blue) => {
                self.number(38 + ground);
                self.bytes.extend_from_slice(b";2;");
                for part in [red, green, blue] {
                    self.number(part.into());
                    self.bytes.push(b';');
                }
                return;
            }
            Color::Indexed(index) => index,
            Color::Black => 0,
            Color::Red => 1,
            Color::Green => 2,
            Color::Yellow => 3,
            Color::Blue => 4,
            Color::Magenta => 5,
            Color::Cyan => 6,
            Color::Gray => 7,
            Color::DarkGray => 8,
            Color::LightRed => 9,
            Color::LightGreen => 10,
            Color::LightYellow => 11,
            Color::LightBlue => 12,
            Color::LightMagenta => 13,
            Color::LightCyan => 14,
            Color::White => 15,
        };
        self.number(38 + ground);
        self.bytes.extend_from_slice(b";5;");
        self.number(index.into());
        self.bytes.push(b';');
    }

    /// Writes a letter of one place. `last` where it is the last of its line: whether the cursor then still stands on
    /// it, terminals do not agree.
    pub(super) fn write(&mut self, char: char, last: bool) {
        if char.is_ascii() {
            self.bytes.push(char as u8);
        } else {
            let mut bytes = [0; 4];
            let bytes = char.encode_utf8(&mut bytes).as_bytes();
            self.bytes.extend_from_slice(bytes);
        }
        match &mut self.at {
            Some(at) if !last => at.x += 1,
            at => *at = None,
        }
    }

    /// Writes what may have any number of places.
    pub(super) fn write_any(&mut self, symbol: &str) {
        self.bytes.extend_from_slice(symbol.as_bytes());
        self.at = None;
    }

    /// What stands from `from` to `to` in line `y` moves one cell to the left, over its first cell; the last becomes
    /// blank. What follows stays where it is.
    pub(super) fn shift(&mut self, y: u16, from: u16, to: u16) {
        // Blanks have the ground of now.
        self.look(Look::default());
        self.go(Position::new(from, y));
        self.bytes.extend_from_slice(b"\x1b[P");
        self.go(Position::new(to - 1, y));
        self.bytes.extend_from_slice(b"\x1b[@");
    }

    /// All that was written; what follows begins without colours, and from anywhere.
    pub(super) fn take(&mut self) -> &[u8] {
        self.look(Look::default());
        self.at = None;
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    fn sequence(&mut self, count: u16, letter: u8) {
        if count == 0 {
            return;
        }
        self.bytes.extend_from_slice(b"\x1b[");
        if count > 1 {
            self.number(count);
        }
        self.bytes.push(letter);
    }

    fn number(&mut self, number: u16) {
        // Memory takes all.
        let _ = write!(self.bytes, "{number}");
    }
}

const MODIFIERS: [(Modifier, &[u8]); 9] = [
    (Modifier::BOLD, b"1;"),
    (Modifier::DIM, b"2;"),
    (Modifier::ITALIC, b"3;"),
    (Modifier::UNDERLINED, b"4;"),
    (Modifier::SLOW_BLINK, b"5;"),
    (Modifier::RAPID_BLINK, b"6;"),
    (Modifier::REVERSED, b"7;"),
    (Modifier::HIDDEN, b"8;"),
    (Modifier::CROSSED_OUT, b"9;"),
];

/// Bytes of a sequence that moves so far.
pub(super) fn step(cells: u16) -> usize {
    if cells > 1 { 3 + digits(cells) } else { 3 }
}

fn digits(number: u16) -> usize {
    number.checked_ilog10().map_or(1, |tens| tens as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(draw: impl FnOnce(&mut Pen)) -> String {
        let mut pen = Pen {
            at: Some(Position::new(20, 10)),
            ..Pen::default()
        };
        draw(&mut pen);
        String::from_utf8(pen.bytes).expect("it writes text")
    }

    #[test]
    fn the_cursor_goes_by_the_shortest_way() {
        let go = |x, y| written(|pen| pen.go(Position::new(x, y)));
        assert_eq!(go(20, 10), "");
        assert_eq!(go(21, 10), "\x1b[C");
        assert_eq!(go(119, 10), "\x1b[99C");
        assert_eq!(go(18, 10), "\x08\x08");
        assert_eq!(go(2, 10), "\r\x1b[2C");
        assert_eq!(go(12, 10), "\x1b[8D");
        assert_eq!(go(0, 11), "\r\n");
        assert_eq!(go(2, 11), "\r\n\x1b[2C");
        assert_eq!(go(18, 11), "\x1b[B\x08\x08");
        assert_eq!(go(20, 15), "\x1b[5B");
        assert_eq!(go(7, 3), "\x1b[4;8H");
        assert_eq!(go(99, 30), "\x1b[31;100H");
        assert_eq!(written(|pen| pen.number(60_007)), "60007");
    }

    #[test]
    fn where_terminals_do_not_agree_it_jumps() {
        let after = |draw: fn(&mut Pen)| {
            written(|pen| {
                draw(pen);
                pen.go(Position::new(22, 10));
            })
        };
        assert_eq!(after(|pen| pen.write('a', false)), "a\x1b[C");
        assert_eq!(after(|pen| pen.write('█', false)), "█\x1b[C");
        assert_eq!(after(|pen| pen.write('a', true)), "a\x1b[11;23H");
        assert_eq!(after(|pen| pen.write_any("训")), "训\x1b[11;23H");
    }

    #[test]
    fn colours_are_named_where_they_change() {
        let fg = |fg| Look {
            fg,
            ..Look::default()
        };
        let blue = fg(Color::Indexed(75));
        let bold = Look {
            modifier: Modifier::BOLD,
            ..blue
        };
        let on_red = Look {
            bg: Color::Red,
            ..bold
        };
        let rgb = fg(Color::Rgb(1, 20, 255));
        let looks = |looks: &[Look]| written(|pen| looks.iter().for_each(|look| pen.look(*look)));
        assert_eq!(looks(&[blue, blue]), "\x1b[38;5;75m");
        assert_eq!(looks(&[blue, bold]), "\x1b[38;5;75m\x1b[1m");
        assert_eq!(looks(&[bold, blue]), "\x1b[1;38;5;75m\x1b[0;38;5;75m");
        assert_eq!(looks(&[bold, on_red]), "\x1b[1;38;5;75m\x1b[48;5;1m");
        assert_eq!(looks(&[on_red, bold]), "\x1b[1;38;5;75;48;5;1m\x1b[49m");
        assert_eq!(looks(&[rgb, fg(Color::Reset)]), "\x1b[38;2;1;20;255m\x1b[m");
    }
}
