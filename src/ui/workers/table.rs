//! A line for each worker, with as many columns as fit.

use ratatui::text::Line;

use crate::config::Column;
use crate::config::Role::{self, Border, Cpu, Dim, Focus, Read, Runnable, Text};
use crate::model::WorkerPlace;
use crate::model::rates::{LoaderRates, WorkerRates};
use crate::sample::WorkerNow;
use crate::ui::glyphs::{GAP, doing};
use crate::ui::line_builder::LineBuilder;
use crate::ui::panel::Inside;
use crate::ui::pipeline::batch;
use crate::ui::table::{self, COLUMN_GAP, TableColumn};
use crate::ui::{View, axis, format, timeline};

/// A worker with its loader.
pub(super) type WorkerRow<'a> = (&'a LoaderRates, &'a WorkerRates);

/// The columns that fit.
pub(super) struct Columns {
    inside: Inside,
    /// Cells of the worker's number, with its loader's before it if there are several.
    id: usize,
    shown: Vec<(Column, TableColumn)>,
    /// The timeline shows each worker's states over time.
    drawn: bool,
}

impl Columns {
    pub(super) fn new(view: &View<'_>, all: &[WorkerRow<'_>], inside: Inside) -> Self {
        let (width, indent) = (inside.width, inside.border.indent());
        let id = if view.loaders().len() > 1 { 6 } else { 3 };
        let figure = if width < 100 { 8 } else { 9 };
        // If the timeline shows the states at a finer resolution, the table sums them up.
        let drawn = timeline::is_on_main_page(view);
        let described = |column, [batches, activity, past]: [usize; 3]| match column {
            Column::Pid => TableColumn::figures("pid", figure),
            Column::Now => TableColumn::words("now", COLUMN_GAP + 8),
            Column::Cpu => TableColumn::figures("CPU", 6),
            Column::Delay => TableColumn::figures("delay", 7),
            Column::Read => TableColumn::figures("read/s", figure),
            Column::Batches => TableColumn::figures("batch/s", batches),
            Column::Load => TableColumn::figures("load", figure),
            Column::Past if drawn => TableColumn::words("its time", past),
            Column::Past => TableColumn::words("", past).named(axis::words(view)),
            Column::In => TableColumn::words("in", activity),
        };
        let columns = view.config.columns.iter().copied();
        let chosen = |column| view.config.columns.contains(&column);
        let fixed = columns
            .clone()
            .map(|column| described(column, [0; 3]).cells());
        // The three columns of variable width share what the others leave.
        let mut left = usize::from(width).saturating_sub(indent + id + fixed.sum::<usize>());
        let fits = chosen(Column::Batches) && left >= figure;
        let batches = if fits { figure } else { 0 };
        left -= batches;
        let longest = all
            .iter()
            .filter_map(|(_, worker)| worker.activity.first())
            .map(|activity| format::width(&activity.name) + 6)
            .max()
            .filter(|_| chosen(Column::In))
            .unwrap_or(0);
        let activity = match left.saturating_sub(COLUMN_GAP) {
            room if room < 8 || longest == 0 => 0,
            room if room < 40 => room.min(longest.max(12)) + COLUMN_GAP,
            room => longest.clamp(12, (room / 2).max(24)) + COLUMN_GAP,
        };
        left -= activity;
        let fits = chosen(Column::Past) && left >= 14;
        let past = if fits { left.min(120 + COLUMN_GAP) } else { 0 };
        let shown = columns.map(|column| {
            let sorted = view.state.sort == Some(column);
            let described = described(column, [batches, activity, past]);
            (column, described.sorted(sorted))
        });
        let mut room = usize::from(width).saturating_sub(indent + id);
        let fits = |(_, column): &(Column, TableColumn)| {
            let fits = (1..=room).contains(&column.cells());
            room -= if fits { column.cells() } else { 0 };
            fits
        };
        Self {
            inside,
            id,
            shown: shown.filter(fits).collect(),
            drawn,
        }
    }

    pub(super) fn head(&self, view: &View<'_>) -> Line<'static> {
        let mut row = self.inside.row(view);
        let id = TableColumn::figures("id", self.id).sorted(view.state.sort.is_none());
        let shown = self.shown.iter().map(|(_, column)| column);
        let columns = std::iter::once(&id).chain(shown);
        table::head(&mut row, columns, view.glyphs().order(view.state.reversed));
        row.line()
    }

    pub(super) fn line(
        &self,
        view: &View<'_>,
        (loader, worker): WorkerRow<'_>,
        marked: bool,
    ) -> Line<'static> {
        let mut row = self.inside.row(view);
        let id = view.worker_id(loader, worker.id);
        let mut air = self.id.saturating_sub(id.len());
        if marked && air > 0 {
            row.text(Focus, view.glyphs().mark);
            air -= 1;
        }
        row.space(air).styled(view.config.theme.hue(worker.id), &id);
        let mut end = self.inside.border.indent() + self.id;
        for (column, drawn) in &self.shown {
            let words = drawn.cells().saturating_sub(COLUMN_GAP);
            match column {
                Column::Past if self.drawn => {
                    row.space(COLUMN_GAP);
                    batch::of_worker(view, worker, &mut row, words);
                }
                Column::Past => {
                    row.space(COLUMN_GAP);
                    past(view, loader, worker, words, &mut row);
                }
                Column::In => {
                    row.space(COLUMN_GAP);
                    activity(view, worker, words, &mut row);
                }
                Column::Now => {
                    let (paint, word, _) = doing(view.worker_now(worker), view.glyphs());
                    drawn.put(&mut row, paint, word);
                }
                column => {
                    let (paint, text) = figure(*column, worker);
                    drawn.put(&mut row, paint, &text);
                }
            }
            end += drawn.cells();
            row.to(end);
        }
        row.line()
    }
}

