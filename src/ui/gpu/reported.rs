//! The device that the job reports to compute on, if the driver lists none of that name: one of another maker, or a
//! simulated one, which is labelled as such.

use ratatui::text::Line;

use crate::config::Role::{Compute, Dim, Text};
use crate::ui::layout::BorderStyle;
use crate::ui::layout::count;
use crate::ui::{View, format, history};

/// Returns its utilisation over the shown time.
pub(super) fn past(view: &View<'_>, cells: usize) -> Vec<Option<f64>> {
    let number = view.rank_number();
    history::past(view, cells, |point| point.rank(number)?.device_busy.get())
}

/// Returns the lines wanted in a panel of this width.
pub(super) fn wanted(view: &View<'_>, width: u16) -> u16 {
    let Some(device) = view.device() else {
        return 0;
    };
    let notice = device.notice.as_deref().unwrap_or_default();
    1 + count(format::wrap(notice, usize::from(width)).len())
}

/// Returns `device  simulated   busy 93 %   copy 2 %`, and below it the job's notice about the device.
pub(super) fn reported(view: &View<'_>, width: u16, border: BorderStyle) -> Vec<Line<'static>> {
    let Some(device) = view.device() else {
        return Vec::new();
    };
    let indent = border.indent();
    let mut row = view.row(width);
    row.space(indent).text(Dim, "device  ");
    row.text(Text, device.name.as_deref().unwrap_or_default());
    let (busy, copy) = (
        format::percent(device.busy),
        format::percent(device.copying),
    );
    row.item(3, &[(Dim, "busy "), (Compute, &busy)]);
    row.figure(3, "copy ", &copy);
    let mut lines = vec![row.line()];
    let notice = device.notice.as_deref().unwrap_or_default();
    lines.extend(view.paragraph(width, indent, (Dim, ""), (Dim, notice)));
    lines
}
