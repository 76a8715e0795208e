//! Fewer bytes for the same screen: what has scrolled is moved, what looks alike is written together, and where two
//! changes are close to each other in a line, writing what stands between them again costs less than moving the
//! cursor over it.
//!
//! Knows cells and what they cost; knows nothing of what they mean.

use std::io::{self, Write};

use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};

use super::pen::{Pen, step};
use super::shift::{self, Costs};
use super::spot::{Look, Spot};

/// A terminal that is drawn on with few bytes.
#[derive(Debug)]
pub struct Thrifty<W: Write> {
    inner: CrosstermBackend<W>,
    /// `None` = as the terminal says.
    size: Option<Size>,
    /// It can move a part of a line.
    shifts: bool,
    /// The cursor is not shown.
    hidden: bool,
    /// What the terminal shows, line by line, and how large it is.
    shown: Vec<Spot>,
    area: Size,
    /// Lines with letters that terminals may give another width than we do: they are written as they come, and what
    /// they show is not known.
    unsure: Vec<bool>,
    pen: Pen,
    strokes: Vec<Stroke>,
    /// What a line has to show.
    after: Vec<Spot>,
}

/// Cells beside each other that are written at once.
#[derive(Debug, Clone, Copy)]
struct Stroke {
    y: u16,
    from: u16,
    to: u16,
    look: Look,
    /// They are blanks, of which nothing is seen but their ground.
    blank: bool,
}

impl<W: Write> Thrifty<W> {
    /// `shifts` says whether the terminal can delete and insert characters in a line.
    pub fn new(output: W, shifts: bool) -> Self {
        Self {
            inner: CrosstermBackend::new(output),
            size: None,
            shifts,
            hidden: false,
            shown: Vec::new(),
            area: Size::ZERO,
            unsure: Vec::new(),
            pen: Pen::default(),
            strokes: Vec::new(),
            after: Vec::new(),
        }
    }

    /// The same for what is no terminal, and cannot be asked.
    pub fn of_size(output: W, shifts: bool, size: Size) -> Self {
        Self {
            size: Some(size),
            ..Self::new(output, shifts)
        }
    }

    /// Everything on the terminal is blank.
    fn blank(&mut self) -> io::Result<()> {
        self.area = Size::ZERO;
        let size = self.size()?;
        self.grow(size.width, size.height);
        Ok(())
    }

    /// Knows at least so much of the terminal. Where nothing was drawn yet, it is blank.
    ///
    /// It is not asked how large it is: between two answers it may have become another, and back again.
    fn grow(&mut self, width: u16, height: u16) {
        let before = self.area;
        let size = Size::new(width.max(before.width), height.max(before.height));
        if size == before {
            return;
        }
        let (wide, high) = (usize::from(size.width), usize::from(size.height));
        let mut shown = vec![Spot::BLANK; wide * high];
        if before.width > 0 {
            let lines = self.shown.chunks(before.width.into());
            for (new, old) in shown.chunks_mut(wide).zip(lines) {
                new[..old.len()].copy_from_slice(old);
            }
            self.unsure.resize(high, false);
        } else {
            self.unsure = vec![false; high];
        }
        (self.shown, self.area) = (shown, size);
    }

    /// Where a line begins.
    fn begin(&self, y: u16) -> usize {
        usize::from(y) * usize::from(self.area.width)
    }

    /// The changes of one line, from the left.
    fn line(&mut self, changes: &[(u16, u16, &Cell)]) {
        let (Some((first, y, _)), Some((last, ..))) = (changes.first(), changes.last()) else {
            return;
        };
        let begin = self.begin(*y);
        let (from, to) = (usize::from(*first), usize::from(*last) + 1);
        let shown = &self.shown[begin + from..begin + to];
        self.after.clear();
        self.after.extend_from_slice(shown);
        let unsure = &mut self.unsure[usize::from(*y)];
        for (x, _, cell) in changes {
            match Spot::of(cell) {
                Some(spot) => self.after[usize::from(x - first)] = spot,
                None => *unsure = true,
            }
        }
        if *unsure {
            return self.as_it_comes(changes);
        }
        if self.shifts {
            self.shift(*y, *first);
        }
        for at in 0..self.after.len() {
            let spot = self.after[at];
            if std::mem::replace(&mut self.shown[begin + from + at], spot) != spot {
                let x = u16::try_from(from + at).unwrap_or(u16::MAX);
                self.change(x, *y, spot);
            }
        }
    }

