//! The GPUs: a block of lines for one, a line each for several. Above them the device that the job reports, unless it
//! is one of these.
//!
//! While the panel is focused, a single GPU's block also lists what is unknown and why, and of several GPUs the marked
//! one is shown in full if there is room.

mod detail;
mod errors;
mod graphs;
mod grid;
mod line;

use ratatui::text::Line;

use super::history::{self, graph};
use super::layout::{BorderStyle, ROOM_FOR_ONE, count};
use super::panel::{self, Content, Inside};
use super::state::Panel;
use super::{View, format};
use crate::config::Role::{Compute, Dim, Text, Unknown};
use crate::model::rates::GpuRates;
use detail::detail;

/// Most GPUs that are all shown in full.
const MAX_IN_FULL: usize = 4;

pub(super) fn wanted(view: &View<'_>, width: u16) -> u16 {
    let reported = reported_wanted(view, width);
    reported
        + match view.gpus() {
            [] => u16::from(reported == 0),
            [gpu] => count(detail(view, gpu, width, BorderStyle::Boxed).len()),
            many => {
                let lines = |gpu| height(view, gpu, width, false);
                count(many.iter().map(lines).sum())
            }
        }
}

/// Returns the lines wanted with the marked GPU in full.
pub(super) fn wanted_open(view: &View<'_>, width: u16) -> u16 {
    let marked = picked(view).filter(|_| view.gpus().len() > 1);
    let more = marked.and_then(|place| {
        let gpu = view.gpus().get(place)?;
        let lines = |whole| height(view, gpu, width, whole);
        Some(lines(true) - lines(false))
    });
    wanted(view, width).saturating_add(count(more.unwrap_or(0)))
}

/// Returns the lines wanted with every GPU in full; for a single one, the same as otherwise.
pub(super) fn wanted_in_full(view: &View<'_>, width: u16) -> u16 {
    match in_full(view, width, BorderStyle::Boxed) {
        Some(lines) => reported_wanted(view, width).saturating_add(count(lines.len())),
        None => wanted_open(view, width),
    }
}

