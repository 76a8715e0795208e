//! One GPU in full: one line per subject, the most useful first, as the panel may cut off the last lines.

use std::collections::BTreeMap;

use ratatui::text::Line;

use super::{errors, graphs};
use crate::config::Role::{Compute, Dim, Text, Trouble, Unknown};
use crate::model::rates::GpuRates;
use crate::sample::{GpuInstance, GpuProcess, ProcessPlace};
use crate::ui::layout::BorderStyle;
use crate::ui::line_builder::LineBuilder;
use crate::ui::state::Panel;
use crate::ui::{View, format};
use crate::units::{Bytes, BytesPerSecond, Share, counted};

/// Most processes that are listed.
const PROCESSES: usize = 6;
/// Cells of the label at the start of a line.
const LABEL: usize = 6;

/// Returns everything that is known of a GPU, and if the panel is focused, why the rest is unknown.
pub(super) fn detail(
    view: &View<'_>,
    gpu: &GpuRates,
    width: u16,
    border: BorderStyle,
) -> Vec<Line<'static>> {
    let bare = || {
        let mut row = view.row(width);
        row.space(border.indent());
        row.stale(gpu.stale_seconds.is_some());
        row
    };
    let start = |label: &str| {
        let mut row = bare();
        row.padded(Dim, label, LABEL);
        row
    };
    let errors = errors::errors(gpu);
    let errors = (!errors.is_empty()).then(|| {
        let mut row = start("error");
        row.sentence(Trouble, &errors.join(", "));
        row.line()
    });
    let mut lines = vec![graphs::util(view, gpu, start("util"))];
    lines.extend(errors);
    lines.extend(activity(view, gpu, start));
    lines.push(memory(gpu, start("mem")));
    lines.push(power(view, gpu, start("power")));
    lines.push(clock(gpu, start("clock")));
    lines.extend(bus(view, gpu, start("bus")));
    lines.extend(parts(view, gpu, width));
    let seen = gpu.now.processes.iter().flatten();
    let seen = seen.filter(|process| process.place != ProcessPlace::Outside);
    lines.extend(
        seen.take(PROCESSES)
            .map(|process| process_line(gpu, process, bare())),
    );
    lines.extend(outside(gpu, bare()));
    if view.state.focus == Panel::Gpu {
        lines.extend(health(gpu, start("state")));
        lines.extend(missing(gpu, width, start));
        lines.extend(gpu.driver_time.map(|share| {
            let mut row = start("cost");
            let cost = format!("{:.1} ms a second in the driver", 1000.0 * share.0);
            row.text(Text, &cost);
            row.line()
        }));
    }
    lines
}

/// Returns the activity from the counters, or the estimate that replaces them; nothing if there is neither.
fn activity<'a>(
    view: &View<'_>,
    gpu: &GpuRates,
    start: impl Fn(&str) -> LineBuilder<'a>,
) -> Vec<Line<'static>> {
    if gpu.counters.sm_active.is_some() {
        return graphs::counters(view, gpu, start);
    }
    let guess = gpu.load_estimate.map(|guess| {
        let mut row = start("load");
        row.right(Compute, &format!("~{guess}"), 5);
        row.item(2, &[(Dim, "an estimate: utilisation x power")]);
        row.line()
    });
    guess.into_iter().collect()
}

fn memory(gpu: &GpuRates, mut row: LineBuilder<'_>) -> Line<'static> {
    let now = &gpu.now;
    row.text(Text, &format::of_memory(now.mem_used, now.mem_total));
    let traffic = format::whole_percent(now.mem_util_percent);
    let of = now.mem_util_percent.map_or("", |_| " of the time");
    row.item(3, &[(Dim, "active "), (Text, &traffic), (Dim, of)]);
    if let Some(reserved) = now.mem_reserved.filter(|reserved| reserved.0 > 0) {
        row.figure(3, "reserved ", &reserved.to_string());
    }
    row.line()
}

fn power(view: &View<'_>, gpu: &GpuRates, mut row: LineBuilder<'_>) -> Line<'static> {
    let now = &gpu.now;
    let watts = |value: Option<f64>| format::known(value.map(|watts| format!("{watts:.0}")));
    let of = match (now.power_watts, now.power_limit_watts) {
        (None, None) => format::UNKNOWN.to_owned(),
        (power, limit) => format!("{} / {} W", watts(power), watts(limit)),
    };
    row.text(Text, &of);
    match now.temperature_c {
        Some(degrees) => row.item(3, &[(Text, &format!("{degrees:.0} C"))]),
        None => row.figure(3, "temperature ", format::UNKNOWN),
    };
    if let Some(age) = gpu.stale_seconds {
        row.item(3, &[(Text, &format!("{} old", format::span(age)))]);
    }
    if let Some(watts) = now.power_instant_watts {
        row.figure(3, "now ", &format!("{watts:.0} W"));
    }
    if let Some(heat) = now.mem_temperature_c {
        row.figure(3, "memory ", &format!("{heat:.0} C"));
    }
    if let Some(joules) = gpu.energy_joules {
        row.figure(3, "used ", &format!("{:.1} kJ", joules / 1000.0));
    }
    graphs::power(view, gpu, &mut row);
    row.line()
}

