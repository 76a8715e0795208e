//! One GPU in a line, and many in one.

use ratatui::text::Line;

use super::errors;
use crate::config::Role::{self, Compute, Dim, Text, Trouble, Unknown};
use crate::model::rates::GpuRates;
use crate::ui::history::{self, spark};
use crate::ui::layout::BorderStyle;
use crate::ui::line_builder::LineBuilder;
use crate::ui::{View, axis, format};
use crate::units::Share;

pub(super) fn full_name(gpu: &GpuRates) -> &str {
    gpu.now.name.as_deref().unwrap_or("")
}

/// `H200` of `NVIDIA H200`.
fn short_name(gpu: &GpuRates) -> &str {
    let name = full_name(gpu);
    name.strip_prefix("NVIDIA ").unwrap_or(name)
}

/// Several GPUs in one line: mean, lowest and highest, and how many are in trouble.
pub(super) fn all_of(view: &View<'_>, gpus: &[GpuRates], width: u16) -> Line<'static> {
    let mut row = view.row(width);
    row.text(Dim, &format!(" {} GPUs  ", gpus.len()));
    let job = gpus
        .iter()
        .filter(|gpu| gpu.now.visible_to_job != Some(false));
    let known: Vec<f64> = job.filter_map(|gpu| gpu.util_percent).collect();
    if known.is_empty() {
        row.text(Unknown, format::UNKNOWN);
    } else {
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let low = known.iter().copied().fold(f64::INFINITY, f64::min);
        let high = known.iter().copied().fold(0.0, f64::max);
        row.text(Dim, "mean ")
            .text(Compute, &format::whole_percent(mean));
        let ends = format!("{low:.0} to {high:.0} %");
        if high - low >= 1.0 {
            row.item(2, &[(Dim, "from "), (Text, &ends)]);
        }
        if let Some(idle) = view.verdict.and_then(|verdict| verdict.gpu_idle) {
            row.item(2, &[(Dim, "idle "), (Text, &idle.to_string())]);
        }
    }
    troubles(&mut row, gpus);
    row.line()
}

/// How many of them are in trouble, and the worst of it.
pub(super) fn troubles(row: &mut LineBuilder<'_>, gpus: &[GpuRates]) {
    let silent = gpus.iter();
    let silent = silent.filter(|gpu| gpu.now.gap.is_some() && gpu.now.instances.is_empty());
    let silent = silent.count();
    let failing = gpus.iter().filter_map(errors::in_short);
    let held = gpus.iter().filter_map(errors::held_back).count();
    if silent > 0 {
        row.item(2, &[(Trouble, &format!("{silent} n/a"))]);
    }
    for what in failing.take(2) {
        row.item(2, &[(Trouble, &what)]);
    }
    if held > 0 {
        row.item(2, &[(Trouble, &format!("{held} held back"))]);
    }
}

/// ` 0 H200   37 %  sparkline  power cap  idle 60 %  SMs 31 %  21.4 / 140 GiB  231 W  54 C`
pub(super) fn one_line(
    view: &View<'_>,
    place: usize,
    gpu: &GpuRates,
    width: u16,
    border: BorderStyle,
) -> Line<'static> {
    let now = &gpu.now;
    let mut row = view.row(width);
    if border == BorderStyle::Bare {
        row.space(1).text(Dim, "GPU");
    }
    if border != BorderStyle::Boxed {
        row.space(1);
    }
    let theirs = now.visible_to_job == Some(false);
    let label = if theirs { Dim } else { Text };
    row.stale(gpu.stale_seconds.is_some());
    row.right(label, &now.index.to_string(), 2).space(1);
    let names = view.gpus().iter().map(|gpu| format::width(short_name(gpu)));
    row.padded(Dim, short_name(gpu), names.max().unwrap_or(0).min(12));
    if let Some(gap) = &now.gap {
        row.space(1).text(Trouble, "n/a  ").sentence(Text, gap);
        if let Some(what) = errors::in_short(gpu) {
            row.item(2, &[(Trouble, &what)]);
        }
        return row.line();
    }
    row.right(
        if theirs { Dim } else { Compute },
        &percent(gpu.util_percent),
        6,
    )
    .space(2);
    let items = items(view, place, gpu, theirs);
    let size = |item: &[(Role, String)]| 2 + item.iter().map(|(_, text)| text.len()).sum::<usize>();
    let mut cells = row.left().saturating_sub(6);
    let mut shown = 0;
    for item in &items {
        if size(item) > cells {
            break;
        }
        cells -= size(item);
        shown += 1;
    }
    let cells = (cells + 6).min(60);
    past(
        view,
        place,
        if theirs { Dim } else { Compute },
        cells,
        &mut row,
    );
    for item in items.iter().take(shown) {
        let pieces: Vec<_> = item
            .iter()
            .map(|(paint, text)| (*paint, text.as_str()))
            .collect();
        row.item(2, &pieces);
    }
    row.line()
}

/// The utilisation over time, in so many cells.
pub(super) fn past(
    view: &View<'_>,
    place: usize,
    paint: Role,
    cells: usize,
    row: &mut LineBuilder<'_>,
) {
    let values = history::past(view, cells, |point| history::gpu_util(point, place));
    spark(row, paint, &values, cells, axis::cursor(view, cells));
}

/// The most telling first: what no longer fits is left out, the past takes what is left.
fn items(view: &View<'_>, place: usize, gpu: &GpuRates, theirs: bool) -> Vec<Vec<(Role, String)>> {
    let now = &gpu.now;
    let idle = idle(view, gpu, place).map(|idle| format!("{idle:>5}"));
    let active = gpu.counters.sm_active.map(|share| format!("{share:>5}"));
    let memory = format::of_memory(now.mem_used, now.mem_total);
    let watts = now.power_watts.map(|watts| format!("{watts:>3.0} W"));
    let heat = now.temperature_c.map(|degrees| format!("{degrees:>3.0} C"));
    let age = gpu
        .stale_seconds
        .map(|age| format!("{} old", format::span(age)));
    let mut items: Vec<Vec<(Role, String)>> = Vec::new();
    items.extend(age.map(|age| vec![(Text, age)]));
    items.extend(errors::in_short(gpu).map(|what| vec![(Trouble, what)]));
    items.extend(errors::held_back(gpu).map(|why| vec![(Trouble, why)]));
    items.extend(idle.map(|idle| vec![(Dim, "idle ".to_owned()), (Text, idle)]));
    items.extend(active.map(|active| vec![(Dim, "SMs ".to_owned()), (Text, active)]));
    items.push(vec![(Text, format!("{memory:>14}"))]);
    items.extend(watts.map(|watts| vec![(Text, watts)]));
    items.extend(heat.map(|heat| vec![(Text, heat)]));
    items.extend(theirs.then(|| vec![(Dim, "not the job's".to_owned())]));
    items
}

/// Share of time without a kernel: from the driver's history, for the judged GPU from the verdict.
pub(super) fn idle(view: &View<'_>, gpu: &GpuRates, place: usize) -> Option<Share> {
    let judged = view
        .verdict
        .filter(|_| place == 0 && view.gpus().len() == 1);
    judged
        .and_then(|verdict| verdict.gpu_idle)
        .or_else(|| gpu.busy.map(Share::complement))
}

pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| format::UNKNOWN.to_owned(), format::whole_percent)
}
