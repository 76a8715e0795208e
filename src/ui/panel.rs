//! The frame of a panel (box or rule, name, and the time that its figures cover) and the lines inside it.

use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Block;

use super::View;
use super::layout::{BorderStyle, count, indented, take};
use super::line_builder::LineBuilder;
use super::state::Panel;
use crate::config::Role;

/// The functions of a panel; each panel has its own file.
pub(super) struct PanelFunctions {
    /// Returns how many lines it could fill at this width; 0 = there is nothing to show.
    pub(super) wanted: fn(&View<'_>, u16) -> u16,
    pub(super) content: fn(&View<'_>, Inside) -> Content,
}

/// The room inside a panel.
#[derive(Clone, Copy)]
pub(super) struct Inside {
    pub(super) width: u16,
    pub(super) height: usize,
    pub(super) border: BorderStyle,
}

impl Inside {
    /// Starts a line, with the blank cells before it.
    pub(super) fn row<'a>(self, view: &View<'a>) -> LineBuilder<'a> {
        let mut row = view.row(self.width);
        row.space(self.border.indent());
        row
    }
}

/// What a panel or a page shows.
pub(super) struct Content {
    /// Its subject.
    pub(super) name: String,
    /// The time that its figures cover.
    pub(super) remark: String,
    pub(super) lines: Vec<Line<'static>>,
    /// How far a panel that scrolls can be scrolled.
    pub(super) end: usize,
}

impl Content {
    pub(super) fn new(name: &str, remark: &str, lines: Vec<Line<'static>>) -> Self {
        Self {
            name: name.to_owned(),
            remark: remark.to_owned(),
            lines,
            end: 0,
        }
    }

    /// Lets a panel scroll this far.
    pub(super) fn scrolls_to(self, end: usize) -> Self {
        Self { end, ..self }
    }
}

