//! The job's processes as a tree, over all of the room: ranks, loaders, workers, threads, and what else runs for it.
//!
//! Knows how lines stand on screen; who stands below whom is `branch`'s business.

mod branch;
pub(super) mod state;
mod table;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::state::Panel;
use super::{View, detail, format, layout, panel};
use crate::action::Action;
use crate::config::Role::{Dim, Key};
use branch::{Branch, Shown, grow};
use state::{Node, Toggle};
use table::Table;

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    let body = detail::around(view, frame, area);
    let shown = shown(view);
    let border = layout::border(area);
    let remark = remark(view, &shown);
    let inner = panel::open(
        view,
        frame,
        body,
        border,
        Panel::Verdict,
        "processes",
        &remark,
    );
    let table = Table::new(view, &shown, inner.width);
    let mut lines = vec![table.head()];
    if shown.is_empty() {
        lines.push(nothing(view, inner.width));
    }
    let room = usize::from(inner.height).saturating_sub(lines.len());
    let nodes = shown.iter().map(|shown| shown.branch.node);
    let marked = view.state.tree.at(nodes);
    // The mark stays in sight, with those on either side of it.
    let seen = panel::window(shown.len(), room, marked.saturating_sub(room / 2));
    for (place, line) in shown.iter().enumerate().take(seen.end).skip(seen.start) {
        lines.push(table.line(&line.guides, &line.branch, place == marked));
    }
    panel::write(frame, inner, lines);
}

/// Every line that can be marked, with what choosing it does.
pub(super) fn lines(view: &View<'_>) -> Vec<(Node, Option<Toggle>)> {
    let shown = shown(view).into_iter();
    shown
        .map(|shown| (shown.branch.node, shown.branch.toggle))
        .collect()
}

/// Every line that is not folded away, from the top.
fn shown(view: &View<'_>) -> Vec<Shown> {
    let mut shown = Vec::new();
    if let Some(root) = grow(view)
        && !(view.state.tree.filter.is_set() && root.below.is_empty())
    {
        flatten(root, "", None, view.glyphs().branches, &mut shown);
    }
    shown
}

/// Lays a branch out in lines: `above` stands before it and all that is below it. `last` says whether others follow
/// beside it; `None` = it is the root.
fn flatten(
    mut branch: Branch,
    above: &str,
    last: Option<bool>,
    signs: [&'static str; 3],
    shown: &mut Vec<Shown>,
) {
    let [follows, ends, passes] = signs;
    let (own, deeper) = match last {
        None => ("", ""),
        Some(false) => (follows, passes),
        Some(true) => (ends, "  "),
    };
    let below = if branch.open {
        std::mem::take(&mut branch.below)
    } else {
        Vec::new()
    };
    shown.push(Shown {
        guides: format!("{above}{own}"),
        branch,
    });
    let (above, count) = (format!("{above}{deeper}"), below.len());
    for (place, branch) in below.into_iter().enumerate() {
        flatten(branch, &above, Some(place + 1 == count), signs, shown);
    }
}

/// What stands beside the panel's name.
fn remark(view: &View<'_>, shown: &[Shown]) -> String {
    let figures = shown
        .iter()
        .filter_map(|shown| shown.branch.figures?.seconds);
    let span = figures
        .reduce(f64::max)
        .map(|seconds| format!("last {}", format::span(seconds)));
    let filter = &view.state.tree.filter;
    if filter.is_set() {
        return format!(
            "with `{}`  {}",
            filter.text().trim(),
            span.unwrap_or_default()
        );
    }
    span.unwrap_or_default()
}

/// There is no line.
fn nothing(view: &View<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    if !view.state.tree.filter.is_set() {
        row.space(2)
            .text(Dim, "no information about the job's processes yet");
        return row.line();
    }
    row.space(2).text(Dim, "no match");
    if let Some(key) = view.config.keys.keys(Action::Cancel).first() {
        row.item(
            0,
            &[(Dim, "; "), (Key, &key.to_string()), (Dim, " shows all")],
        );
    }
    row.line()
}
