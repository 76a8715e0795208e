//! What sets a panel off: box or rule, its name, and what its figures cover.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Block;

use super::layout::BorderStyle;
use super::line_builder::LineBuilder;
use super::state::Panel;
use super::{View, glyphs};
use crate::config::{Config, Role};

/// Draws box or rule with the panel's name on the left and a remark on the right; gives what is left.
pub(crate) fn open(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    border: BorderStyle,
    panel: Panel,
    name: &str,
    remark: &str,
) -> Rect {
    if border == BorderStyle::Ruled && panel == Panel::Verdict {
        return airy(area);
    }
    let focused = view.state.focus == panel;
    set_off(view.config, frame, area, border, (focused, name), remark)
}

/// The same for a region of any screen; the first of `title` says whether it has the keys.
pub(crate) fn set_off(
    config: &Config,
    frame: &mut Frame<'_>,
    area: Rect,
    border: BorderStyle,
    title: (bool, &str),
    remark: &str,
) -> Rect {
    let (focused, name) = title;
    let glyphs = glyphs::of(config);
    let new_row = |width| LineBuilder::new(&config.theme, glyphs, width);
    let style = config.theme.style(Role::Border);
    let (line, inner, inset) = match border {
        BorderStyle::Bare => return airy(area),
        BorderStyle::Boxed => {
            let block = Block::bordered()
                .border_set(glyphs.border)
                .border_style(style);
            let inner = block.inner(area);
            frame.render_widget(block, area);
            // One cell of air left and right.
            let inner = Rect {
                x: inner.x + 1,
                width: inner.width.saturating_sub(2),
                ..inner
            };
            (Rect { height: 1, ..area }, inner, 2)
        }
        BorderStyle::Ruled => {
            let rule = Rect {
                height: area.height.min(1),
                ..area
            };
            let text = glyphs.rule.repeat(usize::from(area.width));
            frame.render_widget(Line::styled(text, style), rule);
            let inner = Rect {
                y: area.y + 1,
                height: area.height.saturating_sub(1),
                ..area
            };
            (rule, airy(inner), 1)
        }
    };
    let room = line.width.saturating_sub(2 * inset);
    let (paint, mark) = if focused {
        (Role::Focus, glyphs.mark)
    } else {
        (Role::Title, "")
    };
    let mut title = new_row(room);
    title
        .text(paint, " ")
        .text(paint, mark)
        .sentence(paint, name);
    title.text(paint, " ");
    let title = title.line();
    let used = u16::try_from(title.width()).unwrap_or(room);
    let at = Rect {
        x: line.x + inset,
        width: used.min(room),
        ..line
    };
    frame.render_widget(title, at);
    let mut right = new_row(room.saturating_sub(used + 2));
    if !remark.is_empty()
        && right.item(
            0,
            &[(Role::Dim, " "), (Role::Dim, remark), (Role::Dim, " ")],
        )
    {
        let right = right.line();
        let width = u16::try_from(right.width()).unwrap_or(0);
        let at = Rect {
            x: (line.x + inset + room).saturating_sub(width),
            width,
            ..line
        };
        frame.render_widget(right, at);
    }
    inner
}

/// Without a box, one cell of air on the right where there is any; each line starts with its own.
fn airy(area: Rect) -> Rect {
    Rect {
        width: area.width - u16::from(area.width >= 40),
        ..area
    }
}

/// Draws lines from the top; what does not fit is left out.
pub(crate) fn write(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    let area = area.intersection(frame.area());
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        // Not a paragraph: that looks through each line twice, to wrap what is cut to its width already.
        frame.buffer_mut().set_line(area.x, y, &line, area.width);
    }
}

/// Lines on the left, and others in the last `cells` of the width.
pub(crate) fn beside(
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
                for span in line.into_iter().flat_map(|line| &line.spans) {
                    row.styled(span.style, &span.content);
                }
            }
            row.line()
        })
        .collect()
}

/// The part of `count` lines that is seen through `room`, from `scroll` on, never past the end.
pub(crate) fn window(count: usize, room: usize, scroll: usize) -> std::ops::Range<usize> {
    let first = scroll.min(count.saturating_sub(room));
    first..count.min(first + room)
}
