//! One GPU in a line, and all GPUs in one line.

use ratatui::text::Line;

use super::errors;
use crate::config::Role::{self, Compute, Dim, Text, Trouble, Unknown};
use crate::model::rates::GpuRates;
use crate::ui::history::{self, spark};
use crate::ui::layout::BorderStyle;
use crate::ui::line_builder::LineBuilder;
use crate::ui::{View, axis, format};
use crate::units::{Share, mean, median, sorted};

pub(super) fn full_name(gpu: &GpuRates) -> &str {
    gpu.now.name.as_deref().unwrap_or("")
}

/// Returns `H200` for `NVIDIA H200`.
fn short_name(gpu: &GpuRates) -> &str {
    let name = full_name(gpu);
    name.strip_prefix("NVIDIA ").unwrap_or(name)
}

/// Draws several GPUs in one line: the utilisation of each, the mean, lowest and highest, and how many have problems.
pub(super) fn all_of(view: &View<'_>, gpus: &[GpuRates], width: u16) -> Line<'static> {
    let mut row = view.row(width);
    row.text(Dim, &format!(" {} GPUs  ", gpus.len()));
    let lags = lags(gpus);
    for gpu in gpus.iter().filter(|_| width >= 60) {
        let (paint, sign) = match gpu.util_percent {
            Some(util) => {
                let paint = if lags(gpu) { Trouble } else { Compute };
                (paint, row.glyphs().level(util / 100.0))
            }
            None => (Trouble, row.glyphs().sign(Trouble)),
        };
        row.text(paint, sign);
    }
    row.space(if width >= 60 { 2 } else { 0 });
    let job = gpus
        .iter()
        .filter(|gpu| gpu.now.visible_to_job != Some(false));
    let known = sorted(job.filter_map(|gpu| gpu.util_percent));
    if let (Some(mean), Some(low), Some(high)) =
        (mean(known.iter().copied()), known.first(), known.last())
    {
        row.text(Dim, "mean ")
            .text(Compute, &format::whole_percent(Some(mean)));
        let ends = format!("{low:.0} to {high:.0} %");
        if high - low >= 1.0 {
            row.figure(2, "from ", &ends);
        }
    } else {
        row.text(Unknown, format::UNKNOWN);
    }
    add_problems(&mut row, gpus);
    row.line()
}

/// Adds how many GPUs have problems, and the worst of those.
pub(super) fn add_problems(row: &mut LineBuilder<'_>, gpus: &[GpuRates]) {
    let silent = gpus.iter();
    let silent = silent.filter(|gpu| gpu.now.gap.is_some() && gpu.now.instances.is_empty());
    let silent = silent.count();
    let failing = gpus.iter().filter_map(errors::short_error);
    let held = gpus.iter().filter_map(errors::throttle_reason).count();
    if silent > 0 {
        row.item(2, &[(Trouble, &format!("{silent} n/a"))]);
    }
    for what in failing.take(2) {
        row.item(2, &[(Trouble, &what)]);
    }
    if held > 0 {
        row.item(2, &[(Trouble, &format!("{held} throttled"))]);
    }
}

/// Draws ` 0 H200   37 %  sparkline  power cap  idle 60 %  SMs 31 %  21.4 / 140 GiB  231 W  54 C`.
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
    row.space(border.indent());
    let not_the_jobs = now.visible_to_job == Some(false);
    let label = if not_the_jobs { Dim } else { Text };
    row.stale(gpu.stale_seconds.is_some());
    row.right(label, &now.index.to_string(), 2).space(1);
    let names = view.gpus().iter().map(|gpu| format::width(short_name(gpu)));
    row.padded(Dim, short_name(gpu), names.max().unwrap_or(0).min(12));
    if let Some(gap) = &now.gap {
        row.space(1).text(Trouble, "n/a  ").sentence(Text, gap);
        if let Some(what) = errors::short_error(gpu) {
            row.item(2, &[(Trouble, &what)]);
        }
        return row.line();
    }
    let paint = match not_the_jobs {
        true => Dim,
        false if lags(view.gpus())(gpu) => Trouble,
        false => Compute,
    };
    row.right(paint, &format::whole_percent(gpu.util_percent), 6)
        .space(2);
    let items = items(view, place, gpu, not_the_jobs);
    let mut cells = row.left().saturating_sub(6);
    let mut shown = 0;
    for (label, (_, text)) in &items {
        let Some(left) = cells.checked_sub(2 + label.len() + text.len()) else {
            break;
        };
        cells = left;
        shown += 1;
    }
    let cells = (cells + 6).min(60);
    let paint = if not_the_jobs { Dim } else { Compute };
    past(view, place, paint, cells, &mut row);
    for (label, (paint, text)) in &items[..shown] {
        row.item(2, &[(Dim, label), (*paint, text)]);
    }
    row.line()
}

/// Draws the utilisation over time in this many cells.
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

/// Returns the items of a line with their labels, the most important first. Those that do not fit are left out; the graph takes the rest.
fn items(
    view: &View<'_>,
    place: usize,
    gpu: &GpuRates,
    not_the_jobs: bool,
) -> Vec<(&'static str, (Role, String))> {
    let now = &gpu.now;
    let idle = idle(view, gpu, place).map(|idle| format!("{idle:>5}"));
    let active = gpu.counters.sm_active.map(|share| format!("{share:>5}"));
    let memory = format::of_memory(now.mem_used, now.mem_total);
    let watts = now.power_watts.map(|watts| format!("{watts:>3.0} W"));
    let heat = now.temperature_c.map(|degrees| format!("{degrees:>3.0} C"));
    let age = gpu
        .stale_seconds
        .map(|age| format!("{} old", format::span(age)));
    let items = [
        ("", Text, age),
        ("", Trouble, errors::short_error(gpu)),
        ("", Trouble, errors::throttle_reason(gpu)),
        ("idle ", Text, idle),
        ("SMs ", Text, active),
        ("", Text, Some(format!("{memory:>14}"))),
        ("", Text, watts),
        ("", Text, heat),
        ("", Dim, not_the_jobs.then(|| "not the job's".to_owned())),
    ];
    let known = |(label, paint, text)| Some((label, (paint, text?)));
    items.into_iter().filter_map(known).collect()
}

/// Returns the share of time without a kernel: from the driver's history; from the verdict for the GPU that it judges.
pub(super) fn idle(view: &View<'_>, gpu: &GpuRates, place: usize) -> Option<Share> {
    let judged = view
        .verdict
        .filter(|_| place == 0 && view.gpus().len() == 1);
    judged
        .and_then(|verdict| verdict.gpu_idle)
        .or_else(|| gpu.busy.map(Share::complement))
}

/// Returns a function that says whether a GPU lags: the job uses it less than half as much as the median of its GPUs.
pub(super) fn lags(gpus: &[GpuRates]) -> impl Fn(&GpuRates) -> bool + use<> {
    let used = |gpu: &GpuRates| {
        gpu.now
            .users
            .as_ref()
            .is_some_and(|users| !users.is_empty())
    };
    let of_job = gpus.iter().filter(|gpu| used(gpu));
    let median = median(of_job.filter_map(|gpu| gpu.util_percent));
    move |gpu| {
        let both = gpu.util_percent.zip(median).filter(|_| used(gpu));
        both.is_some_and(|(busy, median)| median >= 10.0 && 2.0 * busy < median)
    }
}