    /// One place has to be written.
    fn change(&mut self, x: u16, y: u16, spot: Spot) {
        let last = self.strokes.last_mut();
        match last.filter(|last| (last.y, last.to) == (y, x)) {
            Some(last) if spot.fits(last.look) => {
                last.to += 1;
                last.blank &= spot.is_ground();
            }
            Some(last) if last.blank && Spot::ground(last.look).fits(spot.look) => {
                last.to += 1;
                last.look = spot.look;
                last.blank = false;
            }
            _ => self.strokes.push(Stroke {
                y,
                from: x,
                to: x + 1,
                look: spot.look,
                blank: spot.is_ground(),
            }),
        }
    }

    /// Moves those parts of a line that are as they have to be from column `first` on, but further to the left.
    fn shift(&mut self, y: u16, first: u16) {
        let begin = self.begin(y);
        let end = begin + usize::from(self.area.width);
        let from = begin + usize::from(first);
        let shown = &mut self.shown[from..end];
        // At the end of the line nothing moves in.
        let next = |at: usize| shown.get(at + 1).copied();
        let saved = self.after.iter().enumerate().filter_map(|(at, after)| {
            let saves = shown[at] != *after && next(at) == Some(*after);
            saves.then_some(after.len())
        });
        if saved.sum::<usize>() + char::MAX.len_utf8() < shift::LEAST {
            return;
        }
        let costs = self.after.iter().enumerate().map(|(at, after)| {
            let cost = |is: Spot| if is == *after { 0 } else { after.len() };
            Costs {
                stays: cost(shown[at]),
                shifted: next(at).map_or(usize::MAX, cost),
                blank: cost(Spot::BLANK),
            }
        });
        for (from, to) in shift::best(costs) {
            self.pen.shift(y, first + from, first + to);
            let part = &mut shown[from.into()..to.into()];
            part.rotate_left(1);
            if let Some(last) = part.last_mut() {
                *last = Spot::BLANK;
            }
        }
    }

    /// The changes of a line, each where it is.
    fn as_it_comes(&mut self, changes: &[(u16, u16, &Cell)]) {
        for (x, y, cell) in changes {
            self.pen.go(Position::new(*x, *y));
            self.pen.look(Look::of(cell));
            match Spot::of(cell) {
                Some(spot) => self.pen.write(spot.char, x + 1 >= self.area.width),
                None => self.pen.write_any(cell.symbol()),
            }
        }
    }

    /// Writes the strokes, one colour after the other.
    fn strokes(&mut self) {
        let mut strokes = std::mem::take(&mut self.strokes);
        let mut first = 0;
        while let Some(Stroke { look, .. }) = strokes.get(first).copied() {
            self.pen.look(look);
            let mut before = (0, 0);
            for stroke in &mut strokes[first..] {
                let alike =
                    stroke.look == look || stroke.blank && Spot::ground(stroke.look).fits(look);
                if alike && stroke.from < stroke.to {
                    self.stroke(stroke, before, look);
                    before = (stroke.y, stroke.to);
                    // There is nothing left of it.
                    stroke.to = stroke.from;
                }
            }
            let rest = strokes[first..].iter();
            first += rest.take_while(|stroke| stroke.from == stroke.to).count();
        }
        strokes.clear();
        self.strokes = strokes;
    }

    /// Writes a stroke, `before` being where the one before it ended.
    fn stroke(&mut self, stroke: &Stroke, before: (u16, u16), look: Look) {
        let (y, end) = before;
        let close = y == stroke.y && self.is_cheap(end, stroke.from, y, look);
        let from = if close { end } else { stroke.from };
        self.pen.go(Position::new(from, stroke.y));
        let begin = self.begin(stroke.y);
        for x in from..stroke.to {
            let spot = self.shown[begin + usize::from(x)];
            self.pen.write(spot.char, x + 1 >= self.area.width);
        }
    }

    /// Writing what stands between these in this look changes nothing, and costs no more than moving over it.
    fn is_cheap(&self, from: u16, to: u16, y: u16, look: Look) -> bool {
        let most = step(to.saturating_sub(from));
        if usize::from(to.saturating_sub(from)) > most {
            return false;
        }
        let begin = self.begin(y);
        let between = &self.shown[begin + usize::from(from)..begin + usize::from(to)];
        let costs: usize = between.iter().map(|spot| spot.len()).sum();
        costs <= most && between.iter().all(|spot| spot.fits(look))
    }
}