fn clock(gpu: &GpuRates, mut row: LineBuilder<'_>) -> Line<'static> {
    let now = &gpu.now;
    let sm = format::known(now.sm_clock_mhz.map(|mhz| format!("{mhz:.0} MHz")));
    row.text(Text, &sm);
    let held = match errors::throttle_reason(gpu) {
        _ if now.throttle.is_none() => (Unknown, "throttled: n/a".to_owned()),
        None => (Text, "not throttled".to_owned()),
        Some(reasons) => (Trouble, format!("throttled: {reasons}")),
    };
    row.text(Dim, ", ").sentence(held.0, &held.1);
    if let Some(gap) = now.gap.as_ref().filter(|_| gpu.util_percent.is_some()) {
        row.item(3, &[(Trouble, gap)]);
    }
    row.line()
}

/// Returns the link to the host and the traffic over it and to other GPUs; `None` if none of it is known.
fn bus(view: &View<'_>, gpu: &GpuRates, mut row: LineBuilder<'_>) -> Option<Line<'static>> {
    let link = gpu.now.health.and_then(|health| health.link);
    if link.is_none() && gpu.pcie_rx.is_none() {
        return None;
    }
    if let Some(link) = link {
        let slower = link.max_generation.filter(|most| *most > link.generation);
        let of = slower.map_or_else(String::new, |most| format!(" of {most}"));
        let narrower = link.max_width.filter(|most| *most > link.width);
        let lanes = narrower.map_or_else(String::new, |most| format!(" of {most}"));
        let text = format!("PCIe {}{of} x{}{lanes}", link.generation, link.width);
        row.text(Text, &text);
    }
    let rate = |rate: Option<BytesPerSecond>| rate.map(|rate| rate.to_string());
    for (label, figure) in [("in ", rate(gpu.pcie_rx)), ("out ", rate(gpu.pcie_tx))] {
        if let Some(figure) = figure {
            row.figure(2, label, &figure);
        }
    }
    if let (Some(received), Some(sent)) = (rate(gpu.nvlink_rx), rate(gpu.nvlink_tx)) {
        let parts = [
            (Dim, "NVLink in "),
            (Text, &received),
            (Dim, "  out "),
            (Text, &sent),
        ];
        row.item(2, &parts);
    }
    if let Some(age) = gpu.pcie_age.filter(|age| *age >= 2.0) {
        row.item(2, &[(Dim, &format!("{} ago", format::span(age)))]);
    }
    graphs::received(view, gpu, &mut row);
    Some(row.line())
}

