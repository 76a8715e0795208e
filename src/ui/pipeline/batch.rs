//! How the time of a batch is spent, in the workers and in the trainer: bars to scale, with figures that add up as
//! shown.

use ratatui::text::Line;

use crate::config::Role::{self, Compute, Cpu, Dim, Full, Text, Trouble};
use crate::model::rates::{LoaderRates, RankRates, WorkerRates};
use crate::sample::WorkerNow;
use crate::ui::glyphs::doing;
use crate::ui::line_builder::LineBuilder;
use crate::ui::{View, format, timeline};
use crate::units::whole;
use crate::verdict::Kind;

/// Cells of the figures behind a bar.
const FIGURES: usize = 64;
/// Least and most cells of a bar.
const MIN_CELLS: usize = 12;
const MAX_CELLS: usize = 100;

/// A part of a bar.
struct BarPart {
    look: (Role, &'static str, &'static str),
    share: f64,
    /// Labels to write on it, longest first; the first that fits is used.
    labels: Vec<String>,
}

/// Returns a bar for the workers and one for the trainer, or one line if `full` is not set.
pub(super) fn lines(view: &View<'_>, width: u16, wide: bool, full: bool) -> Vec<Line<'static>> {
    let start = || {
        let mut row = view.row(width);
        row.space(usize::from(!wide));
        row
    };
    let Some(rank) = view.rank() else {
        return vec![start().line()];
    };
    if !full {
        return vec![short(view, rank, start())];
    }
    let names = if wide {
        ["a batch  in the workers  ", "         in the trainer  "]
    } else {
        ["workers  ", "trainer  "]
    };
    let mut workers = start();
    workers.text(Dim, names[0]);
    let room = workers.left().saturating_sub(FIGURES);
    let cells = room.clamp(MIN_CELLS, MAX_CELLS);
    let mut trainer = start();
    trainer.text(Dim, names[1]);
    let parts = view
        .loader()
        .map_or_else(Vec::new, |loader| time_shares(view, &loader.workers));
    bar(&mut workers, &parts, cells);
    load(view, rank, &mut workers);
    for part in &parts {
        let (paint, word, _) = part.look;
        let share = format!(" {:>2.0} %", 100.0 * part.share);
        // A figure that comes and goes would move the figures after it.
        if paint == Cpu || part.share >= 0.02 {
            workers.item(2, &[(paint, word), (Text, &share)]);
        }
    }
    bar(&mut trainer, &steps(view, rank), cells);
    times(rank, &mut trainer);
    vec![workers.line(), trainer.line()]
}

/// Draws the trainer's bar and the most important figures.
fn short(view: &View<'_>, rank: &RankRates, mut row: LineBuilder<'_>) -> Line<'static> {
    let cells = row
        .left()
        .saturating_sub(FIGURES)
        .clamp(MIN_CELLS, MAX_CELLS);
    if row.left() >= 60 {
        bar(&mut row, &steps(view, rank), cells);
    }
    figures(rank, &mut row);
    load(view, rank, &mut row);
    rhythm(rank, &mut row);
    row.line()
}

/// Draws a cell for each worker: its height shows how busy it was, its colour what it mostly did. The worker that holds
/// up the others has the colour of trouble.
pub(super) fn heat(view: &View<'_>, loader: &LoaderRates, row: &mut LineBuilder<'_>, cells: usize) {
    let slow = timeline::slow(&loader.workers);
    let glyphs = view.glyphs();
    let cell = |worker: &WorkerRates| {
        let parts = time_shares(view, std::slice::from_ref(worker));
        let Some(idle) = parts.last() else {
            return (Role::Unknown, glyphs.sign(Role::Unknown));
        };
        let most = parts.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        let paint = most.map_or(Role::Unknown, |part| part.look.0);
        let paint = if slow(worker) { Trouble } else { paint };
        (paint, glyphs.level(1.0 - idle.share))
    };
    let shown = loader.workers.iter().take(cells).map(cell);
    let shown = shown.map(|(paint, sign)| (view.config.theme.style(paint), sign));
    let shown: Vec<_> = shown.collect();
    row.signs(&shown).space(cells - shown.len());
}

/// Returns how workers spend their time on average, idle last. Empty if unknown.
fn time_shares(view: &View<'_>, workers: &[WorkerRates]) -> Vec<BarPart> {
    let mean = |figure: fn(&WorkerRates) -> Option<f64>| {
        crate::units::mean(workers.iter().filter_map(figure))
    };
    let Some(busy) = mean(|worker| Some(worker.busy?.0)) else {
        return Vec::new();
    };
    let other = [
        (WorkerNow::Read, mean(|worker| Some(worker.disk?.0))),
        (WorkerNow::Network, mean(|worker| Some(worker.network?.0))),
        (WorkerNow::Sleep, mean(|worker| Some(worker.asleep?.0))),
        (WorkerNow::Handover, mean(|worker| Some(worker.handover?.0))),
    ];
    let other = other.map(|(now, share)| (now, share.unwrap_or(0.0)));
    let wants = mean(|worker| Some(worker.wants_cpu()?.0.0)).unwrap_or(0.0);
    let waits = mean(|worker| Some(worker.wants_cpu()?.1.unwrap_or_default().0)).unwrap_or(0.0);
    let cpu = [
        (WorkerNow::Cpu, wants - waits),
        (WorkerNow::Runnable, waits),
    ];
    let idle = (WorkerNow::Idle, (1.0 - busy).max(0.0));
    let states = cpu.into_iter().chain(other).chain([idle]);
    let part = |(now, share)| BarPart {
        look: doing(now, view.glyphs()),
        share,
        labels: Vec::new(),
    };
    states.map(part).collect()
}

