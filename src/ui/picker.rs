//! The list to choose from when several jobs match.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::filter::jobs_found;
use super::layout::BorderStyle;
use super::state::Panel;
use super::table::{self, Column};
use super::{View, empty, panel};
use crate::action::Action;
use crate::config::Role::{Dim, Focus, Key, Text};
use crate::sample::JobCandidate;

pub(super) fn draw(
    view: &View<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    candidates: &[JobCandidate],
) {
    let body = empty::ends(view, frame, area);
    let border = if body.height >= 5 && body.width >= 30 {
        BorderStyle::Boxed
    } else {
        BorderStyle::Bare
    };
    let name = format!("choose one of {} jobs", candidates.len());
    let filter = &view.state.filter;
    let found = jobs_found(candidates, filter);
    let remark = if filter.is_set() {
        format!("{} matching `{}`", found.len(), filter.text().trim())
    } else {
        String::new()
    };
    let inner = panel::open(view, frame, body, border, Panel::Verdict, &name, &remark);
    let mut columns = vec![Column::figures("pid", 8)];
    if inner.width >= 60 {
        columns.extend([Column::figures("ranks", 8), Column::figures("workers", 10)]);
    }
    columns.push(Column::words("command", usize::from(inner.width)));
    let mut head = view.row(inner.width);
    head.space(1);
    table::head(&mut head, &columns, "");
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
        let count = |count: usize| (Text, count.to_string());
        let mut cells = vec![(paint, candidate.pid.to_string())];
        if columns.len() > 2 {
            cells.extend([count(candidate.ranks), count(candidate.workers)]);
        }
        cells.push((paint, candidate.command.clone()));
        for (column, (paint, text)) in columns.iter().zip(&cells) {
            column.put(&mut row, *paint, text);
        }
        lines.push(row.line());
    }
    panel::write(frame, inner, lines);
}

/// The filter matches no job.
fn nothing(view: &View<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    row.space(2).text(Dim, "no match");
    if let Some(key) = view.config.keys.keys(Action::Cancel).first() {
        row.item(
            0,
            &[(Dim, "; "), (Key, &key.to_string()), (Dim, " shows all")],
        );
    }
    row.line()
}
