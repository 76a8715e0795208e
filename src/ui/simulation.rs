//! The simulation as it moves: loaders, the data queue, the trainer, in the order of a batch's way.
//!
//! ```text
//!  settings                                                        speed, paused
//! ─ loaders ──────────────────────────────────────────────────────────────────────
//!  each with the part of its batch that is done, in its own hue
//! ─ data queue ───────────────────────────────────────────────────────────────────
//!  batches that are ready, with number and hue of the loader that made them
//! ─ trainer ──────────────────────────────────────────────────────────────────────
//!  the batch in its step; the steps before it, with the waits between them
//! ─ so far ───────────────────────────────────────────────────────────────────────
//!  time, batches, share stalled
//!  keys
//! ```
//!
//! Knows no clock; what is shown is what the simulation and its past say.

mod figures;
mod footer;
mod header;
mod loaders;
mod queue;
mod trainer;

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::layout::{Chrome, chrome};
use super::row::Row;
use super::{glyphs, panel};
use crate::config::Config;
use crate::experiment::simulate::Simulation;

/// Everything that one frame shows.
#[derive(Debug, Clone, Copy)]
pub struct SimulationView<'a> {
    pub simulation: &'a Simulation,
    /// At equal distances in time, the newest last.
    pub past: &'a VecDeque<Moment>,
    /// Simulated seconds in a second.
    pub speed: f64,
    pub paused: bool,
    pub config: &'a Config,
}

/// What is kept of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Batches that were ready.
    pub ready: usize,
    /// The loader of the batch in its step; `None` while the trainer waited.
    pub training: Option<u32>,
}

/// The room of a region.
#[derive(Debug, Clone, Copy)]
struct Room {
    width: u16,
    lines: usize,
    /// Nothing around it says what it is.
    unnamed: bool,
}

/// Draws the whole screen.
pub fn draw(view: &SimulationView<'_>, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let chrome = chrome(area);
    let around = match chrome {
        Chrome::Boxed => 2,
        Chrome::Ruled => 1,
        Chrome::Bare => 0,
    };
    let mut rest = area;
    let lines = lines(area.height, around, view.simulation.settings().workers);
    header::draw(view, frame, cut(&mut rest, lines.header));
    let regions: [(&str, u16, Draw); 4] = [
        ("loaders", lines.loaders, loaders::draw),
        ("data queue", lines.queue, queue::draw),
        ("trainer", lines.trainer, trainer::draw),
        ("so far", lines.figures, figures::draw),
    ];
    for (name, lines, draw) in regions {
        if lines == 0 {
            continue;
        }
        let area = cut(&mut rest, lines + around);
        let inner = panel::set_off(
            view.config,
            frame,
            area,
            chrome,
            (false, name),
            &remark(view, name),
        );
        let inner = match chrome {
            Chrome::Boxed => inner,
            // A cell of air, as on the right.
            _ => Rect {
                x: inner.x + u16::from(inner.width > 0),
                width: inner.width.saturating_sub(1),
                ..inner
            },
        };
        let room = Room {
            width: inner.width,
            lines: usize::from(inner.height),
            unnamed: chrome == Chrome::Bare,
        };
        let drawn = draw(view, room);
        panel::write(frame, inner, drawn);
    }
    let foot = Rect {
        y: area.bottom() - lines.footer,
        height: lines.footer,
        ..area
    };
    footer::draw(view, frame, foot);
}

/// Gives the lines of a region.
type Draw = fn(&SimulationView<'_>, Room) -> Vec<Line<'static>>;

/// Lines of each region, without what sets it off.
#[derive(Debug, Default)]
struct Lines {
    header: u16,
    loaders: u16,
    queue: u16,
    trainer: u16,
    figures: u16,
    footer: u16,
}

/// What tells most gets its line first, so that it is the last to go; then each region gets its further lines.
fn lines(height: u16, around: u16, workers: u32) -> Lines {
    let mut lines = Lines::default();
    let mut left = height;
    let mut give = |to: &mut u16, wanted: u16, around: u16| {
        let first = if *to == 0 { around } else { 0 };
        let given = wanted.min(left.saturating_sub(first));
        if given > 0 {
            left -= given + first;
            *to += given;
        }
    };
    give(&mut lines.figures, 1, around);
    give(&mut lines.trainer, 1, around);
    give(&mut lines.loaders, 1, around);
    give(&mut lines.queue, 1, around);
    give(&mut lines.footer, 1, 0);
    give(&mut lines.header, 1, 0);
    give(&mut lines.trainer, 1, 0);
    give(&mut lines.queue, 1, 0);
    let workers = u16::try_from(workers).unwrap_or(u16::MAX);
    give(&mut lines.loaders, workers.saturating_sub(1), 0);
    lines
}

/// Cuts `height` lines, or what there is, from the top.
fn cut(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    let taken = Rect { height, ..*rest };
    rest.y += height;
    rest.height -= height;
    taken
}

fn remark(view: &SimulationView<'_>, name: &str) -> String {
    match name {
        "data queue" => queue::remark(view),
        "trainer" => trainer::remark(view),
        _ => String::new(),
    }
}

impl SimulationView<'_> {
    fn row(&self, width: u16) -> Row<'_> {
        Row::new(&self.config.theme, glyphs::of(self.config), width)
    }

    /// What a loader, and each batch that it made, is drawn in.
    fn hue(&self, worker: u32) -> Style {
        self.config.theme.hue(worker)
    }

    /// A batch: the number of its loader on a ground of its hue.
    fn batch(&self, worker: u32) -> Style {
        self.hue(worker).add_modifier(Modifier::REVERSED)
    }

    /// The newest moments that fit into `room` cells, behind as many empty cells as are left.
    fn past(&self, row: &mut Row<'_>, room: usize) -> impl Iterator<Item = &Moment> {
        row.space(room.saturating_sub(self.past.len()));
        self.past.iter().skip(self.past.len().saturating_sub(room))
    }

    /// Cells that the number of a loader takes.
    fn digits(&self) -> usize {
        let workers = self.simulation.settings().workers;
        workers.saturating_sub(1).to_string().len()
    }
}

/// A part as a bar of `cells`.
fn bar(row: &mut Row<'_>, style: Style, empty: Style, done: f64, cells: usize) {
    let full = (0..cells).filter(|cell| (*cell as f64 + 0.5) / (cells as f64) < done);
    let full = full.count();
    let glyphs = row.glyphs();
    row.styled(style, &glyphs.bar_full.repeat(full));
    row.styled(empty, &glyphs.bar_empty.repeat(cells - full));
}
