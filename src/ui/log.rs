//! The last lines of a launched command's output; the keys scroll back while the panel is focused, or while there is
//! no job.

use super::panel::{Content, Inside};
use super::state::{Page, Panel};
use super::{Attach, View};
use crate::action::Action;
use crate::config::Role::{Dim, Text};
use crate::units::counted;

/// Lines wanted. The same from the start, so that nothing moves while the first lines arrive.
const WANTED: u16 = 20;

pub(super) fn wanted(view: &View<'_>, _: u16) -> u16 {
    view.command.map_or(0, |_| WANTED)
}

/// Whether the keys scroll the output.
pub(super) fn scrolls(view: &View<'_>) -> bool {
    match view.attach {
        // Without a job it is the only panel that scrolls. A replay has no output, so its keys move in time.
        Attach::LookingForJob { .. } => view.command.is_some() && !view.state.help,
        Attach::Picker(_) => false,
        Attach::Attached | Attach::Ended => {
            let shown = view.state.page != Page::Tree && !view.state.help;
            shown && view.state.focus == Panel::Log
        }
    }
}

pub(super) fn content(view: &View<'_>, inside: Inside) -> Content {
    let Some(command) = view.command else {
        return Content::new("output", "", vec![]);
    };
    let mut lines = Vec::new();
    if command.printed.is_empty() {
        lines.push(inside.row(view).text(Dim, "nothing printed yet").line());
    }
    let (all, height) = (command.printed.len(), inside.height);
    // Scrolled up, the last line says how many newer ones there are.
    let above = height.saturating_sub(1).max(1);
    let end = if all > height { all - above } else { 0 };
    let scroll = if scrolls(view) { view.state.scroll } else { 0 };
    let newer = scroll.min(end);
    let room = if newer > 0 { above } else { height };
    let printed = command.printed.last(room, newer);
    lines.extend(printed.map(|line| inside.row(view).text(Text, line).line()));
    if room < height {
        let newer = counted(newer, "newer line");
        let row = inside.row(view);
        lines.push(view.with_key(row, &newer, Action::ToEnd, "shows the last"));
    }
    Content::new("output", &command.state, lines).scrolls_to(end)
}
