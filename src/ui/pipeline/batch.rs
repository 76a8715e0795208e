//! Where the time of a batch goes, in the workers and in the trainer: bars to scale, with figures that follow from each
//! other as they are shown.

use ratatui::text::Line;

use crate::config::Role::{self, Compute, Dim, Text, Trouble};
use crate::model::rates::{LoaderRates, RankRates, WorkerRates};
use crate::sample::WorkerNow;
use crate::ui::glyphs::doing;
use crate::ui::line_builder::LineBuilder;
use crate::ui::{View, format, timeline};

/// Cells that the figures behind a bar take.
const FIGURES: usize = 62;
/// The shortest and the longest bar.
const SHORTEST: usize = 12;
const LONGEST: usize = 100;

/// A part of a bar, as colour, word and sign.
struct Part {
    look: (Role, &'static str, &'static str),
    share: f64,
}

/// A bar for the workers and one for the trainer; where that is too much, one line.
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
    let cells = room.clamp(SHORTEST, LONGEST);
    let mut trainer = start();
    trainer.text(Dim, names[1]);
    let parts = view
        .loader()
        .map_or_else(Vec::new, |loader| spent(view, &loader.workers));
    bar(&mut workers, &parts, cells);
    load(view, rank, &mut workers);
    for part in &parts {
        let (paint, word, _) = part.look;
        let share = format!(" {:.0} %", 100.0 * part.share);
        if part.share >= 0.005 {
            workers.item(2, &[(paint, word), (Text, &share)]);
        }
    }
    bar(&mut trainer, &steps(view, rank), cells);
    times(rank, &mut trainer);
    vec![workers.line(), trainer.line()]
}

/// The trainer's bar and the most telling figures.
fn short(view: &View<'_>, rank: &RankRates, mut row: LineBuilder<'_>) -> Line<'static> {
    let cells = row.left().saturating_sub(FIGURES).clamp(SHORTEST, LONGEST);
    if row.left() >= 60 {
        bar(&mut row, &steps(view, rank), cells);
    }
    figures(rank, &mut row);
    load(view, rank, &mut row);
    rhythm(rank, &mut row);
    row.line()
}

/// A cell for each worker: how busy it was, in the colour of what it mostly did; the one that holds up the others in that
/// of trouble.
pub(super) fn heat(view: &View<'_>, loader: &LoaderRates, row: &mut LineBuilder<'_>, cells: usize) {
    let slow = timeline::slow(&loader.workers);
    let glyphs = view.glyphs();
    let cell = |worker: &WorkerRates| {
        let parts = spent(view, std::slice::from_ref(worker));
        let Some(idle) = parts.last() else {
            return (Role::Unknown, glyphs.sign(Role::Unknown));
        };
        let most = parts.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        let paint = most.map_or(Role::Unknown, |part| part.look.0);
        let paint = if slow(worker) { Trouble } else { paint };
        (paint, glyphs.level(1.0 - idle.share))
    };
    let shown: Vec<_> = loader.workers.iter().take(cells).map(cell).collect();
    for piece in shown.chunk_by(|one, other| one.0 == other.0) {
        let text: String = piece.iter().map(|(_, sign)| *sign).collect();
        row.text(piece[0].0, &text);
    }
    row.space(cells - shown.len());
}

/// What workers do with their time, on average; idle last. Empty where that is not known.
fn spent(view: &View<'_>, workers: &[WorkerRates]) -> Vec<Part> {
    let mean = |figure: fn(&WorkerRates) -> Option<f64>| {
        let known: Vec<f64> = workers.iter().filter_map(figure).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
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
    let sum: f64 = other.iter().map(|(_, share)| share).sum();
    let cpu = (WorkerNow::Cpu, (busy - sum).max(0.0));
    let idle = (WorkerNow::Idle, (1.0 - busy).max(0.0));
    let states = [cpu].into_iter().chain(other).chain([idle]);
    let part = |(now, share)| Part {
        look: doing(now, view.glyphs()),
        share,
    };
    states.map(part).collect()
}

/// Wait and step.
fn steps(view: &View<'_>, rank: &RankRates) -> Vec<Part> {
    let times = rank.step.wait_ms.zip(rank.step.step_ms);
    let Some((wait, step)) = times.filter(|(wait, step)| wait + step > 0.0) else {
        return Vec::new();
    };
    let share = wait / (wait + step);
    let glyphs = view.glyphs();
    vec![
        Part {
            look: (Trouble, "wait", glyphs.bar_low),
            share,
        },
        Part {
            look: (Compute, "step", glyphs.sign(Compute)),
            share: 1.0 - share,
        },
    ]
}

/// A bar of what one worker does with its time.
pub(in crate::ui) fn of_worker(
    view: &View<'_>,
    worker: &WorkerRates,
    row: &mut LineBuilder<'_>,
    cells: usize,
) {
    bar(row, &spent(view, std::slice::from_ref(worker)), cells);
}

/// All parts one after the other; what is not known stays empty.
fn bar(row: &mut LineBuilder<'_>, parts: &[Part], cells: usize) {
    let mut sum = 0.0;
    let mut drawn = 0;
    for part in parts {
        sum += part.share;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of cells"
        )]
        let end = ((sum * cells as f64).round() as usize).min(cells);
        let (paint, _, sign) = part.look;
        row.text(paint, &sign.repeat(end.saturating_sub(drawn)));
        drawn = drawn.max(end);
    }
    row.space(cells - drawn);
}

/// What it takes to make one, and what that is for all workers together.
fn load(view: &View<'_>, rank: &RankRates, row: &mut LineBuilder<'_>) {
    let load = rank.step.load_ms;
    row.item(3, &[(Dim, "load "), (Text, &format::millis(load))]);
    let workers = view.loader().map_or(0, |loader| loader.workers.len());
    if let (Some(load), true) = (load, workers > 1) {
        let each = format::millis(Some(shown(load) / workers as f64));
        let words = format!("/{workers} workers = ");
        row.item(2, &[(Dim, &words), (Text, &each)]);
    }
}

fn figures(rank: &RankRates, row: &mut LineBuilder<'_>) {
    let step = rank.step;
    row.item(
        3,
        &[(Trouble, "wait "), (Text, &format::millis(step.wait_ms))],
    );
    row.item(
        3,
        &[(Compute, "step "), (Text, &format::millis(step.step_ms))],
    );
}

fn times(rank: &RankRates, row: &mut LineBuilder<'_>) {
    figures(rank, row);
    let step = rank.step;
    if let (Some(step_ms), Some(wait_ms)) = (step.step_ms, step.wait_ms) {
        let every = format::millis(Some(shown(step_ms) + shown(wait_ms)));
        row.item(3, &[(Dim, "every "), (Text, &every)]);
    }
    let rate = format::per_second(step.batches_per_s);
    row.item(3, &[(Text, &rate), (Dim, " batches/s")]);
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

/// Milliseconds as [`format::millis`] shows them, so that sums on screen come out.
fn shown(ms: f64) -> f64 {
    if ms < 19.95 {
        (ms * 10.0).round() / 10.0
    } else {
        ms.round()
    }
}
