//! A line for each worker, with as many columns as there is room for.

use ratatui::text::Line;

use super::{cpu, now};
use crate::config::Paint::{Border, Cpu, Dim, Focus, Read, Runnable, Text, Unknown};
use crate::model::WorkerPlace;
use crate::model::rates::{LoaderRates, WorkerRates};
use crate::sample::WorkerNow;
use crate::ui::layout::Chrome;
use crate::ui::row::Row;
use crate::ui::state::Sort;
use crate::ui::{View, doing, format};

/// Which columns there is room for.
pub(super) struct Columns {
    /// Cells of a figure with the air before it.
    cell: usize,
    width: u16,
    indent: usize,
    /// Intervals of the past that are drawn; 0 = none.
    past: usize,
    /// Room for the hottest function; 0 = none.
    activity: usize,
    batches: bool,
}

impl Columns {
    pub(super) fn new(loader: &LoaderRates, width: u16, chrome: Chrome) -> Self {
        let indent = usize::from(chrome != Chrome::Boxed);
        // id, pid, now, CPU, delay, read/s, load, and batch/s where there is room.
        let cell = if width < 100 { 8 } else { 9 };
        let fixed = indent + 3 + cell + 2 + 8 + 6 + 7 + cell + cell;
        let batches = usize::from(width) >= fixed + cell;
        let left = usize::from(width).saturating_sub(fixed + if batches { cell } else { 0 });
        let longest = loader
            .workers
            .iter()
            .filter_map(|worker| worker.activity.first())
            .map(|activity| format::width(&activity.name) + 6)
            .max()
            .unwrap_or(0);
        let activity = match left.saturating_sub(2) {
            room if room < 8 || longest == 0 => 0,
            room if room < 40 => room.min(longest.max(12)),
            room => longest.clamp(12, (room / 2).max(24)),
        };
        let rest = left.saturating_sub(if activity > 0 { activity + 2 } else { 0 });
        let past = if rest >= 14 { (rest - 2).min(120) } else { 0 };
        Self {
            cell,
            width,
            indent,
            past,
            activity,
            batches,
        }
    }

    pub(super) fn head(&self, view: &View<'_>) -> Line<'static> {
        let mut row = view.row(self.width);
        let glyphs = view.glyphs();
        let down = if view.state.reversed {
            glyphs.up
        } else {
            glyphs.down
        };
        let name = |row: &mut Row<'_>, text: &str, sort: Option<Sort>, cells: usize| {
            if sort == Some(view.state.sort) {
                row.space(cells.saturating_sub(text.len() + 1));
                row.text(Focus, down).text(Focus, text);
            } else {
                row.right(Dim, text, cells);
            }
        };
        row.space(self.indent);
        name(&mut row, "id", Some(Sort::Id), 3);
        name(&mut row, "pid", None, self.cell);
        row.space(2).padded(Dim, "now", 8);
        name(&mut row, "CPU", Some(Sort::Cpu), 6);
        name(&mut row, "delay", Some(Sort::Delay), 7);
        name(&mut row, "read/s", Some(Sort::Read), self.cell);
        if self.batches {
            name(&mut row, "batch/s", Some(Sort::Batches), self.cell);
        }
        name(&mut row, "load", Some(Sort::Load), self.cell);
        if self.past > 0 {
            let seconds = self.past as f64 * view.config.interval.as_secs_f64();
            row.space(2);
            row.padded(Dim, &format!("last {}", format::span(seconds)), self.past);
        }
        if self.activity > 0 {
            row.space(2).text(Dim, "in");
        }
        row.line()
    }

    pub(super) fn line(
        &self,
        view: &View<'_>,
        loader: &LoaderRates,
        worker: &WorkerRates,
    ) -> Line<'static> {
        let mut row = view.row(self.width);
        let (paint, word, _) = doing(now(view, worker), view.glyphs());
        row.space(self.indent)
            .space(3_usize.saturating_sub(worker.id.to_string().len()));
        row.styled(view.config.theme.hue(worker.id), &worker.id.to_string());
        row.right(Dim, &worker.pid().to_string(), self.cell);
        row.space(2).padded(paint, word, 8);
        let figure = |known: bool, paint| if known { paint } else { Unknown };
        row.right(figure(worker.cpu.is_some(), Cpu), &cpu(worker.cpu), 6);
        let delayed = worker.run_delay.is_some_and(|share| share.0 >= 0.1);
        let delay = if delayed {
            Runnable
        } else {
            figure(worker.run_delay.is_some(), Text)
        };
        row.right(delay, &format::percent(worker.run_delay), 7);
        let read = worker.read.map(|rate| rate.0);
        row.right(
            figure(read.is_some(), Read),
            &format::bytes(read),
            self.cell,
        );
        if self.batches {
            let batches = format::per_second(worker.batches_per_s);
            row.right(
                figure(worker.batches_per_s.is_some(), Text),
                &batches,
                self.cell,
            );
        }
        let load = figure(worker.load_ms.is_some(), Text);
        row.right(load, &format::millis(worker.load_ms), self.cell);
        if self.past > 0 {
            row.space(2);
            self.past(view, loader, worker, &mut row);
        }
        if self.activity > 0 {
            row.space(2);
            if let Some(activity) = worker.activity.first() {
                let share = format!(" {}", activity.share);
                let room = self.activity.saturating_sub(share.len());
                row.text(
                    Text,
                    &format::cut(short(&activity.name, room), room, view.glyphs().more),
                );
                row.text(Dim, &share);
            }
        }
        row.line()
    }

    /// What the worker did, a cell an interval, the newest on the right.
    fn past(&self, view: &View<'_>, loader: &LoaderRates, worker: &WorkerRates, row: &mut Row<'_>) {
        let Some(rank) = view.rank() else { return };
        let at = WorkerPlace {
            rank: rank.key,
            loader: loader.id,
            id: worker.id,
        };
        let states: Vec<Option<WorkerNow>> = view
            .history
            .workers
            .get(&at)
            .map(|ring| ring.last(self.past).collect())
            .unwrap_or_default();
        row.space(self.past.saturating_sub(states.len()));
        for state in states {
            match state {
                None => row.text(Border, view.glyphs().gap),
                Some(now) => {
                    let (paint, _, sign) = doing(now, view.glyphs());
                    row.text(paint, sign)
                }
            };
        }
    }
}

/// A function's name with less around it, where all does not fit: `__getitem__` of
/// `__getitem__ (train.py)`, `Image.resize` of `PIL.Image.resize`.
fn short(name: &str, room: usize) -> &str {
    if format::width(name) <= room {
        return name;
    }
    let mut rest = name.split(" (").next().unwrap_or(name);
    while format::width(rest) > room {
        match rest.split_once('.') {
            Some((_, inner)) if !inner.is_empty() => rest = inner,
            _ => break,
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_name_loses_its_surroundings_first() {
        assert_eq!(
            short("__getitem__ (train.py)", 22),
            "__getitem__ (train.py)"
        );
        assert_eq!(short("__getitem__ (train.py)", 21), "__getitem__");
        assert_eq!(short("PIL.Image.resize", 12), "Image.resize");
        assert_eq!(short("a_very_long_name", 4), "a_very_long_name");
    }
}
