//! The device that the job says it computes on, where the driver shows none of that name: another maker's, or
//! a simulated one, which the screen says plainly.

use ratatui::text::Line;

use crate::config::Role::{Compute, Dim, Text};
use crate::model::rates::DeviceRates;
use crate::ui::layout::BorderStyle;
use crate::ui::layout::count;
use crate::ui::{View, format};

/// Of the rank that is shown. `None` where it tells of no device, or of one that is on screen anyway.
fn device<'a>(view: &View<'a>) -> Option<&'a DeviceRates> {
    let device = view.rank()?.device.as_ref()?;
    let name = device.name.as_deref()?;
    let shown = |name: &str| {
        let mut gpus = view.gpus().iter();
        gpus.any(|gpu| gpu.now.name.as_deref() == Some(name))
    };
    (!shown(name)).then_some(device)
}

/// `width` is that of the panel.
pub(super) fn wanted(view: &View<'_>, width: u16) -> u16 {
    let Some(device) = device(view) else { return 0 };
    let notice = device.notice.as_deref().unwrap_or_default();
    1 + count(format::wrap(notice, usize::from(width)).len())
}

/// `device  simulated   busy 93 %   copy 2 %`, and below it what the job has to say of it.
pub(super) fn reported(view: &View<'_>, width: u16, border: BorderStyle) -> Vec<Line<'static>> {
    let Some(device) = device(view) else {
        return Vec::new();
    };
    let indent = usize::from(border != BorderStyle::Boxed);
    let mut row = view.row(width);
    row.space(indent).text(Dim, "device  ");
    row.text(Text, device.name.as_deref().unwrap_or_default());
    let (busy, copy) = (
        format::percent(device.busy),
        format::percent(device.copying),
    );
    row.item(3, &[(Dim, "busy "), (Compute, &busy)]);
    row.item(3, &[(Dim, "copy "), (Text, &copy)]);
    let mut lines = vec![row.line()];
    let notice = device.notice.as_deref().unwrap_or_default();
    for text in format::wrap(notice, usize::from(width).saturating_sub(indent)) {
        let mut row = view.row(width);
        row.space(indent).sentence(Dim, &text);
        lines.push(row.line());
    }
    lines
}
