//! The details: one panel, or what is marked in it, over all of the room, with the verdict in a line above it.
//!
//! Knows how a page stands on screen; what it says is its own file's business.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout;
use super::state::Panel;
use super::{View, disk, footer, gpu, header, history, log, panel, pipeline, verdict, workers};

/// Draws what stands around a page, and gives what lies between.
pub(super) fn around(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) -> Rect {
    let line = |y: u16| Rect {
        y,
        height: 1,
        ..area
    };
    header::draw(view, frame, line(area.y));
    let sentence = Rect {
        x: area.x + 1,
        width: area.width - 2,
        ..line(area.y + 1)
    };
    let first = verdict::first_line(view, sentence.width);
    panel::write(frame, sentence, vec![first]);
    footer::draw(view, frame, line(area.bottom() - 1));
    Rect {
        y: area.y + 2,
        height: area.height - 3,
        ..area
    }
}

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    let body = around(view, frame, area);
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
