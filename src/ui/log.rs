//! The last lines of a launched command's output; the keys scroll back while the panel is focused.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::BorderStyle;
use super::state::Panel;
use super::{View, panel};
use crate::config::Role::{Dim, Text};

/// Lines wanted. The same from the start, so that nothing moves while the first lines arrive.
const WANTED: u16 = 20;

pub(super) fn wanted(view: &View<'_>, _: u16) -> u16 {
    view.command.map_or(0, |_| WANTED)
}

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, border: BorderStyle) {
    let Some(command) = view.command else {
        return;
    };
    let inner = panel::open(
        view,
        frame,
        area,
        border,
        Panel::Log,
        "output",
        command.state,
    );
    let indent = border.indent();
    if command.printed.is_empty() {
        let mut row = view.row(inner.width);
        row.space(indent).text(Dim, "nothing printed yet");
        return panel::write(frame, inner, vec![row.line()]);
    }
    let room = usize::from(inner.height);
    let scroll = if view.state.focus == Panel::Log {
        view.state.scroll
    } else {
        0
    };
    // Scrolling down goes back in time: it starts at the newest lines.
    let skip = scroll.min(command.printed.len().saturating_sub(room));
    let lines = command.printed.last(room, skip);
    let lines = lines.map(|line| view.row(inner.width).space(indent).text(Text, line).line());
    let lines = lines.collect();
    panel::write(frame, inner, lines);
}
