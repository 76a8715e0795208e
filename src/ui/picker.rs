//! The list of several jobs to choose from: what each loses and why.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::filter::matching_jobs;
use super::layout::BorderStyle;
use super::line_builder::LineBuilder;
use super::state::Panel;
use super::table::{self, TableColumn};
use super::verdict::paint_of;
use super::{JobFigures, ListedJob, View, empty, format, panel};
use crate::config::Role::{self, Dim, Focus, Text, Unknown};
use crate::job::script;

const VERDICT: &str = "verdict";
/// The columns before the command, which takes the remaining width: name and cells of each, whether it holds words,
/// which are left-aligned, and its turn to be dropped if not all fit.
const COLUMNS: [(&str, usize, bool, usize); 11] = [
    ("pid", 8, false, KEPT),
    ("user", 10, true, 2),
    ("run", 14, true, 3),
    ("ranks", 7, false, 5),
    ("workers", 8, false, 7),
    (VERDICT, 21, true, 10),
    ("lost", 6, false, 9),
    ("cause", 20, true, 8),
    ("batches/s", 11, false, 6),
    ("GPUs", 8, true, 4),
    ("up", 10, false, 1),
];
const KEPT: usize = 11;
/// Least cells of the command, enough to recognise it.
const COMMAND: usize = 12;

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, jobs: &[ListedJob]) {
    let body = empty::draw_header_and_footer(view, frame, area);
    let border = BorderStyle::boxed_if(body.height >= 5 && body.width >= 30);
    let name = format!("choose one of {} jobs", jobs.len());
    let filter = &view.state.filter;
    let found = matching_jobs(jobs, filter);
    let remark = if filter.is_set() {
        format!("{} matching `{}`", found.len(), filter.text().trim())
    } else {
        String::new()
    };
    let inner = panel::open(view, frame, body, border, Panel::Verdict, &name, &remark);
    let columns = columns(usize::from(inner.width), jobs);
    let mut head = view.row(inner.width);
    head.space(1);
    let shown: Vec<TableColumn> = columns.iter().map(|(_, column)| column.clone()).collect();
    table::head(&mut head, &shown, "");
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
    for (place, job) in found.iter().enumerate().take(shown.end).skip(shown.start) {
        let marked = place == picked;
        let mut row = view.row(inner.width);
        row.text(Focus, if marked { view.glyphs().mark } else { " " });
        for (name, column) in &columns {
            cell(&mut row, name, column, job, marked);
        }
        lines.push(row.line());
    }
    panel::write(frame, inner, lines);
}

/// Returns the columns that fit and have something to show, with their names.
fn columns(width: usize, jobs: &[ListedJob]) -> Vec<(&'static str, TableColumn)> {
    let figures = || jobs.iter().filter_map(|job| job.figures.as_ref());
    let mut shown = COLUMNS.to_vec();
    shown.retain(|(name, ..)| match *name {
        "run" => figures().any(|known| known.run.is_some()),
        "GPUs" => figures().any(|known| !known.gpus.is_empty()),
        _ => true,
    });
    let left = |shown: &[(&str, usize, bool, usize)]| {
        let taken: usize = shown.iter().map(|(_, cells, ..)| cells).sum();
        width.saturating_sub(1 + taken)
    };
    for turn in 1..KEPT {
        if left(&shown) < COMMAND {
            shown.retain(|(.., dropped)| *dropped != turn);
        }
    }
    let command = left(&shown);
    let column = |(name, cells, words, _)| {
        if words {
            (name, TableColumn::words(name, cells))
        } else {
            (name, TableColumn::figures(name, cells))
        }
    };
    let mut columns: Vec<_> = shown.into_iter().map(column).collect();
    columns.push(("command", TableColumn::words("command", command)));
    columns
}

fn cell(
    row: &mut LineBuilder<'_>,
    name: &str,
    column: &TableColumn,
    job: &ListedJob,
    marked: bool,
) {
    let text = if marked { Focus } else { Text };
    let known = job.figures.as_ref();
    let figure = |of: fn(&JobFigures) -> Option<String>| {
        let value = known.and_then(of);
        value.map_or_else(|| (Dim, "-".to_owned()), |value| (Text, value))
    };
    let (paint, value): (Role, String) = match name {
        "pid" => (text, job.found.pid.to_string()),
        "user" => figure(|job| job.user.clone()),
        "run" => figure(|job| job.run.clone()),
        "ranks" => (Text, job.found.ranks.to_string()),
        "workers" => {
            let now = known.map(|known| known.workers);
            (Text, now.unwrap_or(job.found.workers).to_string())
        }
        VERDICT => known.map_or_else(
            || (Unknown, "-".to_owned()),
            |job| (paint_of(job.kind, job.cause), job.kind.words().to_owned()),
        ),
        "lost" => figure(|job| Some(job.lost?.to_string())),
        "cause" => figure(|job| Some(job.cause?.to_string())),
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
        let names = |width| -> Vec<&str> {
            let columns = columns(width, &[]);
            columns.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(196).len(), 10);
        for width in 0..200 {
            let cells: usize = columns(width, &[])
                .iter()
                .map(|(_, column)| column.cells())
                .sum();
            assert!(cells < width.max(10), "{width}");
        }
        assert_eq!(names(26), ["pid", "command"]);
        assert_eq!(
            names(78),
            ["pid", "workers", VERDICT, "lost", "cause", "command"]
        );
    }
}
