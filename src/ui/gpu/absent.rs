//! No GPU: why, and what would change it.

use ratatui::text::Line;

use crate::config::Paint::{Dim, Text, Unknown};
use crate::ui::layout::Chrome;
use crate::ui::{View, format};

pub(super) fn absent(view: &View<'_>, width: u16, chrome: Chrome) -> Vec<Line<'static>> {
    let gap = view.gap("nvml").or_else(|| view.gap("gpu"));
    let nothing = match view.figures() {
        None => "the first readings are being taken",
        Some(_) => "no GPU seen",
    };
    let why = gap.map_or(nothing, |gap| gap.reason.as_str());
    let mut first = view.row(width);
    if chrome != Chrome::Boxed {
        first.space(1);
    }
    if chrome == Chrome::Bare {
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