impl<W: Write> Backend for Thrifty<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let changes: Vec<(u16, u16, &Cell)> = content.collect();
        let widest = changes.iter().map(|(x, ..)| x + 1).max();
        let lowest = changes.last().map(|(_, y, _)| y + 1);
        self.grow(widest.unwrap_or(0), lowest.unwrap_or(0));
        for line in changes.chunk_by(|one, other| one.1 == other.1) {
            self.line(line);
        }
        self.strokes();
        let written = self.inner.write_all(self.pen.take());
        self.pen.clear();
        written
    }

    fn clear(&mut self) -> io::Result<()> {
        self.blank()?;
        self.inner.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        if region == ClearType::All {
            return self.clear();
        }
        // What is left on the terminal is not known here.
        self.unsure.fill(true);
        self.inner.clear_region(region)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.hidden, true) {
            return Ok(());
        }
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.hidden = false;
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        self.inner.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.inner.set_cursor_position(position)
    }

    fn size(&self) -> io::Result<Size> {
        self.size.map_or_else(|| self.inner.size(), Ok)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Modifier, Style};
    use ratatui::{Terminal, TerminalOptions, Viewport};
    use vt100::Parser;

    use super::*;

    const WIDTH: u16 = 40;
    const HEIGHT: u16 = 6;

    /// What is written, for the test to read.
    #[derive(Clone, Default)]
    struct Output(Rc<RefCell<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A backend, and the terminal at its other end.
    struct Far<B: Backend> {
        terminal: Terminal<B>,
        output: Output,
        parser: Parser,
    }

    impl<B: Backend<Error = io::Error>> Far<B> {
        fn new(backend: impl FnOnce(Output) -> B) -> Self {
            let output = Output::default();
            let viewport = Viewport::Fixed(Rect::new(0, 0, WIDTH, HEIGHT));
            let options = TerminalOptions { viewport };
            Self {
                terminal: Terminal::with_options(backend(output.clone()), options).unwrap(),
                output,
                parser: Parser::new(HEIGHT.try_into().unwrap(), WIDTH.try_into().unwrap(), 0),
            }
        }

        /// Draws a frame, and says how many bytes it took.
        fn draw(&mut self, fill: impl FnOnce(&mut Buffer)) -> usize {
            self.terminal
                .draw(|frame| fill(frame.buffer_mut()))
                .unwrap();
            let bytes = self.output.0.take();
            self.parser.process(&bytes);
            bytes.len()
        }
    }

    fn plain() -> Far<CrosstermBackend<Output>> {
        Far::new(CrosstermBackend::new)
    }

    fn thrifty(shifts: bool) -> Far<Thrifty<Output>> {
        let size = Size::new(WIDTH, HEIGHT);
        Far::new(|output| Thrifty::of_size(output, shifts, size))
    }

    /// What is seen on both is the same; how a blank would show a letter is not seen.
    fn are_alike(one: &Parser, other: &Parser) {
        for y in 0..HEIGHT {
            for x in 0..WIDTH {
                let cells = [one, other].map(|parser| parser.screen().cell(y, x).unwrap());
                let [cell, same] = cells;
                let text = cells.map(|cell| {
                    if cell.has_contents() {
                        cell.contents()
                    } else {
                        " "
                    }
                });
                assert_eq!(text[0], text[1], "{x} {y}");
                assert_eq!(cell.is_wide(), same.is_wide(), "{x} {y}");
                let ground = cells.map(|cell| (cell.bgcolor(), cell.inverse(), cell.underline()));
                assert_eq!(ground[0], ground[1], "{x} {y}");
                if text[0] != " " || cell.inverse() || cell.underline() {
                    let look =
                        cells.map(|cell| (cell.fgcolor(), cell.bold(), cell.dim(), cell.italic()));
                    assert_eq!(look[0], look[1], "{x} {y}");
                }
            }
        }
    }

    const SYMBOLS: [&str; 9] = ["a", "b", " ", " ", "▁", "█", "│", "é", "训"];

    fn styles() -> [Style; 8] {
        let fg = |index| Style::new().fg(Color::Indexed(index));
        [
            Style::new(),
            fg(75),
            fg(179),
            Style::new().fg(Color::Red),
            fg(75).add_modifier(Modifier::BOLD),
            Style::new().add_modifier(Modifier::DIM),
            fg(75).add_modifier(Modifier::REVERSED),
            Style::new()
                .bg(Color::Rgb(1, 20, 255))
                .add_modifier(Modifier::UNDERLINED),
        ]
    }

    type Cells = Vec<(usize, usize)>;

    fn fill(buffer: &mut Buffer, cells: &Cells) {
        let styles = styles();
        for (place, (symbol, style)) in cells.iter().enumerate() {
            let place = u16::try_from(place).unwrap();
            let (x, y) = (place % WIDTH, place / WIDTH);
            buffer.set_string(x, y, SYMBOLS[*symbol], styles[*style]);
        }
    }

    /// How one frame follows on another.
    #[derive(Debug, Clone)]
    enum Next {
        /// Other letters here and there.
        Changed(Vec<(usize, (usize, usize))>),
        /// Parts of lines scroll, and something new comes in.
        Scrolled(Vec<(usize, usize, usize, (usize, usize))>),
        Another(Cells),
        Cleared,
    }

    fn cell(symbols: usize) -> impl Strategy<Value = (usize, usize)> {
        (0..symbols, 0..8_usize)
    }

    fn cells(symbols: usize) -> impl Strategy<Value = Cells> {
        let few = prop_oneof![3 => Just((2, 0)), 1 => cell(symbols)];
        prop::collection::vec(few, usize::from(WIDTH * HEIGHT))
    }

    fn next(symbols: usize) -> impl Strategy<Value = Next> {
        let (wide, all) = (usize::from(WIDTH), usize::from(WIDTH * HEIGHT));
        let changed = prop::collection::vec((0..all, cell(symbols)), 0..20).prop_map(Next::Changed);
        let part = (0..usize::from(HEIGHT), 0..wide, 0..wide, cell(symbols));
        let scrolled = prop::collection::vec(part, 1..6).prop_map(Next::Scrolled);
        prop_oneof![
            6 => changed,
            6 => scrolled,
            1 => cells(symbols).prop_map(Next::Another),
            1 => Just(Next::Cleared),
        ]
    }

    fn follow(cells: &mut Cells, next: &Next) {
        match next {
            Next::Changed(changes) => changes.iter().for_each(|(at, cell)| cells[*at] = *cell),
            Next::Scrolled(parts) => {
                for (y, from, to, new) in parts {
                    let line = y * usize::from(WIDTH);
                    let part = &mut cells[line + from.min(to)..=line + from.max(to)];
                    part.rotate_left(1);
                    *part.last_mut().unwrap() = *new;
                }
            }
            Next::Another(others) => cells.clone_from(others),
            Next::Cleared => cells.fill((2, 0)),
        }
    }

    fn check(mut frame: Cells, nexts: &[Next], shifts: bool) {
        let (mut plain, mut thrifty) = (plain(), thrifty(shifts));
        let mut draw = |cells: &Cells| {
            plain.draw(|buffer| fill(buffer, cells));
            thrifty.draw(|buffer| fill(buffer, cells));
            are_alike(&plain.parser, &thrifty.parser);
        };
        draw(&frame);
        for next in nexts {
            follow(&mut frame, next);
            draw(&frame);
        }
    }

    fn nexts(symbols: usize) -> impl Strategy<Value = Vec<Next>> {
        prop::collection::vec(next(symbols), 1..8)
    }

    #[test]
    fn what_is_drawn_beyond_the_size_that_it_said_is_known_too() {
        let mut thrifty = Thrifty::of_size(Vec::new(), true, Size::new(10, 2));
        thrifty.clear().unwrap();
        let cell = Cell::new("a");
        let written = |thrifty: &mut Thrifty<Vec<u8>>, places: &[(u16, u16)]| {
            let cells = places.iter().map(|(x, y)| (*x, *y, &cell));
            thrifty.draw(cells).unwrap();
            thrifty.shown.iter().filter(|spot| spot.char == 'a').count()
        };
        assert_eq!(written(&mut thrifty, &[(3, 1), (12, 1)]), 2);
        assert_eq!(written(&mut thrifty, &[(0, 5), (3, 7), (30, 7)]), 5);
        assert_eq!(thrifty.area, Size::new(31, 8));
        thrifty.clear().unwrap();
        assert_eq!(thrifty.area, Size::new(10, 2));
        assert_eq!(written(&mut thrifty, &[]), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn the_screen_is_the_same(frame in cells(8), nexts in nexts(8), shifts: bool) {
            check(frame, &nexts, shifts);
        }

        #[test]
        fn the_screen_is_the_same_with_wide_letters(frame in cells(9), nexts in nexts(9), shifts: bool) {
            check(frame, &nexts, shifts);
        }
    }
}
