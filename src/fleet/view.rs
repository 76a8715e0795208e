//! The picture of the fleet: a line for each run, or for each rank of one, and what marks them. Pure.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::report::{FleetRank, RunReport};
use super::state::{FleetScreen, Page};
use super::table::{self, Column};
use crate::action::Action;
use crate::config::Role::{self, Compute, Dim, Focus, Key, Text, Trouble, Unknown, Wait};
use crate::ui::format::clock;
use crate::ui::glyphs;
use crate::ui::line_builder::LineBuilder;
use crate::ui::panel::write;

/// Columns of air between two columns.
const AIR: usize = 2;

pub(super) fn draw(screen: &FleetScreen, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let body = area.height.saturating_sub(2);
    let mut lines = vec![title(screen, area.width)];
    lines.extend(rows(screen, area.width, usize::from(body)));
    write(
        frame,
        Rect {
            height: area.height - 1,
            ..area
        },
        lines,
    );
    let last = Rect {
        y: area.bottom() - 1,
        height: 1,
        ..area
    };
    write(frame, last, vec![footer(screen, area.width)]);
}

fn line(screen: &FleetScreen, width: u16) -> LineBuilder<'_> {
    LineBuilder::new(&screen.config.theme, glyphs::of(&screen.config), width)
}

/// Whose runs these are, and how old what is shown is.
fn title(screen: &FleetScreen, width: u16) -> Line<'static> {
    let mut row = line(screen, width);
    row.text(Text, " fleet  ").text(Dim, &screen.url);
    if let Page::Ranks(run) = &screen.page {
        row.text(Dim, "  run ").text(Focus, run);
    }
    let age = screen
        .age
        .map(|age| format!("read {} ago ", clock(age.as_secs())));
    match (&screen.trouble, age) {
        (Some(trouble), age) => {
            row.text(Text, "  ").sentence(Trouble, trouble);
            if let Some(age) = age {
                row.text(Dim, "  ").text(Trouble, age.trim_end());
            }
        }
        (None, Some(age)) => {
            row.at_end(&[(Dim, &age)]);
        }
        (None, None) => {
            row.text(Dim, "  reading");
        }
    }
    row.line()
}

/// The head of the table and what is in sight of it.
fn rows(screen: &FleetScreen, width: u16, room: usize) -> Vec<Line<'static>> {
    let runs = screen.runs();
    match &screen.page {
        Page::Runs => {
            let cells: Vec<_> = runs
                .iter()
                .map(|run| table::cells(run, screen.config.ascii).to_vec())
                .collect();
            let roles: Vec<_> = runs.iter().map(run_roles).collect();
            if runs.is_empty() && screen.report.is_some() {
                let mut row = line(screen, width);
                row.text(Text, " ").sentence(Unknown, table::NO_RUNS);
                return vec![Line::default(), row.line()];
            }
            marked(screen, width, room, &table::RUNS, &cells, &roles)
        }
        Page::Ranks(_) => {
            let ranks = screen.ranks();
            let cells: Vec<_> = ranks
                .iter()
                .map(|rank| table::rank_cells(rank).to_vec())
                .collect();
            let roles: Vec<_> = ranks.iter().map(rank_roles).collect();
            marked(screen, width, room, &table::RANKS, &cells, &roles)
        }
    }
}

/// The colour of a cell, by its column.
type Roles = fn(usize) -> Role;

fn run_roles(run: &RunReport) -> Roles {
    match run.verdict.as_deref() {
        Some("data-bound") => |column| match column {
            table::VERDICT | table::LOST | table::HISTORY => Wait,
            _ => Text,
        },
        Some("compute-bound") => |column| match column {
            table::VERDICT => Compute,
            _ => Text,
        },
        Some("stalled") => |column| match column {
            table::VERDICT => Trouble,
            _ => Text,
        },
        None | Some("unknown") => |_| Unknown,
        Some(_) => |_| Text,
    }
}

fn rank_roles(rank: &FleetRank) -> Roles {
    if rank.straggler { |_| Wait } else { |_| Text }
}

fn marked(
    screen: &FleetScreen,
    width: u16,
    room: usize,
    columns: &[Column],
    rows: &[Vec<String>],
    roles: &[Roles],
) -> Vec<Line<'static>> {
    let widths = table::widths(columns, rows);
    let shown = match screen.page {
        Page::Runs => table::fitting(&widths, usize::from(width.saturating_sub(1))),
        Page::Ranks(_) => (0..columns.len()).collect(),
    };
    let mut head = line(screen, width);
    head.space(1);
    for column in &shown {
        let (name, left) = columns[*column];
        put(&mut head, Dim, name, widths[*column], left);
    }
    let mut lines = vec![head.line()];
    let room = room.saturating_sub(1);
    // The marked line stays in sight.
    let first = screen.picked.saturating_sub(room.saturating_sub(1));
    let stale = screen.trouble.is_some();
    let all = rows.iter().zip(roles).enumerate();
    for (place, (row, role)) in all.skip(first).take(room) {
        let picked = place == screen.picked;
        let mut out = line(screen, width);
        let mark = if picked { out.glyphs().mark } else { " " };
        out.text(Focus, mark).stale(stale);
        for column in &shown {
            let role = if picked && *column == 0 {
                Focus
            } else {
                role(*column)
            };
            put(
                &mut out,
                role,
                &row[*column],
                widths[*column],
                columns[*column].1,
            );
        }
        lines.push(out.line());
    }
    lines
}

fn put(row: &mut LineBuilder<'_>, role: Role, text: &str, cells: usize, left: bool) {
    if left {
        row.padded(role, text, cells);
    } else {
        row.right(role, text, cells);
    }
    row.space(AIR);
}

/// The keys, or the command that opens the screen where the marked rank runs.
fn footer(screen: &FleetScreen, width: u16) -> Line<'static> {
    let mut row = line(screen, width);
    let keys: &[(Action, &str)] = match screen.page {
        Page::Runs => &[(Action::Select, "ranks"), (Action::Quit, "quit")],
        Page::Ranks(_) => &[(Action::Cancel, "runs"), (Action::Quit, "quit")],
    };
    for (action, words) in keys {
        if let Some(key) = screen.config.keys.keys(*action).first() {
            row.space(1).item(
                0,
                &[
                    (Key, &key.to_string()),
                    (Dim, " "),
                    (Dim, words),
                    (Dim, " "),
                ],
            );
        }
    }
    if let Some(command) = screen.command() {
        row.space(1)
            .item(0, &[(Dim, "look there: "), (Text, &command)]);
    }
    row.line()
}