/// Returns a line for each part of a divided GPU.
pub(super) fn parts(view: &View<'_>, gpu: &GpuRates, width: u16) -> Vec<Line<'static>> {
    let busy = gpu.parts.iter().copied().chain(std::iter::repeat(None));
    let parts = gpu.now.instances.iter().zip(busy);
    parts
        .map(|(part, busy)| part_line(part, busy, view.row(width)))
        .collect()
}

/// Formats a part: `   MIG 5  busy 80 %  SMs 60 %  6 / 40 GiB  2 processes`.
fn part_line(part: &GpuInstance, busy: Option<Share>, mut row: LineBuilder<'_>) -> Line<'static> {
    let number = format::known(part.gpu_instance.map(|number| format!("{number:>2}")));
    row.text(Dim, "   MIG ").text(Text, &number);
    row.item(
        2,
        &[
            (Dim, "busy "),
            (Compute, &format!("{:>5}", format::percent(busy))),
        ],
    );
    let active = part.counters.and_then(|counters| counters.sm_active);
    if let Some(active) = active {
        row.figure(2, "SMs ", &format!("{:>5}", active.to_string()));
    }
    let memory = format::of_memory(part.mem_used, part.mem_total);
    row.item(2, &[(Text, &memory)]);
    let processes = part.processes.as_ref().map(Vec::len);
    if let Some(count) = processes.filter(|count| *count > 0) {
        row.item(2, &[(Text, &counted(count, "process"))]);
    }
    if let Some(gap) = &part.gap {
        row.item(2, &[(Unknown, gap)]);
    }
    row.line()
}

/// Formats a process, with the PID from the driver.
fn process_line(gpu: &GpuRates, process: &GpuProcess, mut row: LineBuilder<'_>) -> Line<'static> {
    /// Seconds up to which a sample counts as current.
    const FRESH: f64 = 2.0;
    let memory = format::known(process.mem);
    row.text(Dim, "  pid ");
    row.right(Text, &process.pid.to_string(), 7);
    row.space(2).right(Text, &memory, 8).space(2);
    row.text(Dim, "SM ")
        .right(Text, &format::whole_percent(process.sm_percent), 5);
    let age = gpu.now.read_at.zip(process.sm_at);
    let age = age.map(|(now, at)| now.since_start.saturating_sub(at).as_secs_f64());
    if let Some(age) = age.filter(|age| *age >= FRESH) {
        row.item(2, &[(Dim, &format!("{} ago", format::span(age)))]);
    }
    row.line()
}

/// Formats the processes outside this container and the memory they hold.
fn outside(gpu: &GpuRates, mut row: LineBuilder<'_>) -> Option<Line<'static>> {
    let others = gpu.now.processes.iter().flatten();
    let others: Vec<_> = others
        .filter(|process| process.place == ProcessPlace::Outside)
        .collect();
    if others.is_empty() {
        return None;
    }
    let known: Option<u64> = others.iter().map(|process| Some(process.mem?.0)).sum();
    let memory = format::known(known.map(|sum| Bytes(sum).to_string()));
    let what = counted(others.len(), "process");
    row.text(Dim, "  outside this container: ");
    row.text(Text, &format!("{what}, {memory}"));
    Some(row.line())
}

/// Formats memory errors, replaced memory, whether the driver stays loaded, and the load of encoder and decoder.
fn health(gpu: &GpuRates, mut row: LineBuilder<'_>) -> Option<Line<'static>> {
    let health = gpu.now.health?;
    let count = |count: Option<u64>| format::known(count);
    row.text(Dim, "ECC ");
    let (mended, not) = (count(health.ecc_corrected), count(health.ecc_uncorrected));
    row.text(Text, &format!("{mended} corrected, {not} uncorrected"));
    let replaced = health.remapped_rows.map(|rows| ("rows replaced ", rows));
    let replaced = replaced.or_else(|| health.retired_pages.map(|pages| ("pages retired ", pages)));
    if let Some((label, count)) = replaced {
        row.figure(2, label, &count.to_string());
    }
    if let Some(stays) = health.persistence {
        row.figure(2, "persistence ", if stays { "on" } else { "off" });
    }
    let engines = [
        ("encoder ", health.encoder_percent),
        ("decoder ", health.decoder_percent),
    ];
    for (label, figure) in engines {
        if figure.is_some_and(|figure| figure > 0.0) {
            row.figure(2, label, &format::whole_percent(figure));
        }
    }
    Some(row.line())
}

/// Returns the reasons why figures are unknown.
fn missing<'a>(
    gpu: &GpuRates,
    width: u16,
    start: impl Fn(&str) -> LineBuilder<'a>,
) -> Vec<Line<'static>> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for absent in &gpu.now.absent {
        by_reason
            .entry(&absent.reason)
            .or_default()
            .push(&absent.figure);
    }
    let room = usize::from(width).saturating_sub(LABEL + 1);
    let texts = by_reason.into_iter().flat_map(|(reason, figures)| {
        let text = format!("{}: {reason}", figures.join(", ").replace('_', " "));
        format::wrap(&text, room)
    });
    texts
        .enumerate()
        .map(|(at, text)| {
            let mut row = start(if at == 0 { format::UNKNOWN } else { "" });
            row.sentence(Dim, &text);
            row.line()
        })
        .collect()
}
