//! The reason why there is no GPU, and what would change that.

use ratatui::text::Line;

use crate::config::Role::{Dim, Text, Unknown};
use crate::ui::View;
use crate::ui::layout::BorderStyle;

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
        lines.extend(view.paragraph(width, 5, (Dim, ""), (Dim, &gap.hint)));
    }
    lines
}
