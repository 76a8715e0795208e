//! One line under construction: pieces of text with their meaning, never wider than the room.
//!
//! Every text on screen goes through here, and so through [`clean`]: control characters stop here.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::format::{clean, cut, cut_words, width};
use super::glyphs::Glyphs;
use crate::config::{Role, Theme};

pub(crate) struct LineBuilder<'a> {
    theme: &'a Theme,
    glyphs: &'a Glyphs,
    spans: Vec<Span<'static>>,
    used: usize,
    room: usize,
    /// Draw everything as old.
    stale: bool,
}

impl<'a> LineBuilder<'a> {
    pub(crate) fn new(theme: &'a Theme, glyphs: &'a Glyphs, room: u16) -> Self {
        Self {
            theme,
            glyphs,
            spans: Vec::new(),
            used: 0,
            room: usize::from(room),
            stale: false,
        }
    }

    /// From here on everything is drawn as old.
    pub(crate) fn stale(&mut self, stale: bool) -> &mut Self {
        self.stale = stale;
        self
    }

    pub(crate) fn glyphs(&self) -> &'a Glyphs {
        self.glyphs
    }

    pub(crate) fn left(&self) -> usize {
        self.room - self.used
    }

    /// A text in the colour of its meaning; what does not fit is cut.
    pub(crate) fn text(&mut self, paint: Role, text: &str) -> &mut Self {
        self.styled(self.theme.style(paint), text)
    }

    /// The same in bold: for the verdict alone.
    pub(crate) fn bold(&mut self, paint: Role, text: &str) -> &mut Self {
        self.styled(self.theme.style(paint).add_modifier(Modifier::BOLD), text)
    }

    /// A sentence: cut between words where it does not fit.
    pub(crate) fn sentence(&mut self, paint: Role, text: &str) -> &mut Self {
        let text = clean(text, self.glyphs.ascii);
        let text = cut_words(&text, self.left(), self.glyphs.more);
        self.text(paint, &text)
    }

    pub(crate) fn styled(&mut self, style: Style, text: &str) -> &mut Self {
        let text = clean(text, self.glyphs.ascii);
        let text = cut(&text, self.left(), self.glyphs.more);
        if text.is_empty() {
            return self;
        }
        self.used += width(&text);
        let style = if self.stale {
            self.theme.style(Role::Unknown)
        } else {
            style
        };
        self.spans.push(Span::styled(text, style));
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

    /// Fills with blanks up to column `at`.
    pub(crate) fn to(&mut self, at: usize) -> &mut Self {
        self.space(at.saturating_sub(self.used))
    }

    /// A text with blanks before it, so that it ends `cells` further on.
    pub(crate) fn right(&mut self, paint: Role, text: &str, cells: usize) -> &mut Self {
        self.space(cells.saturating_sub(width(text)));
        self.text(paint, text)
    }

    /// A text with blanks behind it; what is longer than `cells` is cut.
    pub(crate) fn padded(&mut self, paint: Role, text: &str, cells: usize) -> &mut Self {
        let end = self.used + cells;
        let text = clean(text, self.glyphs.ascii);
        let text = cut(&text, cells, self.glyphs.more);
        self.text(paint, &text).to(end)
    }

    /// Pieces that only make sense together, `gap` cells after what is there: all of them or none.
    pub(crate) fn item(&mut self, gap: usize, pieces: &[(Role, &str)]) -> bool {
        let gap = if self.used == 0 { 0 } else { gap };
        let ascii = self.glyphs.ascii;
        let needed: usize = pieces
            .iter()
            .map(|(_, text)| width(&clean(text, ascii)))
            .sum();
        if gap + needed > self.left() {
            return false;
        }
        self.space(gap);
        for (paint, text) in pieces {
            self.text(*paint, text);
        }
        true
    }

    /// Pieces at the right edge, where they fit behind what is there.
    pub(crate) fn at_end(&mut self, pieces: &[(Role, &str)]) -> bool {
        let ascii = self.glyphs.ascii;
        let needed: usize = pieces
            .iter()
            .map(|(_, text)| width(&clean(text, ascii)))
            .sum();
        if needed + 2 > self.left() && self.used > 0 {
            return false;
        }
        self.to(self.room.saturating_sub(needed));
        self.item(0, pieces)
    }

    pub(crate) fn line(self) -> Line<'static> {
        Line::from(self.spans)
    }
}
