//! No GPU: why, and what would change it.

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
    if border != BorderStyle::Boxed {
        first.space(1);
    }
    if border == BorderStyle::Bare {
        first.text(Dim, "GPU  ");
    }
    first.text(Unknown, "n/a  ").sentence(Text, why);
    let mut lines = vec![first.line()];
    if let Some(gap) = gap.filter(|gap| !gap.hint.is_empty()) {
        for text in format::wrap(&gap.hint, usize::from(width).saturating_sub(5)) {
            let mut row = view.row(width);
            row.space(5).sentence(Dim, &text);
            lines.push(row.line());
        }
    }
    lines
}
