//! The last lines of a launched command's output; the keys scroll back while the panel is focused.

use super::View;
use super::panel::{Content, Inside};
use super::state::Panel;
use crate::config::Role::{Dim, Text};

/// Lines wanted. The same from the start, so that nothing moves while the first lines arrive.
const WANTED: u16 = 20;

pub(super) fn wanted(view: &View<'_>, _: u16) -> u16 {
    view.command.map_or(0, |_| WANTED)
}

pub(super) fn content(view: &View<'_>, inside: Inside) -> Content {
    let Some(command) = view.command else {
        return Content::new("output", "", vec![]);
    };
    let mut lines = Vec::new();
    if command.printed.is_empty() {
        lines.push(inside.row(view).text(Dim, "nothing printed yet").line());
    }
    // Scrolling down goes back in time: it starts at the newest lines.
    let end = command.printed.len().saturating_sub(inside.height);
    let skip = view.scroll_of(Panel::Log).min(end);
    let printed = command.printed.last(inside.height, skip);
    lines.extend(printed.map(|line| inside.row(view).text(Text, line).line()));
    Content::new("output", &command.state, lines).scrolls_to(end)
}
