//! The newest seconds, poll by poll: a row for each worker, for the queue, the trainer and each GPU.
//!
//! Draws the last tenth of the time that the other panels show at ten times the resolution, so that single batches and
//! waits are visible. Cells older than the kept polls are filled from the history if a cell is at least as long as a
//! reading.

mod cells;
mod rows;

use super::glyphs::doing;
use super::layout::{self, BorderStyle, count};
use super::panel::{self, Content, Inside};
use super::state::Panel;
use super::{View, axis, format};
use crate::config::Role::{Dim, Unknown};
use crate::model::WorkerPlace;
use crate::model::rates::{LoaderRates, RankRates, WorkerRates};
use crate::model::timeline::slots_of;
use crate::sample::{SLOT, WorkerNow};
use crate::units::sorted;
use rows::{
    FIGURE, LABEL, Scale, TimelineRow, device_row, gpu_row, queue, sign, trainer, worker_row,
};

/// Most GPUs that are shown.
const GPUS: usize = 16;
/// A worker is marked as slow if its batches take more than this many times the median.
const SLOW_RATIO: f64 = 2.0;
/// The busy share of a worker without a pause that polls would see.
const BUSY: f64 = 0.9;
/// A worker with a higher idle share holds up no other worker, however long its batches take.
const IDLE: f64 = 0.5;

/// Returns how many lines the timeline could fill. If nothing was polled: 0, or 1 while the panel is focused.
pub(super) fn wanted(view: &View<'_>, _: u16) -> u16 {
    let seen = view
        .rank()
        .is_some_and(|rank| view.history.timeline().has_rank(rank.key));
    if !seen {
        return u16::from(view.state.focus == Panel::Timeline);
    }
    let loaders = view.loaders();
    let workers: usize = loaders.iter().map(|loader| loader.workers.len()).sum();
    let device = usize::from(view.device_alone().is_some());
    let queues = queues(&loaders).count();
    count(workers + queues + 1 + device + view.gpus().len().min(GPUS))
}

/// Whether the timeline is shown on the page of all panels.
pub(super) fn is_on_main_page(view: &View<'_>) -> bool {
    wanted(view, 0) > 1
        && (layout::shows_timeline(view.screen) || view.state.focus == Panel::Timeline)
}

pub(super) fn content(view: &View<'_>, inside: Inside) -> Content {
    let screen = view.screen.width;
    let room = room(view, inside.border);
    let scale = scale(view, room);
    let remark = remark(view, screen, scale.as_ref());
    let mut name = view.of_rank("timeline");
    if let Some(at_cursor) = scale.as_ref().and_then(|scale| at_cursor(view, scale)) {
        name = format!("{name}: {at_cursor}");
    }
    let seen = |rank: &RankRates| view.history.timeline().has_rank(rank.key);
    let mut end = 0;
    let lines = match view.rank().zip(scale) {
        Some((rank, scale)) if seen(rank) => {
            let (rows, below) = rows(view, rank, &scale, inside.height);
            end = below;
            let rows = rows.into_iter().map(|row| match row {
                Ok(row) => row.line(view, inside, (room, scale.cursor)),
                Err(left_out) => inside.row(view).text(Dim, &left_out).line(),
            });
            rows.collect()
        }
        other => {
            let why = match other {
                Some(_) => "n/a  what the processes wait for is not visible, or was not recorded",
                None => "n/a  nothing was seen yet",
            };
            vec![inside.row(view).text(Unknown, why).line()]
        }
    };
    Content::new(&name, &remark, lines).scrolls_to(end)
}

/// Returns the number of cells of a row.
fn room(view: &View<'_>, border: BorderStyle) -> usize {
    let around = if border == BorderStyle::Boxed { 4 } else { 2 };
    usize::from(view.screen.width).saturating_sub(around + LABEL + FIGURE)
}

/// Returns how far the cursor can move back, in cells.
pub fn cursor_end(view: &View<'_>) -> usize {
    let room = room(view, layout::border(view.screen));
    scale(view, room).map_or(0, |scale| scale.drawn.saturating_sub(1))
}

/// Returns the duration of a cell and, if there is room, the meaning of the signs.
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

/// Describes what is under the cursor: the batch that the trainer had or waited for, the worker that made it, its load
/// time, and the wait for it.
fn at_cursor(view: &View<'_>, scale: &Scale) -> Option<String> {
    let (from, to) = *scale.cells.get(scale.cursor?)?;
    let rank = view.rank()?;
    let timeline = view.history.timeline();
    let waits: Vec<_> = timeline.waits(rank.key).copied().collect();
    let Some(at_cursor) = cells::at_cursor(&waits, f64::midpoint(from, to)) else {
        return Some("batch unknown".to_owned());
    };
    let mut words = format!("batch {}", at_cursor.batch);
    if let Some((loader, worker)) = view.loader().zip(rows::worker_of(view)(at_cursor.batch)) {
        let place = WorkerPlace::new(rank.key, loader.id, worker);
        words = format!("{words} of worker {worker}");
        let mut batches = timeline.batches(place).rev();
        if let Some(batch) = batches.find(|batch| batch.number == at_cursor.batch) {
            let load = format::millis(Some(1000.0 * (batch.to - batch.from)));
            words = format!("{words}, load {load}");
        }
    }
    let waited = format::millis(Some(1000.0 * at_cursor.waited));
    Some(if at_cursor.waits {
        format!("waits {waited} for {words}")
    } else {
        format!("step of {words}, waited {waited}")
    })
}

