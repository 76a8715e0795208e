//! What a launched command prints: its last lines, scrolled back by the keys while the panel has them.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::BorderStyle;
use super::state::Panel;
use super::{View, panel};
use crate::config::Role::{Dim, Text};

/// Room for it. The same from the first line on, so that nothing moves while the first ones come.
const WANTED: u16 = 20;

pub(super) fn wanted(view: &View<'_>) -> u16 {
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
    let indent = usize::from(border != BorderStyle::Boxed);
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
    // The keys go down into the past: the newest lines are where they begin.
    let skip = scroll.min(command.printed.len().saturating_sub(room));
    let lines = command.printed.last(room, skip);
    let lines = lines.map(|line| {
        let mut row = view.row(inner.width);
        row.space(indent).text(Text, line);
        row.line()
    });
    let lines = lines.collect();
    panel::write(frame, inner, lines);
}
