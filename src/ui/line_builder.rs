//! One line under construction: pieces of text with their role, never wider than the room.
//!
//! Every text on screen passes through here, and so through [`clean`], which removes control characters.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::format::{clean, cut, cut_left, cut_words, width};
use super::glyphs::Glyphs;
use crate::config::{Role, Theme};

pub(crate) struct LineBuilder<'a> {
    theme: &'a Theme,
    glyphs: &'static Glyphs,
    spans: Vec<Span<'static>>,
    used: usize,
    room: usize,
    /// Everything is drawn as outdated.
    stale: bool,
}

impl<'a> LineBuilder<'a> {
    pub(crate) fn new(theme: &'a Theme, glyphs: &'static Glyphs, room: u16) -> Self {
        Self {
            theme,
            glyphs,
            spans: Vec::new(),
            used: 0,
            room: usize::from(room),
            stale: false,
        }
    }

    /// Sets whether everything from here on is drawn as outdated.
    pub(crate) fn stale(&mut self, stale: bool) -> &mut Self {
        self.stale = stale;
        self
    }

    pub(crate) fn glyphs(&self) -> &'static Glyphs {
        self.glyphs
    }

    pub(crate) fn left(&self) -> usize {
        self.room - self.used
    }

    /// Adds a text in the colour of its role; cuts what does not fit.
    pub(crate) fn text(&mut self, paint: Role, text: &str) -> &mut Self {
        self.styled(self.theme.style(paint), text)
    }

    /// Like [`Self::text`], in bold: for the verdict only.
    pub(crate) fn bold(&mut self, paint: Role, text: &str) -> &mut Self {
        self.styled(self.theme.style(paint).add_modifier(Modifier::BOLD), text)
    }

    /// Adds a sentence; cuts it between words if it does not fit.
    pub(crate) fn sentence(&mut self, paint: Role, text: &str) -> &mut Self {
        let text = clean(text, self.glyphs.ascii);
        let text = cut_words(&text, self.left(), self.glyphs.more);
        self.text(paint, &text)
    }

    pub(crate) fn styled(&mut self, style: Style, text: &str) -> &mut Self {
        let text = clean(text, self.glyphs.ascii);
        let mut text = text.into_owned();
        let mut cells = width(&text);
        if cells > self.left() {
            text = cut(&text, self.left(), self.glyphs.more);
            cells = width(&text);
        }
        if text.is_empty() {
            return self;
        }
        self.used += cells;
        let style = if self.stale {
            self.theme.style(Role::Unknown)
        } else {
            style
        };
        self.spans.push(Span::styled(text, style));
        self
    }

    /// Adds signs of one cell each; those of one style form one piece.
    pub(crate) fn signs(&mut self, signs: &[(Style, &str)]) -> &mut Self {
        for piece in signs.chunk_by(|one, other| one.0 == other.0) {
            let text: String = piece.iter().map(|(_, sign)| *sign).collect();
            self.styled(piece[0].0, &text);
        }
        self
    }

    pub(crate) fn space(&mut self, cells: usize) -> &mut Self {
        let cells = cells.min(self.left());
        if cells > 0 {
            self.used += cells;
            self.spans.push(Span::raw(" ".repeat(cells)));
        }
        self
    }

    /// Adds blanks up to column `at`.
    pub(crate) fn to(&mut self, at: usize) -> &mut Self {
        self.space(at.saturating_sub(self.used))
    }

    /// Adds a text right-aligned in `cells`.
    pub(crate) fn right(&mut self, paint: Role, text: &str, cells: usize) -> &mut Self {
        self.space(cells.saturating_sub(width(text)));
        self.text(paint, text)
    }

    /// Adds a text left-aligned in `cells`; cuts a longer text.
    pub(crate) fn padded(&mut self, paint: Role, text: &str, cells: usize) -> &mut Self {
        let end = self.used + cells;
        self.up_to(end, paint, text).to(end)
    }

    /// Adds a text; cuts what does not fit before column `end`.
    pub(crate) fn up_to(&mut self, end: usize, paint: Role, text: &str) -> &mut Self {
        let text = clean(text, self.glyphs.ascii);
        let room = end.saturating_sub(self.used);
        self.text(paint, &cut(&text, room, self.glyphs.more))
    }

    /// Adds a text in `cells`; cuts a longer one at its beginning, as the end of a path says more.
    pub(crate) fn ending(&mut self, paint: Role, text: &str, cells: usize) -> &mut Self {
        let text = clean(text, self.glyphs.ascii);
        self.text(paint, &cut_left(&text, cells, self.glyphs.more))
    }

    /// Adds pieces that only make sense together, `gap` cells after the text so far: all of them or none.
    pub(crate) fn item(&mut self, gap: usize, pieces: &[(Role, &str)]) -> &mut Self {
        self.fits(gap, pieces);
        self
    }

    /// Adds a label and its figure.
    pub(crate) fn figure(&mut self, gap: usize, label: &str, figure: &str) -> &mut Self {
        self.item(gap, &[(Role::Dim, label), (Role::Text, figure)])
    }

    /// Adds a key and what it does.
    pub(crate) fn key(&mut self, gap: usize, key: &str, words: &str) -> &mut Self {
        self.item(
            gap,
            &[(Role::Key, key), (Role::Dim, " "), (Role::Dim, words)],
        )
    }

    /// Like [`Self::item`]; returns whether there was room.
    pub(crate) fn fits(&mut self, gap: usize, pieces: &[(Role, &str)]) -> bool {
        let gap = if self.used == 0 { 0 } else { gap };
        let fits = gap + self.cells(pieces) <= self.left();
        if fits {
            self.space(gap);
            for (paint, text) in pieces {
                self.text(*paint, text);
            }
        }
        fits
    }

    fn cells(&self, pieces: &[(Role, &str)]) -> usize {
        let cells = |(_, text): &(Role, &str)| width(&clean(text, self.glyphs.ascii));
        pieces.iter().map(cells).sum()
    }

    /// Adds pieces at the right edge, if they fit behind the text so far.
    pub(crate) fn at_end(&mut self, pieces: &[(Role, &str)]) -> bool {
        let needed = self.cells(pieces);
        if needed + 2 > self.left() && self.used > 0 {
            return false;
        }
        self.to(self.room.saturating_sub(needed)).fits(0, pieces)
    }

    /// Adds the pieces of another line, in their styles.
    pub(crate) fn append(&mut self, line: &Line<'_>) -> &mut Self {
        for span in &line.spans {
            self.styled(span.style, &span.content);
        }
        self
    }

    /// Returns the line so far, and starts a new one.
    pub(crate) fn line(&mut self) -> Line<'static> {
        self.used = 0;
        Line::from(std::mem::take(&mut self.spans))
    }
}
