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

/// Returns what a page shows on lines of this width.
type PageContent = fn(&View<'_>, u16) -> Content;

/// Draws what surrounds a page, and returns the area in between.
pub(super) fn draw_frame(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) -> Rect {
    let [top, sentence, last, body] = parts(area);
    header::draw(view, frame, top);
    let sentence = sentence.inner(Margin::new(1, 0));
    let first = super::verdict::first_line(view, sentence.width);
    panel::write(frame, sentence, vec![first]);
    footer::draw(view, frame, last);
    body
}

/// Returns the lines of the header, of the verdict and of the keys, and the area in between.
fn parts(area: Rect) -> [Rect; 4] {
    let mut body = area;
    let (top, sentence) = (take(&mut body, 1), take(&mut body, 1));
    let last = take_last(&mut body, 1);
    [top, sentence, last, body]
}

/// Draws the page of the focused panel; a panel without a page shows what `same` returns, on more lines.
pub(super) fn draw(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    same: fn(&View<'_>, Inside) -> Content,
) {
    let body = draw_frame(view, frame, area);
    let border = layout::border(area);
    match content(view.state.focus) {
        Some(content) => page(view, frame, body, border, content),
        None => panel::draw(view, frame, body, border, view.state.focus, same),
    }
}

/// Returns what the page of a panel shows; `None` for one without a page.
fn content(panel: Panel) -> Option<PageContent> {
    match panel {
        Panel::Verdict => Some(verdict::content),
        Panel::Pipeline => Some(rank::content),
        Panel::Gpu => Some(gpu::content),
        Panel::Workers => Some(worker::content),
        Panel::Disk => Some(disk::content),
        Panel::Timeline | Panel::History | Panel::Log => None,
    }
}

/// Whether a panel has a page.
pub(super) fn has_page(panel: Panel) -> bool {
    content(panel).is_some()
}

/// Returns how far the page of the focused panel can be scrolled; for a panel without a page, what `same` returns.
pub(super) fn end(view: &View<'_>, same: fn(&View<'_>, Inside) -> Content) -> usize {
    let [.., body] = parts(view.screen);
    let border = layout::border(view.screen);
    match content(view.state.focus) {
        Some(content) => end_of_page(view, body, border, content),
        None => panel::end(view, body, border, view.state.focus, same),
    }
}

/// Returns the first visible line of a page with this content when it is scrolled to its end.
pub(super) fn end_of_page(
    view: &View<'_>,
    body: Rect,
    border: BorderStyle,
    content: PageContent,
) -> usize {
    let (width, height) = room(body, border);
    content(view, width).lines.len().saturating_sub(height)
}

/// Returns how wide the lines of a page are, and how many fit.
fn room(body: Rect, border: BorderStyle) -> (u16, usize) {
    // Columns that a box or a margin takes on either side.
    let (sides, ends) = match border {
        BorderStyle::Boxed => (4, 2),
        BorderStyle::Ruled | BorderStyle::Bare => (2, 1),
    };
    let height = body.height.saturating_sub(ends);
    (body.width.saturating_sub(sides), height.into())
}

/// Draws as many lines of a page as fit, and says which lines these are.
pub(super) fn page(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    body: Rect,
    border: BorderStyle,
    content: PageContent,
) {
    let (width, room) = room(body, border);
    let Content {
        name,
        remark,
        mut lines,
        ..
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
