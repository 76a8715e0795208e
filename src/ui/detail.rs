//! The details: one panel, or what is marked in it, over all of the room, with the verdict in a line above it.
//!
//! Knows how a page stands on screen; what it says is its own file's business.

mod content;
mod disk;
mod figures;
mod gpu;
mod loads;
mod rank;
mod verdict;
mod worker;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::{self, BorderStyle};
use super::state::Panel;
use super::{View, footer, header, history, log, panel, timeline};
use crate::config::Role::{Dim, Title};
use content::Content;

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
    let first = super::verdict::first_line(view, sentence.width);
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
    let border = layout::border(area);
    match view.state.focus {
        Panel::Verdict => page(view, frame, body, border, verdict::content),
        Panel::Pipeline => page(view, frame, body, border, rank::content),
        Panel::Gpu => page(view, frame, body, border, gpu::content),
        Panel::Workers => page(view, frame, body, border, worker::content),
        Panel::Disk => page(view, frame, body, border, disk::content),
        Panel::Timeline => timeline::draw(view, frame, body, border),
        Panel::History => history::draw(view, frame, body, border),
        Panel::Log => log::draw(view, frame, body, border),
    }
}

/// Draws as many lines of a page as there is room for, and says which these are.
fn page(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    body: Rect,
    border: BorderStyle,
    content: fn(&View<'_>, u16) -> Content,
) {
    // What a box takes on either side, or a cell of air.
    let (sides, ends) = match border {
        BorderStyle::Boxed => (4, 2),
        BorderStyle::Ruled | BorderStyle::Bare => (2, 1),
    };
    let Content {
        name,
        remark,
        mut lines,
    } = content(view, body.width.saturating_sub(sides));
    let room = usize::from(body.height.saturating_sub(ends));
    let shown = panel::window(lines.len(), room, view.state.scroll);
    let part = if lines.len() > room {
        let gap = if remark.is_empty() { "" } else { "  " };
        format!(
            "{gap}lines {}-{} of {}",
            shown.start + 1,
            shown.end,
            lines.len()
        )
    } else {
        String::new()
    };
    let remark = format!("{remark}{part}");
    let inner = if border == BorderStyle::Bare {
        let mut row = view.row(body.width);
        row.space(1).text(Title, &name);
        row.at_end(&[(Dim, &remark)]);
        panel::write(frame, Rect { height: 1, ..body }, vec![row.line()]);
        Rect {
            y: body.y + 1,
            height: body.height - 1,
            ..body
        }
    } else {
        panel::set_off(view.config, frame, body, border, (true, &name), &remark)
    };
    let indent = u16::from(border != BorderStyle::Boxed);
    let inner = Rect {
        x: inner.x + indent,
        width: inner.width.saturating_sub(indent),
        ..inner
    };
    panel::write(frame, inner, lines.drain(shown).collect());
}