/// Returns wait and step; the step in its parts if the job reports them and its device is idle again at the end of each
/// step.
fn steps(view: &View<'_>, rank: &RankRates) -> Vec<BarPart> {
    let times = rank.step.wait_ms.zip(rank.step.step_ms);
    let Some((wait, step)) = times.filter(|(wait, step)| wait + step > 0.0) else {
        return Vec::new();
    };
    let whole = wait + step;
    let glyphs = view.glyphs();
    let part = |paint, word: &'static str, sign, share: f64, more: Option<String>| BarPart {
        look: (paint, word, sign),
        share,
        labels: more.into_iter().chain([word.to_owned()]).collect(),
    };
    let verdict = view.verdict.filter(|it| it.kind == Kind::DataBound);
    let cause = verdict.and_then(|verdict| verdict.cause);
    let cause = cause.map(|cause| format!("wait: {}", cause.words()));
    let mut parts = vec![part(Trouble, "wait", glyphs.bar_low, wait / whole, cause)];
    let step = step / whole;
    let device = rank.device.as_ref().filter(|it| it.rests_with_each_step);
    let Some((busy, copying)) = device.and_then(|it| Some((it.busy?.0, it.copying?.0))) else {
        parts.push(part(Compute, "step", glyphs.sign(Compute), step, None));
        return parts;
    };
    let busy = busy.min(step);
    let copying = copying.min(step - busy);
    let of_step = [
        (Cpu, "host", step - busy - copying),
        (Full, "copy", copying),
        (Compute, view.device().map_or("GPU", |_| "device"), busy),
    ];
    parts.extend(of_step.map(|(paint, word, share)| {
        let took = format::millis(Some(share * whole));
        part(
            paint,
            word,
            glyphs.sign(paint),
            share,
            Some(format!("{word} {took}")),
        )
    }));
    parts
}

/// Draws how one worker spends its time.
pub(in crate::ui) fn of_worker(
    view: &View<'_>,
    worker: &WorkerRates,
    row: &mut LineBuilder<'_>,
    cells: usize,
) {
    bar(row, &time_shares(view, std::slice::from_ref(worker)), cells);
}

/// Draws all parts one after the other; what is unknown stays empty.
fn bar(row: &mut LineBuilder<'_>, parts: &[BarPart], cells: usize) {
    let mut sum = 0.0;
    let mut drawn = 0;
    for part in parts {
        sum += part.share;
        let end = whole((sum * cells as f64).round()).min(cells);
        let (paint, _, sign) = part.look;
        let room = end.saturating_sub(drawn);
        let labels = part.labels.iter().map(|label| format!(" {label} "));
        // A label may take at most half of its part, so that the bar stays visible.
        let mut fitting = labels.filter(|label| 2 * format::width(label) <= room);
        match fitting.next() {
            Some(label) => {
                let before = (room - format::width(&label)) / 2;
                let after = room - format::width(&label) - before;
                row.text(paint, &sign.repeat(before))
                    .text(paint, &label)
                    .text(paint, &sign.repeat(after));
            }
            None => {
                row.text(paint, &sign.repeat(room));
            }
        }
        drawn = drawn.max(end);
    }
    row.space(cells - drawn);
}

/// Adds the load time of a batch, and that time divided by the number of workers.
fn load(view: &View<'_>, rank: &RankRates, row: &mut LineBuilder<'_>) {
    let load = rank.step.load_ms;
    let words = format!("{:>6}", format::millis(load));
    row.figure(3, "load ", &words);
    let workers = view.loader().map_or(0, |loader| loader.workers.len());
    if let (Some(load), true) = (load, workers > 1) {
        let each = format::millis(Some(shown(load) / workers as f64));
        let each = format!("{each:>6}");
        let words = format!("/{workers} workers = ");
        row.item(2, &[(Dim, &words), (Text, &each)]);
    }
}

/// Adds a time with its name, padded to the width of most times, so that what follows stays in its place.
fn time(row: &mut LineBuilder<'_>, paint: Role, name: &str, ms: Option<f64>) {
    let time = format!(" {:>6}", format::millis(ms));
    row.item(3, &[(paint, name), (Text, &time)]);
}

fn figures(rank: &RankRates, row: &mut LineBuilder<'_>) {
    time(row, Trouble, "wait", rank.step.wait_ms);
    time(row, Compute, "step", rank.step.step_ms);
}

fn times(rank: &RankRates, row: &mut LineBuilder<'_>) {
    figures(rank, row);
    let step = rank.step;
    if let (Some(step_ms), Some(wait_ms)) = (step.step_ms, step.wait_ms) {
        time(row, Dim, "every", Some(shown(step_ms) + shown(wait_ms)));
    }
    let rate = format!("{:>5}", format::per_second(step.batches_per_s));
    row.item(2, &[(Text, &rate), (Dim, " batches/s")]);
    rhythm(rank, row);
}

fn rhythm(rank: &RankRates, row: &mut LineBuilder<'_>) {
    if let Some(period) = rank.period_batches {
        let batches = period.to_string();
        row.item(
            3,
            &[(Dim, "waits every "), (Text, &batches), (Dim, " batches")],
        );
    }
}

/// Rounds milliseconds as [`format::millis`] does, so that sums on screen add up.
fn shown(ms: f64) -> f64 {
    if ms < 19.95 {
        (ms * 10.0).round() / 10.0
    } else {
        ms.round()
    }
}
