//! The newest seconds, poll by poll: a row for each worker, for the queue, the trainer and each GPU.
//!
//! Draws the last tenth of the time that the other panels show, ten times as fine, so that single batches and waits are
//! seen; what is older than the polls that are kept is drawn from the history, where a cell is no shorter than a reading.

mod cells;
mod rows;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::glyphs::doing;
use super::layout::{self, BorderStyle, count};
use super::state::Panel;
use super::{View, axis, format, panel};
use crate::config::Role::{Dim, Unknown};
use crate::model::WorkerPlace;
use crate::model::rates::{RankRates, WorkerRates};
use crate::model::timeline::slots_of;
use crate::sample::{SLOT, WorkerNow};
use rows::{FIGURE, LABEL, Row, Scale, gpu_row, queue, sign, trainer, worker_row};

/// GPUs that are shown at most.
const GPUS: usize = 16;
/// A worker whose batches take so many times as long as those of most is pointed out.
const SLOW: f64 = 2.0;

/// Lines that it could fill; none where nobody was looked at.
pub(super) fn wanted(view: &View<'_>) -> u16 {
    let seen = view
        .rank()
        .is_some_and(|rank| view.history.timeline().knows(rank.key));
    if !seen {
        return u16::from(view.state.focus == Panel::Timeline);
    }
    let workers = view.loader().map_or(0, |loader| loader.workers.len());
    count(workers + 2 + view.gpus().len().min(GPUS))
}

/// It stands on the page of all panels.
pub(super) fn is_beside(view: &View<'_>) -> bool {
    wanted(view) > 1 && (layout::shows_timeline(view.screen) || view.state.focus == Panel::Timeline)
}

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, border: BorderStyle) {
    let around = if border == BorderStyle::Boxed { 4 } else { 2 };
    let indent = usize::from(border != BorderStyle::Boxed);
    let room = usize::from(area.width).saturating_sub(around + LABEL + FIGURE);
    let scale = scale(view, room);
    let remark = remark(view, area.width, scale.as_ref());
    let mut name = match view.ranks().len() {
        0 | 1 => "timeline".to_owned(),
        _ => format!("timeline of rank {}", view.rank_number()),
    };
    if let Some(under) = scale.as_ref().and_then(|scale| under(view, scale)) {
        name = format!("{name}: {under}");
    }
    let inner = panel::open(view, frame, area, border, Panel::Timeline, &name, &remark);
    let (Some(rank), Some(scale)) = (view.rank(), scale) else {
        let mut row = view.row(inner.width);
        row.space(indent).text(Unknown, "n/a  nothing was seen yet");
        return panel::write(frame, inner, vec![row.line()]);
    };
    if !view.history.timeline().knows(rank.key) {
        let mut row = view.row(inner.width);
        row.space(indent).text(
            Unknown,
            "n/a  what the job's processes sleep in cannot be seen, or was not recorded",
        );
        return panel::write(frame, inner, vec![row.line()]);
    }
    let lines = rows(view, rank, &scale, usize::from(inner.height));
    let lines = lines.into_iter().map(|row| {
        row.map_or_else(
            |text| more(view, inner.width, indent, &text),
            |row| row.line(view, inner.width, indent, (room, scale.cursor)),
        )
    });
    panel::write(frame, inner, lines.collect());
}

/// What its signs mean and what a cell stands for, as far as there is room.
fn remark(view: &View<'_>, width: u16, scale: Option<&Scale>) -> String {
    let Some(scale) = scale else {
        return String::new();
    };
    let cell = scale.cells.first().map_or(0.0, |(from, to)| to - from);
    let length = if cell < 0.9995 {
        format!("{} a cell", format::millis(Some(1000.0 * cell)))
    } else {
        format!("{} a cell", format::span(cell))
    };
    if width < 100 || scale.cursor.is_some() {
        return length;
    }
    let legend = [
        WorkerNow::Cpu,
        WorkerNow::Read,
        WorkerNow::Sleep,
        WorkerNow::Handover,
        WorkerNow::Idle,
    ];
    let legend = legend.map(|now| {
        let (_, word, _) = doing(now, view.glyphs());
        format!("{} {word}", sign(view, now).1)
    });
    format!("{}   {length}", legend.join("  "))
}

