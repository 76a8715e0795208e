//! All that is known of one GPU, and why the rest is unknown.

use super::figures::labelled;
use crate::ui::panel::Content;
use crate::ui::{View, gpu};

/// Cells of the labels.
const LABEL: usize = 6;

pub(in crate::ui) fn content(view: &View<'_>, width: u16) -> Content {
    let gpus = view.gpus();
    let place = view.state.gpu.min(gpus.len().saturating_sub(1));
    let mut lines = gpu::whole(view, place, width);
    let Some(shown) = gpus.get(place) else {
        return Content::new("GPU", &view.span(), lines);
    };
    let now = &shown.now;
    let mut name = format!("GPU {}", now.index);
    if let Some(model) = &now.name {
        name = format!("{name}  {model}");
    }
    if gpus.len() > 1 {
        name = format!("{name}  ({} of {})", place + 1, gpus.len());
    }
    if let Some(clock) = now.mem_clock_mhz {
        let text = format!("clock {clock:.0} MHz");
        lines.extend(labelled(view, width, LABEL, "mem", &text));
    }
    if let Some(uuid) = &now.uuid {
        lines.extend(labelled(view, width, LABEL, "id", uuid));
    }
    let job = match now.visible_to_job {
        Some(true) => "may use it",
        Some(false) => "may not use it: excluded by its environment",
        None => "n/a: its environment cannot be read",
    };
    lines.extend(labelled(view, width, LABEL, "job", job));
    Content::new(&name, &view.span(), lines)
}
