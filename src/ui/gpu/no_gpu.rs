//! The reason why there is no GPU, and what would change that.

use ratatui::text::Line;

use crate::config::Role::{Dim, Text, Unknown};
use crate::ui::layout::BorderStyle;
use crate::ui::{View, format};

pub(super) fn no_gpu(view: &View<'_>, width: u16, border: BorderStyle) -> Vec<Line<'static>> {
    let gap = view.gap("nvml").or_else(|| view.gap("gpu"));
    let nothing = match view.figures() {
        None => "collecting the first samples",
        Some(_) => "no GPU seen",
    };
    let why = gap.map_or(nothing, |gap| gap.reason.as_str());
    let mut first = view.row(width);
    first.space(border.indent());
    if border == BorderStyle::Bare {
        first.text(Dim, "GPU  ");
    }
    first.text(Unknown, "n/a  ").sentence(Text, why);
    let mut lines = vec![first.line()];
    if let Some(gap) = gap.filter(|gap| !gap.hint.is_empty()) {
        for text in format::wrap(&gap.hint, usize::from(width).saturating_sub(5)) {
            lines.push(view.row(width).space(5).sentence(Dim, &text).line());
        }
    }
    lines
}
