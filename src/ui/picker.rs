//! The list of jobs, where there are several: what each loses and why, to choose one.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::filter::jobs_found;
use super::layout::BorderStyle;
use super::line_builder::LineBuilder;
use super::state::Panel;
use super::table::{self, Column};
use super::verdict::paint_of;
use super::{ListedJob, View, empty, format, panel};
use crate::action::Action;
use crate::config::Role::{self, Dim, Focus, Key, Text, Unknown};

/// What stands before the command, which takes the room that is left: name and cells of each column.
const COLUMNS: [(&str, usize); 11] = [
    ("pid", 8),
    ("user", 10),
    ("run", 14),
    ("ranks", 7),
    ("workers", 8),
    (VERDICT, 21),
    ("lost", 6),
    ("cause", 20),
    ("batches/s", 11),
    ("GPUs", 8),
    ("up", 10),
];
const VERDICT: &str = "verdict";
/// Those of words, which stand on the left.
const WORDS: [&str; 5] = ["user", "run", VERDICT, "cause", "GPUs"];
/// Columns that give way where there is no room for all, the first one first.
const GIVE_WAY: [&str; 10] = [
    "up",
    "user",
    "run",
    "GPUs",
    "ranks",
    "batches/s",
    "workers",
    "cause",
    "lost",
    VERDICT,
];
/// Cells that a command needs to be known by.
const COMMAND: usize = 12;

pub(super) fn draw(view: &View<'_>, frame: &mut Frame<'_>, area: Rect, jobs: &[ListedJob]) {
    let body = empty::ends(view, frame, area);
    let border = if body.height >= 5 && body.width >= 30 {
        BorderStyle::Boxed
    } else {
        BorderStyle::Bare
    };
    let name = format!("choose one of {} jobs", jobs.len());
    let filter = &view.state.filter;
    let found = jobs_found(jobs, filter);
    let remark = if filter.is_set() {
        format!("{} matching `{}`", found.len(), filter.text().trim())
    } else {
        String::new()
    };
    let inner = panel::open(view, frame, body, border, Panel::Verdict, &name, &remark);
    let columns = columns(usize::from(inner.width), jobs);
    let mut head = view.row(inner.width);
    head.space(1);
    let shown: Vec<Column> = columns.iter().map(|(_, column)| column.clone()).collect();
    table::head(&mut head, &shown, "");
    let mut lines = vec![head.line()];
    let room = usize::from(inner.height).saturating_sub(1);
    let picked = view.state.picked.min(found.len().saturating_sub(1));
    // The marked line stays in sight.
    let shown = panel::window(
        found.len(),
        room,
        picked.saturating_sub(room.saturating_sub(1)),
    );
    if found.is_empty() {
        lines.push(nothing(view, inner.width));
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

/// Those that there is room for and something to say in, with their names.
fn columns(width: usize, jobs: &[ListedJob]) -> Vec<(&'static str, Column)> {
    let figures = || jobs.iter().filter_map(|job| job.figures.as_ref());
    let mut shown = COLUMNS.to_vec();
    shown.retain(|(name, _)| match *name {
        "run" => figures().any(|known| known.run.is_some()),
        "GPUs" => figures().any(|known| !known.gpus.is_empty()),
        _ => true,
    });
    let mut gives_way = GIVE_WAY.iter();
    let left = |shown: &[(&str, usize)]| {
        let taken: usize = shown.iter().map(|(_, cells)| cells).sum();
        width.saturating_sub(1 + taken)
    };
    while left(&shown) < COMMAND {
        let Some(first) = gives_way.next() else {
            break;
        };
        shown.retain(|(name, _)| name != first);
    }
    let command = left(&shown);
    let column = |(name, cells): (&'static str, usize)| {
        let column = if WORDS.contains(&name) {
            Column::words(name, cells)
        } else {
            Column::figures(name, cells)
        };
        (name, column)
    };
    let mut columns: Vec<_> = shown.into_iter().map(column).collect();
    columns.push(("command", Column::words("command", command)));
    columns
}

fn cell(row: &mut LineBuilder<'_>, name: &str, column: &Column, job: &ListedJob, marked: bool) {
    let text = if marked { Focus } else { Text };
    let known = job.figures.as_ref();
    let none = || (Dim, "-".to_owned());
    let figure = |value: Option<String>| value.map_or_else(none, |value| (Text, value));
    let (paint, value): (Role, String) = match name {
        "pid" => (text, job.found.pid.to_string()),
        "user" => figure(known.and_then(|known| known.user.clone())),
        "run" => figure(known.and_then(|known| known.run.clone())),
        "ranks" => (Text, job.found.ranks.to_string()),
        "workers" => {
            let now = known.map(|known| known.workers);
            (Text, now.unwrap_or(job.found.workers).to_string())
        }
        VERDICT => match known {
            Some(known) => (
                paint_of(known.kind, known.cause),
                known.kind.words().to_owned(),
            ),
            None => (Unknown, "-".to_owned()),
        },
        "lost" => {
            let lost = known.and_then(|known| known.lost);
            figure(lost.map(|lost| format::percent(Some(lost))))
        }
        "cause" => figure(known.and_then(|known| Some(known.cause?.to_string()))),
        "batches/s" => {
            let rate = known.and_then(|known| known.batches_per_s);
            figure(rate.map(|rate| format::per_second(Some(rate))))
        }
        "GPUs" => {
            let gpus = known.filter(|known| !known.gpus.is_empty());
            figure(gpus.map(|known| spans(&known.gpus)))
        }
        "up" => {
            let up = known.and_then(|known| known.up);
            figure(up.map(|up| format::clock(up.as_secs())))
        }
        _ => (text, job.found.command.clone()),
    };
    column.put(row, paint, &value);
}

/// `0-3,6`.
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

/// The filter matches no job.
fn nothing(view: &View<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    row.space(2).text(Dim, "no match");
    if let Some(key) = view.config.keys.keys(Action::Cancel).first() {
        row.item(
            0,
            &[(Dim, "; "), (Key, &key.to_string()), (Dim, " shows all")],
        );
    }
    row.line()
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
    fn what_is_needed_least_gives_way_first() {
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
