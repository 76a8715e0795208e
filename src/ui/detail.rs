//! The details of one panel, or of the row marked in it, on the whole screen, with the verdict in a line above.
//!
//! Draws the frame of a page; the content of each page is in its own file.

mod disk;
pub(super) mod figures;
mod gpu;
mod loads;
mod rank;
mod verdict;
mod worker;

use ratatui::Frame;
use ratatui::layout::{Margin, Rect};

use super::layout::{self, BorderStyle, count, indented, take, take_last};
use super::panel::{Content, Inside};
use super::state::Panel;
use super::{View, footer, header, panel};
use crate::config::Role::{Dim, Title};

/// Draws what surrounds a page, and returns the area in between.
pub(super) fn draw_frame(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) -> Rect {
    let mut body = area;
    header::draw(view, frame, take(&mut body, 1));
    let sentence = take(&mut body, 1).inner(Margin::new(1, 0));
    let first = super::verdict::first_line(view, sentence.width);
    panel::write(frame, sentence, vec![first]);
    footer::draw(view, frame, take_last(&mut body, 1));
    body
}

/// Draws the page of the focused panel; one without a page shows what `same` returns, on more lines.
pub(super) fn draw(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    same: fn(&View<'_>, Inside) -> Content,
) {
    let body = draw_frame(view, frame, area);
    let border = layout::border(area);
    let content: fn(&View<'_>, u16) -> Content = match view.state.focus {
        Panel::Verdict => verdict::content,
        Panel::Pipeline => rank::content,
        Panel::Gpu => gpu::content,
        Panel::Workers => worker::content,
        Panel::Disk => disk::content,
        panel => return panel::draw(view, frame, body, border, panel, same),
    };
    page(view, frame, body, border, content);
}

/// Returns how wide the lines of a page are, and how many fit.
pub(super) fn room(body: Rect, border: BorderStyle) -> (u16, usize) {
    // Columns that a box or a margin takes on either side.
    let (sides, ends) = match border {
        BorderStyle::Boxed => (4, 2),
        BorderStyle::Ruled | BorderStyle::Bare => (2, 1),
    };
    let height = body.height.saturating_sub(ends);
    (body.width.saturating_sub(sides), height.into())
}

/// Draws as many lines of a page as fit, and shows which ones these are.
pub(super) fn page(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    body: Rect,
    border: BorderStyle,
    content: fn(&View<'_>, u16) -> Content,
) {
    let (width, room) = room(body, border);
    let Content {
        name,
        remark,
        mut lines,
    } = content(view, width);
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
        let mut rest = body;
        panel::write(frame, take(&mut rest, 1), vec![row.line()]);
        rest
    } else {
        panel::frame_region(view, frame, body, border, (true, &name), &remark)
    };
    let inner = indented(inner, count(border.indent()));
    panel::write(frame, inner, lines.drain(shown).collect());
}