/// Draws a panel: its frame, and inside it the lines that fit.
pub(super) fn draw(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    border: BorderStyle,
    panel: Panel,
    content: fn(&View<'_>, Inside) -> Content,
) {
    let framed = of_panel(border, panel);
    let inner = area_of_lines(area, border, panel);
    let content = content(view, room(inner, border));
    let title = (view.state.focus == panel, &*content.name);
    frame_region(view, frame, area, framed, title, &content.remark);
    write(frame, inner, content.lines);
}

/// Returns how far a panel in this area can be scrolled.
pub(super) fn end(
    view: &View<'_>,
    area: Rect,
    border: BorderStyle,
    panel: Panel,
    content: fn(&View<'_>, Inside) -> Content,
) -> usize {
    let inner = area_of_lines(area, border, panel);
    if inner.is_empty() {
        return 0;
    }
    content(view, room(inner, border)).end
}

/// Returns the area of a panel's lines.
fn area_of_lines(area: Rect, border: BorderStyle, panel: Panel) -> Rect {
    let inner = inside(area, of_panel(border, panel));
    // Without a box the verdict keeps one blank column, if there is room.
    if panel == Panel::Verdict && border != BorderStyle::Boxed && inner.width >= 39 {
        return indented(inner, 1);
    }
    inner
}

fn room(inner: Rect, border: BorderStyle) -> Inside {
    Inside {
        width: inner.width,
        height: inner.height.into(),
        border,
    }
}

/// Returns the border of this panel. The verdict has no rule, as it is directly below the header.
fn of_panel(border: BorderStyle, panel: Panel) -> BorderStyle {
    match (border, panel) {
        (BorderStyle::Ruled, Panel::Verdict) => BorderStyle::Bare,
        _ => border,
    }
}

/// Returns the area inside a box or below a rule. A box keeps one blank column on either side. Without a box, the last
/// column is blank if there is room; the first blank column is part of each line.
fn inside(area: Rect, border: BorderStyle) -> Rect {
    let mut inner = area;
    match border {
        BorderStyle::Boxed => return area.inner(Margin::new(2, 1)),
        BorderStyle::Ruled => _ = take(&mut inner, 1),
        BorderStyle::Bare => {}
    }
    inner.width -= u16::from(area.width >= 40);
    inner
}

/// Draws the frame of a screen without panels, in the style of the verdict's; returns the area inside.
pub(super) fn open(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    border: BorderStyle,
    name: &str,
    remark: &str,
) -> Rect {
    let title = (view.state.focus == Panel::Verdict, name);
    let border = of_panel(border, Panel::Verdict);
    frame_region(view, frame, area, border, title, remark)
}

/// Draws box or rule with the name on the left and a remark on the right; returns the area inside. `title` is whether
/// it is focused, and its name.
pub(super) fn frame_region(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    border: BorderStyle,
    title: (bool, &str),
    remark: &str,
) -> Rect {
    let (focused, name) = title;
    let glyphs = view.glyphs();
    let style = view.config.theme.style(Role::Border);
    let inner = inside(area, border);
    let line = Rect {
        height: area.height.min(1),
        ..area
    };
    let inset = match border {
        BorderStyle::Bare => return inner,
        BorderStyle::Boxed => {
            let block = Block::bordered()
                .border_set(glyphs.border)
                .border_style(style);
            frame.render_widget(block, area);
            2
        }
        BorderStyle::Ruled => {
            let text = glyphs.rule.repeat(usize::from(area.width));
            frame.render_widget(Line::styled(text, style), line);
            1
        }
    };
    let room = line.width.saturating_sub(2 * inset);
    let (paint, mark) = if focused {
        (Role::Focus, glyphs.mark)
    } else {
        (Role::Title, "")
    };
    let mut title = view.row(room);
    title.text(paint, " ").text(paint, mark);
    let title = title.sentence(paint, name).text(paint, " ").line();
    let mut right = view.row(room.saturating_sub(count(title.width()) + 2));
    if !remark.is_empty() {
        right.item(0, &[(Role::Dim, &format!(" {remark} "))]);
    }
    let right = right.line();
    if !line.is_empty() {
        let (x, y, buffer) = (line.x + inset, line.y, frame.buffer_mut());
        buffer.set_line(x, y, &title, room);
        buffer.set_line(x + room - count(right.width()), y, &right, room);
    }
    inner
}

/// Draws lines from the top; leaves out those that do not fit.
pub(crate) fn write(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    let area = area.intersection(frame.area());
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        // Not a `Paragraph`: that would measure each line twice to wrap it, and the lines already fit the width.
        frame.buffer_mut().set_line(area.x, y, &line, area.width);
        // The style of a line overrides those of its pieces, and fills the width.
        if line.style != Style::new() {
            let whole = Rect {
                y,
                height: 1,
                ..area
            };
            frame.buffer_mut().set_style(whole, line.style);
        }
    }
}

/// Puts parts below each other, with a blank line between those that are not empty.
pub(super) fn stacked<const N: usize>(parts: [Vec<Line<'static>>; N]) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(part);
    }
    lines
}

/// Puts lines on the left, and others in the last `cells` of the width.
pub(crate) fn side_by_side(
    view: &View<'_>,
    width: u16,
    left: &[Line<'static>],
    right: &[Line<'static>],
    cells: u16,
) -> Vec<Line<'static>> {
    let from = usize::from(width.saturating_sub(cells));
    let count = left.len().max(right.len());
    (0..count)
        .map(|place| {
            let mut row = view.row(width);
            for (line, at) in [(left.get(place), 0), (right.get(place), from)] {
                row.to(at);
                if let Some(line) = line {
                    row.append(line);
                }
            }
            row.line()
        })
        .collect()
}

/// Returns which of `count` lines are visible in `room`, from `scroll` on, never past the end.
pub(crate) fn window(count: usize, room: usize, scroll: usize) -> std::ops::Range<usize> {
    let first = scroll.min(count.saturating_sub(room));
    first..count.min(first + room)
}
