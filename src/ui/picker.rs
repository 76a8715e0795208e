//! Several jobs could be meant: a list to choose from.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::Chrome;
use super::state::Panel;
use super::{View, empty, panel};
use crate::config::Paint::{Dim, Focus, Text};
use crate::sample::JobCandidate;

pub(super) fn draw(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    candidates: &[JobCandidate],
) {
    let body = empty::ends(view, frame, area);
    let chrome = if body.height >= 5 && body.width >= 30 {
        Chrome::Boxed
    } else {
        Chrome::Bare
    };
    let name = format!("which of {} jobs?", candidates.len());
    let inner = panel::open(view, frame, body, chrome, Panel::Verdict, &name, "");
    let wide = inner.width >= 60;
    let mut head = view.row(inner.width);
    head.right(Dim, "pid", 9);
    if wide {
        head.right(Dim, "ranks", 8).right(Dim, "workers", 10);
    }
    head.space(2).text(Dim, "command");
    let mut lines = vec![head.line()];
    let room = usize::from(inner.height).saturating_sub(1);
    let picked = view.state.picked.min(candidates.len().saturating_sub(1));
    // The marked line stays in sight.
    let shown = panel::window(
        candidates.len(),
        room,
        picked.saturating_sub(room.saturating_sub(1)),
    );
    for (place, candidate) in candidates
        .iter()
        .enumerate()
        .take(shown.end)
        .skip(shown.start)
    {
        let marked = place == picked;
        let mut row = view.row(inner.width);
        let paint = if marked { Focus } else { Text };
        row.text(Focus, if marked { view.glyphs().mark } else { " " });
        row.right(paint, &candidate.pid.to_string(), 8);
        if wide {
            row.right(Text, &candidate.ranks.to_string(), 8);
            row.right(Text, &candidate.workers.to_string(), 10);
        }
        row.space(2).text(paint, &candidate.command);
        lines.push(row.line());
    }
    panel::write(frame, inner, lines);
}