/// Returns the text of a column with a single figure.
fn figure(column: Column, worker: &WorkerRates) -> (Role, String) {
    match column {
        Column::Cpu => (Cpu, format::cores(worker.cpu)),
        Column::Delay => {
            let delayed = worker.run_delay.is_some_and(|share| share.0 >= 0.1);
            let paint = if delayed { Runnable } else { Text };
            (paint, format::percent(worker.run_delay))
        }
        Column::Read => (Read, format::bytes(worker.read.map(|rate| rate.0))),
        Column::Batches => (Text, format::per_second(worker.batches_per_s)),
        Column::Load => (Text, format::millis(worker.load_ms)),
        Column::Pid | Column::Now | Column::Past | Column::In => (Dim, worker.pid().to_string()),
    }
}

/// Draws the function that takes most of its time.
fn activity(view: &View<'_>, worker: &WorkerRates, cells: usize, row: &mut LineBuilder<'_>) {
    if let Some(activity) = worker.activity.first() {
        let share = format!(" {}", activity.share);
        let room = cells.saturating_sub(share.len());
        let name = format::cut(short(&activity.name, room), room, view.glyphs().more);
        row.text(Text, &name).text(Dim, &share);
    }
}

/// Returns the worker's states over the shown time, the newest last.
pub(crate) fn states(
    view: &View<'_>,
    loader: &LoaderRates,
    worker: &WorkerRates,
    cells: usize,
) -> Vec<Option<WorkerNow>> {
    let place = view
        .rank()
        .map(|rank| WorkerPlace::new(rank.key, loader.id, worker.id));
    let axis = axis::of(view, cells).zip(place);
    axis.map_or_else(Vec::new, |(axis, place)| view.history.states(&axis, place))
}

/// Draws the worker's states over time at the right end of the room.
fn past(
    view: &View<'_>,
    loader: &LoaderRates,
    worker: &WorkerRates,
    cells: usize,
    row: &mut LineBuilder<'_>,
) {
    let states = states(view, loader, worker, cells);
    let cursor = axis::cursor(view, cells);
    row.space(cells.saturating_sub(states.len()));
    for (cell, state) in states.into_iter().enumerate() {
        let now = state.map(|now| doing(now, view.glyphs()));
        let (paint, _, sign) = now.unwrap_or((Border, "", GAP));
        row.text(if cursor == Some(cell) { Focus } else { paint }, sign);
    }
}

/// Shortens a function's name if it does not fit: `__getitem__` for `__getitem__ (train.py)`, `Image.resize` for
/// `PIL.Image.resize`.
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
    fn a_name_is_shortened_from_its_module_first() {
        assert_eq!(
            short("__getitem__ (train.py)", 22),
            "__getitem__ (train.py)"
        );
        assert_eq!(short("__getitem__ (train.py)", 21), "__getitem__");
        assert_eq!(short("PIL.Image.resize", 12), "Image.resize");
        assert_eq!(short("a_very_long_name", 4), "a_very_long_name");
    }
}
