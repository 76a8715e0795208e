//! The GPUs: a panel of four lines for one, a line each for several. Above them the device that the job says
//! it uses, where it is none of these.

mod detail;
mod told;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::history::spark;
use super::layout::Chrome;
use super::state::Panel;
use super::{View, format, panel};
use crate::config::Paint::{Compute, Dim, Text, Trouble, Unknown};
use crate::model::rates::GpuRates;
use crate::units::Share;
use detail::detail;
use told::told;

/// Processes that are listed at most.
const PROCESSES: usize = 6;

pub(super) fn wanted(view: &View<'_>, width: u16) -> u16 {
    let told = told::wanted(view, width);
    told + match view.gpus() {
        [] => u16::from(told == 0),
        [gpu] => {
            4 + super::count(
                gpu.now
                    .processes
                    .as_ref()
                    .map_or(0, |list| list.len().min(PROCESSES)),
            )
        }
        many => super::count(many.len()),
    }
}

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, chrome: Chrome) {
    let gpus = view.gpus();
    let name = match gpus {
        [gpu] if chrome == Chrome::Boxed => format!("GPU {}  {}", gpu.now.index, full_name(gpu)),
        [] | [_] => "GPU".to_owned(),
        many => format!("{} GPUs", many.len()),
    };
    let inner = panel::open(view, frame, area, chrome, Panel::Gpu, &name, &view.span());
    let mut told = told(view, inner.width, chrome);
    let room = usize::from(inner.height).saturating_sub(told.len());
    let lines = match gpus {
        [] if !told.is_empty() => vec![],
        [] => absent(view, inner.width, chrome),
        [gpu] if room >= 2 => detail(view, gpu, inner.width, chrome),
        // With less room than GPUs: the job's own first, or the place that was scrolled to.
        many => {
            let scroll = if view.state.focus == Panel::Gpu {
                view.state.scroll
            } else {
                0
            };
            let first = many
                .iter()
                .position(|gpu| gpu.now.visible_to_job == Some(true))
                .unwrap_or(0);
            let shown = panel::window(
                many.len(),
                room,
                scroll.max(if scroll == 0 { first } else { 0 }),
            );
            let hidden = many.len() - shown.len();
            let last = shown.end;
            let mut lines: Vec<_> = shown
                .map(|place| one_line(view, place, &many[place], inner.width, chrome))
                .collect();
            if hidden > 0 && lines.len() > 1 {
                lines.pop();
                let mut row = view.row(inner.width);
                let text = format!("   and {} more", hidden + 1);
                row.text(Dim, &text);
                lines.push(row.line());
            } else if hidden > 0 && last > 0 && lines.len() == 1 {
                let mut row = view.row(inner.width);
                let text = format!(" {} GPUs  ", many.len());
                row.text(Dim, &text);
                mean_of(view, many, &mut row);
                lines = vec![row.line()];
            }
            lines
        }
    };
    told.extend(lines);
    panel::write(frame, inner, told);
}

/// Several GPUs in one line: mean, lowest and highest.
fn mean_of(view: &View<'_>, gpus: &[GpuRates], row: &mut super::Row<'_>) {
    let job = gpus
        .iter()
        .filter(|gpu| gpu.now.visible_to_job != Some(false));
    let known: Vec<f64> = job.filter_map(|gpu| gpu.util_percent).collect();
    if known.is_empty() {
        row.text(Unknown, format::UNKNOWN);
        return;
    }
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

fn full_name(gpu: &GpuRates) -> &str {
    gpu.now.name.as_deref().unwrap_or("")
}

/// `H200` of `NVIDIA H200`.
fn short_name(gpu: &GpuRates) -> &str {
    let name = full_name(gpu);
    name.strip_prefix("NVIDIA ").unwrap_or(name)
}

fn absent(view: &View<'_>, width: u16, chrome: Chrome) -> Vec<Line<'static>> {
    let gap = view.gap("nvml").or_else(|| view.gap("gpu"));
    let why = gap.map_or("no GPU seen", |gap| gap.reason.as_str());
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

/// ` 0 H200   37 %  sparkline  idle 60 %  21.4 / 140 GiB  231 W  54 C`
fn one_line(
    view: &View<'_>,
    place: usize,
    gpu: &GpuRates,
    width: u16,
    chrome: Chrome,
) -> Line<'static> {
    let now = &gpu.now;
    let mut row = view.row(width);
    if chrome == Chrome::Bare {
        row.space(1).text(Dim, "GPU");
    }
    if chrome != Chrome::Boxed {
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
        return row.line();
    }
    row.right(
        if theirs { Dim } else { Compute },
        &percent(gpu.util_percent),
        6,
    )
    .space(2);

    let idle = idle(view, gpu, place).map(|idle| format!("{idle:>5}"));
    let memory = format::of_memory(now.mem_used, now.mem_total);
    let watts = now.power_watts.map(|watts| format!("{watts:>3.0} W"));
    let heat = now.temperature_c.map(|degrees| format!("{degrees:>3.0} C"));
    let held = now
        .throttle
        .as_ref()
        .is_some_and(|reasons| !reasons.is_empty());
    let age = gpu
        .stale_seconds
        .map(|age| format!("{} old", format::span(age)));
    // The most telling first: what no longer fits is left out, the past takes what is left.
    let mut items: Vec<Vec<(crate::config::Paint, String)>> = Vec::new();
    items.extend(age.map(|age| vec![(Text, age)]));
    items.extend(held.then(|| vec![(Trouble, "held back".to_owned())]));
    items.extend(idle.map(|idle| vec![(Dim, "idle ".to_owned()), (Text, idle)]));
    items.push(vec![(Text, format!("{memory:>14}"))]);
    items.extend(watts.map(|watts| vec![(Text, watts)]));
    items.extend(heat.map(|heat| vec![(Text, heat)]));
    items.extend(theirs.then(|| vec![(Dim, "not the job's".to_owned())]));
    let size = |item: &[(crate::config::Paint, String)]| {
        2 + item.iter().map(|(_, text)| text.len()).sum::<usize>()
    };
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
    let values: Vec<Option<f64>> = view
        .history
        .gpu_util
        .get(place)
        .map_or_else(Vec::new, |ring| {
            ring.last(cells)
                .map(|value| value.map(|percent| percent / 100.0))
                .collect()
        });
    spark(&mut row, if theirs { Dim } else { Compute }, &values, cells);
    for item in items.iter().take(shown) {
        let pieces: Vec<_> = item
            .iter()
            .map(|(paint, text)| (*paint, text.as_str()))
            .collect();
        row.item(2, &pieces);
    }
    row.line()
}

/// Share of time without a kernel: from the driver's history, for the judged GPU from the verdict.
fn idle(view: &View<'_>, gpu: &GpuRates, place: usize) -> Option<Share> {
    let judged = view
        .verdict
        .filter(|_| place == 0 && view.gpus().len() == 1);
    judged
        .and_then(|verdict| verdict.gpu_idle)
        .or_else(|| gpu.busy.map(Share::rest))
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| format::UNKNOWN.to_owned(), format::whole_percent)
}