/// Returns the lines of all GPUs in full. `None` for a single GPU, or if they are too many for any screen.
fn in_full(view: &View<'_>, width: u16, border: BorderStyle) -> Option<Vec<Line<'static>>> {
    let gpus = view.gpus();
    let blocks = gpus.iter().enumerate();
    let blocks = blocks.flat_map(|gpu| block(view, gpu, width, border, true));
    (2..=MAX_IN_FULL)
        .contains(&gpus.len())
        .then(|| blocks.collect())
}

pub(super) fn content(view: &View<'_>, inside: Inside) -> Content {
    let Inside {
        width,
        height,
        border,
    } = inside;
    let gpus = view.gpus();
    let name = match gpus {
        [gpu] if border == BorderStyle::Boxed => {
            format!("GPU {}  {}", gpu.now.index, line::full_name(gpu))
        }
        [] | [_] => "GPU".to_owned(),
        many => format!("{} GPUs", many.len()),
    };
    let mut reported = reported(view, width, border);
    let room = height.saturating_sub(reported.len());
    let mut end = 0;
    let lines = match gpus {
        [] if !reported.is_empty() => vec![],
        [] => no_gpu(view, width, border),
        [gpu] if room >= 2 => {
            let lines = detail(view, gpu, width, border);
            end = lines.len().saturating_sub(room);
            let shown = panel::window(lines.len(), room, view.scroll_of(Panel::Gpu));
            lines[shown].to_vec()
        }
        many if room == 1 && many.len() > 1 => vec![line::all_of(view, many, width)],
        many => list(view, many, width, border, room),
    };
    reported.extend(lines);
    let left = height.saturating_sub(reported.len());
    let place = view.gpu_place();
    let own = gpus.get(place).filter(|gpu| gpu.util_percent.is_some());
    if let Some(gpu) = own {
        let util = |cells| history::past(view, cells, |point| history::gpu_util(point, place));
        let top = match gpus {
            [_] => "100 %".to_owned(),
            _ => format!("GPU {}", gpu.now.index),
        };
        reported.extend(graph(view, Compute, width, left, (util, &top)));
    } else if view
        .device_alone()
        .is_some_and(|device| device.busy.is_some())
    {
        let number = view.rank_number();
        let busy =
            |cells| history::past(view, cells, |point| point.rank(number)?.device_busy.get());
        reported.extend(graph(view, Compute, width, left, (busy, "100 %")));
    }
    Content::new(&name, &view.span(), reported).scrolls_to(end)
}

/// Returns all that is known of the GPU at this place, below the device that the job reports; without a GPU, the
/// reason. For the page of details.
pub(super) fn whole(view: &View<'_>, place: usize, width: u16) -> Vec<Line<'static>> {
    let reported = reported(view, width, BorderStyle::Boxed);
    let own = match view.gpus().get(place) {
        None if reported.is_empty() => no_gpu(view, width, BorderStyle::Boxed),
        None => vec![],
        Some(gpu) => detail(view, gpu, width, BorderStyle::Boxed),
    };
    panel::stacked([reported, own])
}

/// Returns the place of the marked GPU; `None` while the panel is not focused.
fn picked(view: &View<'_>) -> Option<usize> {
    let last = view.gpus().len().saturating_sub(1);
    (view.state.focus == Panel::Gpu).then_some(view.state.gpu.min(last))
}

/// Returns one line per GPU, as many as fit. If not all GPUs fit, starts with the job's own, or with the one that was
/// scrolled to.
fn list(
    view: &View<'_>,
    gpus: &[GpuRates],
    width: u16,
    border: BorderStyle,
    room: usize,
) -> Vec<Line<'static>> {
    if let Some(lines) = in_full(view, width, border).filter(|lines| lines.len() <= room) {
        return lines;
    }
    let picked_fits = picked(view).filter(|_| room >= usize::from(ROOM_FOR_ONE));
    let blocks: Vec<_> = gpus
        .iter()
        .enumerate()
        .map(|gpu| block(view, gpu, width, border, picked_fits == Some(gpu.0)))
        .collect();
    let all: usize = blocks.iter().map(Vec::len).sum();
    if all <= room {
        return blocks.into_iter().flatten().collect();
    }
    // The grid has less detail per GPU, so a focused panel scrolls through lines instead.
    let indent = border.indent();
    let grid = grid::grid(view, gpus, width, room, indent).filter(|_| picked(view).is_none());
    if let Some(lines) = grid {
        return lines;
    }
    let own = gpus
        .iter()
        .position(|gpu| gpu.now.visible_to_job == Some(true));
    let first = picked(view).filter(|place| *place > 0).or(own).unwrap_or(0);
    // Scrolls only until the remaining blocks just fit.
    let mut last_start = blocks.len();
    let mut below = 0;
    while last_start > 0 && below + blocks[last_start - 1].len() <= room {
        last_start -= 1;
        below += blocks[last_start].len();
    }
    let first = first.min(last_start).min(blocks.len().saturating_sub(1));
    let mut lines = Vec::new();
    let mut shown = 0;
    for block in &blocks[first..] {
        let space = room - lines.len();
        if space == 0 {
            break;
        }
        lines.extend(block.iter().take(space).cloned());
        shown += 1;
    }
    // GPUs above the first line are not counted: the user has scrolled past them.
    let hidden = gpus.len() - first - shown;
    if hidden > 0 && lines.len() > 1 {
        lines.pop();
        // The line that is dropped to make room is a GPU's own, or part of a GPU that stays visible.
        let starts = blocks[first..first + shown].iter();
        let before: usize = starts.take(shown - 1).map(Vec::len).sum();
        let more = hidden + usize::from(before == lines.len());
        let mut row = view.row(width);
        row.text(Dim, &format!("   and {more} more"));
        line::add_problems(&mut row, &gpus[gpus.len() - more..]);
        lines.push(row.line());
    }
    lines
}

/// Returns a GPU's line and the lines of its parts if it is divided, or all of its details if `whole` is set.
fn block(
    view: &View<'_>,
    (place, gpu): (usize, &GpuRates),
    width: u16,
    border: BorderStyle,
    whole: bool,
) -> Vec<Line<'static>> {
    let mut lines = vec![line::one_line(view, place, gpu, width, border)];
    lines.extend(below(view, gpu, width, whole));
    lines
}

/// Returns the lines below a GPU's own.
fn below(view: &View<'_>, gpu: &GpuRates, width: u16, whole: bool) -> Vec<Line<'static>> {
    if whole {
        detail(view, gpu, width, BorderStyle::Ruled)
    } else {
        detail::parts(view, gpu, width)
    }
}

/// Returns the number of lines of a block.
fn height(view: &View<'_>, gpu: &GpuRates, width: u16, whole: bool) -> usize {
    1 + below(view, gpu, width, whole).len()
}

/// Returns the lines wanted for the device that the job reports.
fn reported_wanted(view: &View<'_>, width: u16) -> u16 {
    count(reported(view, width, BorderStyle::Boxed).len())
}

/// Returns `device  simulated   busy 93 %   copy 2 %`, and below it the job's notice about the device, if the driver lists
/// none of that name: it is of another maker, or simulated, which the notice says.
fn reported(view: &View<'_>, width: u16, border: BorderStyle) -> Vec<Line<'static>> {
    let Some(device) = view.device() else {
        return Vec::new();
    };
    let indent = border.indent();
    let mut row = view.row(width);
    row.space(indent).text(Dim, "device  ");
    row.text(Text, device.name.as_deref().unwrap_or_default());
    let [busy, copy] = [device.busy, device.copying].map(format::percent);
    row.item(3, &[(Dim, "busy "), (Compute, &busy)]);
    row.figure(3, "copy ", &copy);
    let mut lines = vec![row.line()];
    let notice = device.notice.as_deref().unwrap_or_default();
    lines.extend(view.paragraph(width, indent, (Dim, ""), (Dim, notice)));
    lines
}

/// Returns the reason why there is no GPU, and what would change that.
fn no_gpu(view: &View<'_>, width: u16, border: BorderStyle) -> Vec<Line<'static>> {
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
