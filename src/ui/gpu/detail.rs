//! One GPU in full.

use ratatui::text::Line;

use super::{PROCESSES, idle, percent};
use crate::config::Paint::{Compute, Dim, Text, Trouble, Unknown};
use crate::model::rates::GpuRates;
use crate::sample::GpuProcess;
use crate::ui::history::spark;
use crate::ui::layout::Chrome;
use crate::ui::row::Row;
use crate::ui::{View, format};

/// Four lines and the processes.
pub(super) fn detail(
    view: &View<'_>,
    gpu: &GpuRates,
    width: u16,
    chrome: Chrome,
) -> Vec<Line<'static>> {
    let now = &gpu.now;
    let start = || {
        let mut row = view.row(width);
        if chrome != Chrome::Boxed {
            row.space(1);
        }
        row.stale(gpu.stale_seconds.is_some());
        row
    };
    let mut util = start();
    util.padded(Dim, "util", 6);
    util.right(Compute, &percent(gpu.util_percent), 5).space(2);
    let tail = idle(view, gpu, 0).map_or_else(String::new, |idle| format!("idle {idle:>5}"));
    let cells = util.left().saturating_sub(tail.len() + 2);
    if let Some(ring) = view.history.gpu_util.first() {
        let scaled = ring
            .last(cells)
            .map(|value| value.map(|percent| percent / 100.0));
        spark(&mut util, Compute, &scaled.collect::<Vec<_>>(), cells);
    }
    util.space(2);
    match tail.split_once(' ') {
        Some((label, share)) => util.text(Dim, label).text(Text, &format!(" {share}")),
        None => &mut util,
    };

    let mut memory = start();
    memory.padded(Dim, "mem", 6);
    memory.text(Text, &format::of_memory(now.mem_used, now.mem_total));
    let traffic = percent(now.mem_util_percent);
    memory.item(
        3,
        &[(Dim, "in use "), (Text, &traffic), (Dim, " of the time")],
    );

    let mut power = start();
    power.padded(Dim, "power", 6);
    let watts = |value: Option<f64>| {
        value.map_or_else(|| format::UNKNOWN.to_owned(), |watts| format!("{watts:.0}"))
    };
    power.text(
        Text,
        &format!(
            "{} / {} W",
            watts(now.power_watts),
            watts(now.power_limit_watts)
        ),
    );
    let heat = now.temperature_c.map_or_else(
        || format::UNKNOWN.to_owned(),
        |degrees| format!("{degrees:.0} C"),
    );
    power.item(3, &[(Text, &heat)]);
    if let Some(age) = gpu.stale_seconds {
        power.item(3, &[(Text, &format!("{} old", format::span(age)))]);
    }

    let mut clock = start();
    clock.padded(Dim, "clock", 6);
    let sm = now
        .sm_clock_mhz
        .map_or_else(|| format::UNKNOWN.to_owned(), |mhz| format!("{mhz:.0} MHz"));
    clock.text(Text, &sm);
    let held = match now.throttle.as_deref() {
        None => (Unknown, "held back: n/a".to_owned()),
        Some([]) => (Text, "not held back".to_owned()),
        Some(reasons) => (Trouble, format!("held back: {}", reasons.join(", "))),
    };
    clock.text(Dim, ", ").sentence(held.0, &held.1);
    if let Some(gap) = &now.gap {
        clock.item(3, &[(Trouble, gap)]);
    }
    let mut lines = vec![util.line(), memory.line(), power.line(), clock.line()];
    let processes = now.processes.iter().flatten().take(PROCESSES);
    lines.extend(processes.map(|process| process_line(process, start())));
    lines
}

/// A process as the driver numbers it.
fn process_line(process: &GpuProcess, mut row: Row<'_>) -> Line<'static> {
    let memory = process
        .mem
        .map_or_else(|| format::UNKNOWN.to_owned(), |mem| mem.to_string());
    row.text(Dim, "  pid ")
        .right(Text, &process.pid.to_string(), 7);
    row.space(2).right(Text, &memory, 8).space(2);
    row.text(Dim, "SM ")
        .right(Text, &percent(process.sm_percent), 5);
    row.line()
}
