//! One place of the screen: a letter, and what it looks like.
//!
//! Knows what is seen; knows no terminal.

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};

/// What a letter looks like beside its form. Underlines have its colour: none of ours has one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Look {
    pub(super) fg: Color,
    pub(super) bg: Color,
    pub(super) modifier: Modifier,
}

/// What is seen of a blank beside its ground.
const SEEN_ON_BLANK: Modifier = Modifier::REVERSED
    .union(Modifier::UNDERLINED)
    .union(Modifier::SLOW_BLINK)
    .union(Modifier::RAPID_BLINK)
    .union(Modifier::CROSSED_OUT);

impl Look {
    pub(super) fn of(cell: &Cell) -> Self {
        Self {
            fg: cell.fg,
            bg: cell.bg,
            modifier: cell.modifier,
        }
    }

    /// Of a blank nothing is seen but its ground.
    pub(super) fn is_ground(self) -> bool {
        !self.modifier.intersects(SEEN_ON_BLANK)
    }
}

/// Those that cannot be told from each other are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) char: char,
    pub(super) look: Look,
}

impl Spot {
    pub(super) const BLANK: Self = Self {
        char: ' ',
        look: Look {
            fg: Color::Reset,
            bg: Color::Reset,
            modifier: Modifier::empty(),
        },
    };

    /// `None` where terminals may give it more or less than one place.
    pub(super) fn of(cell: &Cell) -> Option<Self> {
        let (char, look) = (one(cell.symbol())?, Look::of(cell));
        if char == ' ' && look.is_ground() {
            let ground = Look {
                bg: look.bg,
                ..Look::default()
            };
            return Some(Self { char, look: ground });
        }
        Some(Self { char, look })
    }

    /// A blank on the ground of this look.
    pub(super) fn ground(look: Look) -> Self {
        Self { char: ' ', look }
    }

    /// Bytes of the letter.
    pub(super) fn len(self) -> usize {
        self.char.len_utf8()
    }

    /// Nothing is seen but its ground.
    pub(super) fn is_ground(self) -> bool {
        self.char == ' ' && self.look.is_ground()
    }

    /// It is seen as it should be where it is written in that look.
    pub(super) fn fits(self, look: Look) -> bool {
        self.look == look || self.is_ground() && look.is_ground() && self.look.bg == look.bg
    }
}

/// What our own pictures are made of: told without a search in tables.
const PICTURES: std::ops::RangeInclusive<char> = '─'..='◼';

/// The letter, where it is one to which every terminal gives one place.
fn one(symbol: &str) -> Option<char> {
    use unicode_width::UnicodeWidthChar;
    if let [byte @ b' '..=b'~'] = symbol.as_bytes() {
        return Some(char::from(*byte));
    }
    let mut chars = symbol.chars();
    match (chars.next(), chars.next()) {
        (Some(char), None) if PICTURES.contains(&char) => Some(char),
        (Some(char), None) if char.width() == Some(1) => Some(char),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_do_not_agree_about_is_none() {
        for symbol in ["训", "e\u{301}", "", "\u{301}", "❤\u{fe0f}"] {
            assert_eq!(one(symbol), None, "{symbol:?}");
        }
        for symbol in ["a", " ", "~", "é", "─", "█", "◆", "·", "…"] {
            assert_eq!(one(symbol), symbol.chars().next());
        }
    }

    #[test]
    fn all_of_our_pictures_have_one_place() {
        use unicode_width::UnicodeWidthChar;
        assert!(PICTURES.into_iter().all(|char| char.width() == Some(1)));
        assert_eq!(one("◽"), None, "a picture of others has two");
    }

    #[test]
    fn of_a_blank_only_its_ground_is_seen() {
        let blank = |fg, bg, modifier| {
            let mut cell = Cell::new(" ");
            (cell.fg, cell.bg, cell.modifier) = (fg, bg, modifier);
            Spot::of(&cell).expect("it is one")
        };
        let (red, none) = (Color::Red, Modifier::empty());
        assert_eq!(blank(red, Color::Reset, Modifier::BOLD), Spot::BLANK);
        assert_ne!(blank(red, red, none), Spot::BLANK);
        assert_ne!(blank(red, Color::Reset, Modifier::UNDERLINED), Spot::BLANK);
        let look = Look {
            fg: red,
            ..Look::default()
        };
        assert!(Spot::BLANK.fits(look));
        assert!(!blank(red, red, none).fits(look));
    }
}
