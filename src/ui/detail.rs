//! The details: one panel, or what is marked in it, over all of the room, with the verdict in a line above it.
//!
//! Knows how a page stands on screen; what it says is its own file's business.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::{self, NARROW};
use super::state::Panel;
use super::{View, disk, footer, gpu, header, history, log, panel, pipeline, verdict, workers};

/// Lines below which there is room for the verdict alone.
const LOW: u16 = 5;
/// Lines from which on the last is the footer's.
const FOOTER: u16 = 8;

/// There is room for more than the verdict.
pub(super) fn fits(area: Rect) -> bool {
    area.width >= NARROW && area.height >= LOW
}

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    let line = |y: u16| Rect {
        y,
        height: 1,
        ..area
    };
    let footer = u16::from(area.height >= FOOTER);
    header::draw(view, frame, line(area.y));
    let sentence = Rect {
        x: area.x + 1,
        width: area.width - 2,
        ..line(area.y + 1)
    };
    let first = verdict::first_line(view, sentence.width);
    panel::write(frame, sentence, vec![first]);
    if footer > 0 {
        footer::draw(view, frame, line(area.bottom() - 1));
    }
    let body = Rect {
        y: area.y + 2,
        height: area.height - 2 - footer,
        ..area
    };
    let chrome = layout::chrome(area);
    match view.state.focus {
        Panel::Verdict => verdict::draw(view, frame, body, chrome),
        Panel::Pipeline => pipeline::draw(view, frame, body, chrome),
        Panel::Gpu => gpu::draw(view, frame, body, chrome),
        Panel::Workers => workers::draw(view, frame, body, chrome),
        Panel::Disk => disk::draw(view, frame, body, chrome),
        Panel::History => history::draw(view, frame, body, chrome),
        Panel::Log => log::draw(view, frame, body, chrome),
    }
}