/// What the cursor is on: the batch that the trainer had or waited for, who made it in which time, and the wait for it.
fn under(view: &View<'_>, scale: &Scale) -> Option<String> {
    let (from, to) = *scale.cells.get(scale.cursor?)?;
    let rank = view.rank()?;
    let timeline = view.history.timeline();
    let waits: Vec<_> = timeline.waits(rank.key).copied().collect();
    let Some(under) = cells::under(&waits, f64::midpoint(from, to)) else {
        return Some("not known which batch".to_owned());
    };
    let mut words = format!("batch {}", under.batch);
    if let Some((loader, worker)) = view.loader().zip(rows::worker_of(view)(under.batch)) {
        let place = WorkerPlace {
            rank: rank.key,
            loader: loader.id,
            id: worker,
        };
        words = format!("{words} of worker {worker}");
        let mut batches = timeline.batches(place).rev();
        if let Some(batch) = batches.find(|batch| batch.number == under.batch) {
            let load = format::millis(Some(1000.0 * (batch.to - batch.from)));
            words = format!("{words}, load {load}");
        }
    }
    let waited = format::millis(Some(1000.0 * under.waited));
    Some(if under.waits {
        format!("waits {waited} for {words}")
    } else {
        format!("step of {words}, waited {waited}")
    })
}

/// Where not all workers fit.
fn more(view: &View<'_>, width: u16, indent: usize, text: &str) -> Line<'static> {
    let mut row = view.row(width);
    row.space(indent).text(Dim, text);
    row.line()
}

fn scale(view: &View<'_>, room: usize) -> Option<Scale> {
    let axis = axis::lens(view, room)?;
    // All rows end together: in the last cell there is a slot in which everyone was seen.
    let seen = view.history.timeline().seen_until(view.rank()?.key);
    let axis = seen.map_or(axis, |seen| axis.until(seen - 2.0 * SLOT.as_secs_f64()));
    let cells: Vec<(f64, f64)> = axis.bounds().collect();
    let (first, last) = cells.first().zip(cells.last())?;
    let time = |seconds: f64| std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let back = view.state.cursor.filter(|_| view.state.is_still());
    let drawn = cells
        .iter()
        .take_while(|(from, _)| *from < axis.to())
        .count();
    Some(Scale {
        cursor: back.map(|back| drawn.saturating_sub(1 + back)),
        slots: slots_of(time(first.0), time(last.1.min(axis.to()))),
        coarse: first.1 - first.0 >= view.config.interval.as_secs_f64(),
        axis,
        cells,
    })
}

/// The rows from the top, and what says how many workers are left out.
fn rows(
    view: &View<'_>,
    rank: &RankRates,
    scale: &Scale,
    height: usize,
) -> Vec<Result<Row, String>> {
    let mut rest = vec![trainer(view, rank, scale)];
    let workers = view.loader().map_or(&[][..], |loader| &loader.workers);
    if let Some(loader) = view.loader() {
        rest.insert(0, queue(view, rank, loader, scale));
    }
    let gpus = view.gpus();
    let all_fit = workers.len() + rest.len() + gpus.len().min(GPUS) <= height;
    let (own, shown) = (view.gpu_place(), gpus.iter().enumerate().take(GPUS));
    rest.extend(
        shown
            .filter(|(place, _)| all_fit || *place == own)
            .map(|(place, gpu)| gpu_row(view, place, gpu, scale)),
    );
    // In a single line, the trainer: what it is all about.
    if height < rest.len() {
        rest.rotate_left(usize::from(view.loader().is_some()));
        rest.truncate(height);
    }
    let room = height - rest.len();
    let slots = if workers.len() <= room {
        room
    } else {
        room.saturating_sub(1)
    };
    let first = if view.state.focus == Panel::Timeline {
        view.state.scroll
    } else {
        0
    };
    let part = panel::window(workers.len(), slots, first);
    let slow = slow(workers);
    let mut order: Vec<&WorkerRates> = workers.iter().collect();
    if part.len() < workers.len() {
        // Whoever holds up the others is not left out.
        order.sort_by_key(|worker| !slow(worker));
    }
    let mut rows = Vec::new();
    if let Some(loader) = view.loader() {
        let shown = order[part.clone()].iter();
        rows.extend(shown.map(|worker| {
            Ok(worker_row(
                view,
                rank,
                loader,
                (worker, slow(worker)),
                scale,
            ))
        }));
    }
    let left_out = workers.len() - part.len();
    if left_out > 0 && room > 0 {
        rows.push(Err(match part.start {
            0 => format!("and {left_out} more workers"),
            above => format!("and {left_out} more workers, {above} of them above"),
        }));
    }
    rows.extend(rest.into_iter().map(Ok));
    rows
}

/// Whose batches take far longer than the others' do.
pub(super) fn slow(workers: &[WorkerRates]) -> impl Fn(&WorkerRates) -> bool + use<> {
    let mut loads: Vec<f64> = workers.iter().filter_map(|worker| worker.load_ms).collect();
    loads.sort_by(f64::total_cmp);
    let median = loads.get(loads.len().saturating_sub(1) / 2).copied();
    move |worker| {
        let load = worker.load_ms.zip(median);
        load.is_some_and(|(load, median)| load > SLOW * median)
    }
}
