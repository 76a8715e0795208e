//! The list of several jobs to choose from: what each loses and why.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::filter::matching_jobs;
use super::layout::BorderStyle;
use super::line_builder::LineBuilder;
use super::table::{self, COLUMN_GAP, KEPT, TableColumn};
use super::verdict::paint_of;
use super::{JobFigures, ListedJob, View, empty, format, panel};
use crate::config::Role::{self, Dim, Focus, Text, Unknown};
use crate::job::script;
use crate::verdict::Cause;

/// The columns before the command, which takes the remaining width, each with its turn: if not all fit, the lowest turn
/// is dropped first.
const COLUMNS: [(TableColumn, usize); 11] = [
    (TableColumn::figures("pid", 8), KEPT),
    (TableColumn::words("user", 10), 2),
    (TableColumn::words("run", 14), 5),
    (TableColumn::figures("ranks", 7), 3),
    (TableColumn::figures("workers", 8), 7),
    (TableColumn::words("verdict", 21), 10),
    (TableColumn::figures("lost", 6), 9),
    (TableColumn::words("cause", CAUSE), 8),
    (TableColumn::figures("batches/s", 11), 6),
    (TableColumn::words("GPUs", 8), 4),
    (TableColumn::figures("up", 10), 1),
];
/// Least cells of the cause, with the gap before it.
const CAUSE: usize = 20;
/// Least cells of the command, enough to recognise it.
const COMMAND: usize = 19;

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, jobs: &[ListedJob]) {
    let body = empty::draw_header_and_footer(view, frame, area);
    let border = BorderStyle::boxed_if(body.height >= 5 && body.width >= 30);
    let name = match view.state.replay {
        // The recording contains only what was chosen when it was made.
        Some(_) => format!("{} jobs, none chosen yet", jobs.len()),
        None => format!("choose one of {} jobs", jobs.len()),
    };
    let filter = &view.state.filter;
    let found = matching_jobs(jobs, filter);
    let remark = if filter.is_set() {
        format!("{} matching `{}`", found.len(), filter.text.trim())
    } else {
        String::new()
    };
    let inner = panel::open(view, frame, body, border, &name, &remark);
    let columns = columns(usize::from(inner.width), jobs);
    let mut head = view.row(inner.width);
    head.space(1);
    table::head(&mut head, &columns, "");
    let mut lines = vec![head.line()];
    let room = usize::from(inner.height).saturating_sub(1);
    let picked = view.state.picked.min(found.len().saturating_sub(1));
    // The marked line stays visible.
    let shown = panel::window(
        found.len(),
        room,
        picked.saturating_sub(room.saturating_sub(1)),
    );
    if found.is_empty() {
        lines.push(view.no_match(inner.width, 2));
    }
    for place in shown {
        let marked = place == picked;
        let mut row = view.row(inner.width);
        row.text(Focus, if marked { view.glyphs().mark } else { " " });
        for column in &columns {
            cell(&mut row, column, found[place], marked);
        }
        lines.push(row.line());
    }
    panel::write(frame, inner, lines);
}

/// Returns the columns that fit and have something to show.
fn columns(width: usize, jobs: &[ListedJob]) -> Vec<TableColumn> {
    let figures = || jobs.iter().filter_map(|job| job.figures.as_ref());
    let mut shown = COLUMNS.to_vec();
    shown.retain(|(column, _)| match column.head() {
        "run" => figures().any(|known| known.run.is_some()),
        "GPUs" => figures().any(|known| !known.gpus.is_empty()),
        _ => true,
    });
    // The cause is cut only where it would otherwise not be shown.
    let words = figures().filter_map(|known| known.cause.map(Cause::words));
    let widest = COLUMN_GAP + words.map(format::width).max().unwrap_or(0);
    let fitting = |cells| {
        let mut columns = shown.clone();
        let mut cause = columns.iter_mut().map(|(column, _)| column);
        if let Some(cause) = cause.find(|column| column.head() == "cause") {
            *cause = TableColumn::words("cause", cells);
        }
        let shown = table::fitting(columns, width.saturating_sub(1 + COMMAND));
        shown.into_iter().map(|(_, column)| column).collect()
    };
    let has_cause = |columns: &Vec<_>| columns.iter().any(|it: &TableColumn| it.head() == "cause");
    let mut widths = (CAUSE..=widest.max(CAUSE)).rev().map(fitting);
    let mut shown = widths.find(has_cause).unwrap_or_else(|| fitting(CAUSE));
    let taken: usize = shown.iter().map(TableColumn::cells).sum();
    let left = width.saturating_sub(1 + taken);
    shown.push(TableColumn::words("command", left));
    shown
}

fn cell(row: &mut LineBuilder<'_>, column: &TableColumn, job: &ListedJob, marked: bool) {
    let text = if marked { Focus } else { Text };
    let known = job.figures.as_ref();
    let figure = |of: fn(&JobFigures) -> Option<String>| {
        let value = known.and_then(of);
        value.map_or_else(|| (Dim, "-".to_owned()), |value| (Text, value))
    };
    let (paint, value): (Role, String) = match column.head() {
        "pid" => (text, job.found.pid.to_string()),
        "user" => figure(|job| job.user.clone()),
        "run" => figure(|job| job.run.clone()),
        "ranks" => (Text, job.found.ranks.to_string()),
        "workers" => {
            let now = known.map(|known| known.workers);
            (Text, now.unwrap_or(job.found.workers).to_string())
        }
        "verdict" => known.map_or_else(
            || (Unknown, "-".to_owned()),
            |job| (paint_of(job.kind, job.cause), job.kind.words().to_owned()),
        ),
        "lost" => figure(|job| Some(job.lost?.to_string())),
        "cause" => figure(|job| Some(job.cause?.words().to_owned())),
        "batches/s" => figure(|job| Some(format::per_second(Some(job.batches_per_s?)))),
        "GPUs" => figure(|job| (!job.gpus.is_empty()).then(|| spans(&job.gpus))),
        "up" => figure(|job| Some(format::clock(job.up?.as_secs()))),
        _ => (text, script(&job.found.command)),
    };
    column.put(row, paint, &value);
}

/// Formats numbers as ranges: `0-3,6`.
fn spans(numbers: &[u32]) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => spans.push((*number, *number)),
        }
    }
    let written = spans.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    written.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_span() {
        assert_eq!(spans(&[0, 1, 2, 3, 6, 8, 9]), "0-3,6,8-9");
        assert_eq!(spans(&[5]), "5");
    }

    #[test]
    fn the_least_needed_column_is_dropped_first() {
        let names = |width| -> Vec<String> {
            let columns = columns(width, &[]).into_iter();
            columns.map(|column| column.head().to_owned()).collect()
        };
        assert_eq!(names(196).len(), 10);
        for width in 0..200 {
            let cells: usize = columns(width, &[]).iter().map(TableColumn::cells).sum();
            assert!(cells < width.max(10), "{width}");
            let command = columns(width, &[]).last().map_or(0, TableColumn::cells);
            assert!(width < 32 || command >= COMMAND, "{width}");
        }
        assert_eq!(names(26), ["pid", "command"]);
        assert_eq!(names(78), ["pid", "verdict", "lost", "cause", "command"]);
    }
}
