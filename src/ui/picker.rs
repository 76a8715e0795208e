//! Several jobs could be meant: a list to choose from.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::filter::jobs_found;
use super::layout::Chrome;
use super::state::Panel;
use super::{View, empty, panel};
use crate::action::Action;
use crate::config::Paint::{Dim, Focus, Key, Text};
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
    let filter = &view.state.filter;
    let found = jobs_found(candidates, filter);
    let remark = if filter.is_set() {
        format!("{} with `{}`", found.len(), filter.text().trim())
    } else {
        String::new()
    };
    let inner = panel::open(view, frame, body, chrome, Panel::Verdict, &name, &remark);
    let wide = inner.width >= 60;
    let mut head = view.row(inner.width);
    head.right(Dim, "pid", 9);
    if wide {
        head.right(Dim, "ranks", 8).right(Dim, "workers", 10);
    }
    head.space(2).text(Dim, "command");
    let mut lines = vec![head.line()];
    let room = usize::from(inner.height).saturating_sub(1);
    let picked = view.state.picked.min(found.len().saturating_sub(1));
    // The marked line stays in sight.
    let shown = panel::window(
        found.len(),
        room,
        picked.saturating_sub(room.saturating_sub(1)),
    );
    if found.is_empty() {
        lines.push(nothing(view, inner.width));
    }
    for (place, candidate) in found.iter().enumerate().take(shown.end).skip(shown.start) {
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

/// The filter finds no job.
fn nothing(view: &View<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    row.space(2).text(Dim, "no job has these words");
    if let Some(key) = view.config.keys.keys(Action::Cancel).first() {
        row.item(
            0,
            &[(Dim, "; "), (Key, &key.to_string()), (Dim, " shows all")],
        );
    }
    row.line()
}
