//! Draws the fleet screen into a frame: a line per run, or per rank of one run. Does no I/O.

use ratatui::Frame;
use ratatui::text::Line;

use super::report::{FleetRank, RunReport};
use super::state::FleetScreen;
use super::table::{self, FleetColumn};
use crate::action::Action;
use crate::config::Role::{self, Compute, Dim, Focus, Key, Text, Trouble, Unknown, Wait};
use crate::ui::format::clock;
use crate::ui::glyphs;
use crate::ui::layout::take_last;
use crate::ui::line_builder::LineBuilder;
use crate::ui::panel::write;

/// Height up to which all lines are left to the table.
const LOW: u16 = 4;
const NO_RANKS: &str = "no rank of this run was seen in the last two minutes";
/// Number of spaces between two columns.
const COLUMN_GAP: usize = 2;

pub(super) fn draw(screen: &FleetScreen, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let mut rest = area;
    let last = take_last(&mut rest, 1);
    write(frame, last, vec![footer(screen, area.width)]);
    if let Some(command) = screen.command() {
        let mut row = line(screen, area.width);
        row.text(Dim, " look there: ").text(Text, &command);
        let above = take_last(&mut rest, 1);
        write(frame, above, vec![row.line()]);
    }
    let mut lines = vec![title(screen, area.width)];
    if let Some(trouble) = &screen.trouble {
        let mut row = line(screen, area.width);
        if let Some(age) = age(screen) {
            row.space(1).text(Trouble, &age).space(1);
        }
        row.space(1).sentence(Trouble, trouble);
        lines.push(row.line());
    }
    lines.extend(note(screen, area.width).filter(|_| rest.height > LOW));
    let body = usize::from(rest.height).saturating_sub(lines.len());
    lines.extend(rows(screen, area.width, body));
    write(frame, rest, lines);
}

/// Returns what the server says of its figures, for example that it could not read all of them.
fn note(screen: &FleetScreen, width: u16) -> Option<Line<'static>> {
    let warnings = &screen.report.as_ref()?.warnings;
    let more = match warnings.len() {
        0 | 1 => String::new(),
        all => format!(" (and {} more)", all - 1),
    };
    let mut row = line(screen, width);
    row.text(Dim, " note: ")
        .sentence(Text, &format!("{}{more}", warnings.first()?));
    Some(row.line())
}

fn line(screen: &FleetScreen, width: u16) -> LineBuilder<'_> {
    LineBuilder::new(&screen.config.theme, glyphs::of(&screen.config), width)
}

/// Returns the title: the server, the run, and the age of the figures unless they are out of date.
fn title(screen: &FleetScreen, width: u16) -> Line<'static> {
    let mut row = line(screen, width);
    row.text(Text, " fleet  ").text(Dim, &screen.url);
    if let Some(run) = &screen.page {
        row.text(Dim, "  run ").text(Focus, run);
    }
    match (&screen.trouble, age(screen)) {
        (Some(_), _) => {}
        (None, Some(age)) => {
            row.at_end(&[(Dim, &format!("{age} "))]);
        }
        (None, None) => {
            row.text(Dim, "  reading");
        }
    }
    row.line()
}

fn age(screen: &FleetScreen) -> Option<String> {
    let age = screen.age?;
    Some(format!("read {} ago", clock(age.as_secs())))
}

/// Returns the head of the table and the visible rows.
fn rows(screen: &FleetScreen, width: u16, room: usize) -> Vec<Line<'static>> {
    let (runs, ranks) = (screen.runs().iter(), screen.ranks().iter());
    let (columns, cells, roles, none): (&[FleetColumn], Vec<_>, Vec<_>, _) = match screen.page {
        None => (
            &table::RUNS,
            runs.clone()
                .map(|run| table::cells(run, screen.config.ascii))
                .collect(),
            runs.map(run_roles).collect(),
            table::NO_RUNS,
        ),
        Some(_) => (
            &table::RANKS,
            ranks.clone().map(table::rank_cells).collect(),
            ranks.map(rank_roles).collect(),
            NO_RANKS,
        ),
    };
    if cells.is_empty() && screen.report.is_some() {
        let mut row = line(screen, width);
        row.text(Text, " ").sentence(Unknown, none);
        return vec![Line::default(), row.line()];
    }
    marked(screen, width, room, columns, &cells, &roles)
}

/// Returns the role (colour) of a cell, by its column.
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
    columns: &[FleetColumn],
    rows: &[Vec<String>],
    roles: &[Roles],
) -> Vec<Line<'static>> {
    let widths = table::widths(columns, rows);
    let shown = match screen.page {
        None => table::fitting(&widths, usize::from(width.saturating_sub(1))),
        Some(_) => (0..columns.len()).collect(),
    };
    let mut head = line(screen, width);
    head.space(1);
    for column in &shown {
        let (name, left) = columns[*column];
        put(&mut head, Dim, name, widths[*column], left);
    }
    let mut lines = vec![head.line()];
    let room = room.saturating_sub(1);
    // Scroll so that the selected line is visible.
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
    row.space(COLUMN_GAP);
}

fn footer(screen: &FleetScreen, width: u16) -> Line<'static> {
    let mut row = line(screen, width);
    let keys: &[(Action, &str)] = match screen.page {
        None => &[(Action::Select, "ranks"), (Action::Quit, "quit")],
        Some(_) => &[
            (Action::Cancel, "runs"),
            (Action::PrintCommand, "quit and print the command"),
            (Action::Quit, "quit"),
        ],
    };
    let command = screen.command().is_some();
    let keys = keys
        .iter()
        .filter(|(action, _)| *action != Action::PrintCommand || command);
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
    row.line()
}