fn scale(view: &View<'_>, room: usize) -> Option<Scale> {
    let (rank, timeline) = (view.rank()?.key, view.history.timeline());
    let from = timeline.seen_from(rank).unwrap_or_default();
    // All rows end at the same time: the last cell contains a slot in which all of them were polled.
    let until = timeline.seen_until(rank);
    let until = until.map_or(f64::INFINITY, |until| until - 2.0 * SLOT.as_secs_f64());
    let axis = axis::lens(view, room, (from, until))?.until(until);
    let cells: Vec<(f64, f64)> = axis.bounds().collect();
    let (first, last) = cells.first().zip(cells.last())?;
    let time = |seconds: f64| std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let back = view.state.cursor.filter(|_| view.state.is_still());
    let drawn = cells
        .iter()
        .take_while(|(from, _)| *from < axis.to())
        .count();
    Some(Scale {
        drawn,
        cursor: back.map(|back| drawn.saturating_sub(1 + back)),
        slots: slots_of(time(first.0), time(last.1.min(axis.to()))),
        coarse: first.1 - first.0 >= view.config.interval.as_secs_f64(),
        axis,
        cells,
    })
}

/// Returns the rows from the top, and how far they can be scrolled. An `Err` is the line that says how many workers are
/// left out.
fn rows(
    view: &View<'_>,
    rank: &RankRates,
    scale: &Scale,
    height: usize,
) -> (Vec<Result<TimelineRow, String>>, usize) {
    let loaders = view.loaders();
    let queues = queues(&loaders).map(|loader| queue(view, rank, loader, scale));
    let mut rest: Vec<TimelineRow> = queues.collect();
    let before = rest.len();
    rest.push(trainer(view, rank, scale));
    rest.extend(device_row(view, scale));
    let mut workers = workers(&loaders);
    let gpus = view.gpus();
    // The rank's own GPU first, and as many others as fit.
    let own = view.gpu_place();
    let room = height
        .saturating_sub(workers.len() + rest.len())
        .clamp(1, GPUS);
    let mut shown: Vec<_> = gpus.iter().enumerate().collect();
    shown.sort_by_key(|(place, _)| *place != own);
    shown.truncate(room);
    shown.sort_by_key(|(place, _)| *place);
    let gpus = shown.into_iter();
    rest.extend(gpus.map(|(place, gpu)| gpu_row(view, place, gpu, scale)));
    // With room for a single row, the trainer is the most important.
    if height < rest.len() {
        rest.rotate_left(before);
        rest.truncate(height);
    }
    let room = height - rest.len();
    let slots = if workers.len() <= room {
        room
    } else {
        room.saturating_sub(1)
    };
    let part = panel::window(workers.len(), slots, view.scroll_of(Panel::Timeline));
    if part.len() < workers.len() {
        // Workers that hold up the others come first, then those of the loader that the other panels are about.
        let main = view.loader().map(|loader| loader.id);
        workers.sort_by_key(|(loader, _, slow)| (!slow, Some(loader.id) != main));
    }
    let shown = workers[part.clone()].iter();
    let mut rows: Vec<_> = shown
        .map(|worker| Ok(worker_row(view, rank, *worker, scale)))
        .collect();
    let left_out = workers.len() - part.len();
    if left_out > 0 && room > 0 {
        rows.push(Err(match part.start {
            _ if slots == 0 => format!("{left_out} workers, for which there is no room"),
            0 => format!("and {left_out} more workers"),
            above => format!("and {left_out} more workers, {above} of them above"),
        }));
    }
    rows.extend(rest.into_iter().map(Ok));
    (rows, workers.len().saturating_sub(slots))
}

/// Returns the loaders whose queues have a row.
fn queues<'a>(loaders: &[&'a LoaderRates]) -> impl Iterator<Item = &'a LoaderRates> {
    let alone = loaders.len() == 1;
    let loaders = loaders.iter().copied();
    loaders.filter(move |loader| alone || !loader.workers.is_empty())
}

/// Returns the workers of all loaders, each with whether it holds up the other workers of its loader.
fn workers<'a>(loaders: &[&'a LoaderRates]) -> Vec<(&'a LoaderRates, &'a WorkerRates, bool)> {
    let of = |loader: &&'a LoaderRates| {
        let (loader, slow) = (*loader, slow(&loader.workers));
        let workers = loader.workers.iter();
        workers.map(move |worker| (loader, worker, slow(worker)))
    };
    loaders.iter().flat_map(of).collect()
}

/// Returns a function that says whether a worker holds up the others: its batches take far longer than those of the
/// median worker. A worker without a finished batch is slow if it was busy all the time, and more than twice as busy as
/// the median worker. A worker that is idle for much of the time is never slow.
pub(super) fn slow(workers: &[WorkerRates]) -> impl Fn(&WorkerRates) -> bool + use<> {
    let median = |figure: fn(&WorkerRates) -> Option<f64>| {
        let known = sorted(workers.iter().filter_map(figure));
        known.get(known.len().saturating_sub(1) / 2).copied()
    };
    let load = median(|worker| worker.load_ms);
    let busy = median(|worker| Some(worker.busy?.0));
    move |worker| {
        if worker.idle().is_some_and(|idle| idle.0 > IDLE) {
            return false;
        }
        if let Some((load, median)) = worker.load_ms.zip(load) {
            return load > SLOW_RATIO * median;
        }
        let both = worker.busy.zip(busy);
        both.is_some_and(|(own, median)| own.0 >= BUSY && own.0 > SLOW_RATIO * median)
    }
}
