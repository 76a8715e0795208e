//! The job's processes as a tree on the whole screen: ranks, loaders, workers, threads, and other processes of the job.
//!
//! Draws the lines; their order comes from `branch`.

mod branch;
pub(super) mod state;
mod table;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::{View, detail, format, layout, panel};
use crate::config::Role::Dim;
use branch::{Branch, build};
use state::{Node, Toggle};
use table::Table;

const NOTHING: &str = "no information about the job's processes yet";

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect) {
    let body = detail::draw_frame(view, frame, area);
    let shown = shown(view);
    let border = layout::border(area);
    let remark = remark(view, &shown);
    let inner = panel::open(view, frame, body, border, "processes", &remark);
    let table = Table::new(view, &shown, inner.width);
    let mut lines = vec![table.head()];
    if shown.is_empty() {
        lines.push(if view.state.tree.filter.is_set() {
            view.no_match(inner.width, 2)
        } else {
            view.row(inner.width).space(2).text(Dim, NOTHING).line()
        });
    }
    let room = usize::from(inner.height).saturating_sub(lines.len());
    let nodes = shown.iter().map(|branch| branch.node);
    let marked = view.state.tree.at(nodes);
    // The marked line stays visible, with its neighbours on either side.
    let seen = panel::window(shown.len(), room, marked.saturating_sub(room / 2));
    lines.extend(seen.map(|place| table.line(&shown[place], place == marked)));
    panel::write(frame, inner, lines);
}

/// Returns every line that can be marked, with the effect of choosing it.
pub(super) fn lines(view: &View<'_>) -> Vec<(Node, Option<Toggle>)> {
    let shown = shown(view).into_iter();
    shown.map(|branch| (branch.node, branch.toggle)).collect()
}

/// Returns every line that is not folded, from the top.
fn shown(view: &View<'_>) -> Vec<Branch> {
    let mut shown = Vec::new();
    if let Some(root) = build(view)
        && !(view.state.tree.filter.is_set() && root.below.is_empty())
    {
        flatten(root, "", None, view.glyphs().branches, &mut shown);
    }
    shown
}

/// Turns a branch into lines. `above` is the guide before the branch and before everything below it. `last` is whether
/// the branch is the last of its siblings; `None` = it is the root.
fn flatten(
    mut branch: Branch,
    above: &str,
    last: Option<bool>,
    signs: [&'static str; 3],
    shown: &mut Vec<Branch>,
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
    branch.guides = format!("{above}{own}");
    shown.push(branch);
    let (above, count) = (format!("{above}{deeper}"), below.len());
    for (place, branch) in below.into_iter().enumerate() {
        flatten(branch, &above, Some(place + 1 == count), signs, shown);
    }
}

/// Returns the remark beside the panel's name.
fn remark(view: &View<'_>, shown: &[Branch]) -> String {
    let figures = shown.iter().filter_map(|branch| branch.figures?.seconds);
    let span = figures
        .reduce(f64::max)
        .map(|seconds| format!("last {}", format::span(seconds)));
    let filter = &view.state.tree.filter;
    let filter = filter
        .is_set()
        .then(|| format!("with `{}`", filter.text.trim()));
    let parts: Vec<String> = filter.into_iter().chain(span).collect();
    parts.join("  ")
}
