//! Draws the fleet screen into a frame: a line per run, or per rank of one run. Does no I/O.

use ratatui::Frame;
use ratatui::text::Line;

use super::report::{FleetRank, RunReport};
use super::state::FleetScreen;
use super::table::{self, FleetTable};
use crate::action::Action;
use crate::config::Role::{self, Compute, Dim, Focus, Text, Trouble, Unknown, Wait};
use crate::ui::format::clock;
use crate::ui::glyphs;
use crate::ui::layout::take_last;
use crate::ui::line_builder::LineBuilder;
use crate::ui::panel::write;
use crate::ui::table::COLUMN_GAP;

/// Maximum height in lines at which the server's note is left out in favour of the table.
const LOW: u16 = 4;
const NO_RANKS: &str = "no rank of this run was seen in the last two minutes";

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

/// Returns a line with the first of the server's warnings, for example that it could not read all data.
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
    screen.report.as_ref()?;
    let read_at = screen.read_at.unwrap_or(screen.drawn_at);
    let age = screen.drawn_at.saturating_sub(read_at);
    Some(format!("read {} ago", clock(age.as_secs())))
}

/// Returns the head of the table and the visible rows.
fn rows(screen: &FleetScreen, width: u16, room: usize) -> Vec<Line<'static>> {
    let (runs, ranks) = (screen.runs(), screen.ranks());
    // Without the column of the mark and the gap after the last column.
    let cells = usize::from(width).saturating_sub(1 + COLUMN_GAP);
    let (table, roles, none): (_, Vec<Roles>, _) = match screen.page {
        None => (
            FleetTable::runs(runs, screen.config.ascii, cells),
            runs.iter().map(run_roles).collect(),
            table::NO_RUNS,
        ),
        Some(_) => (
            FleetTable::ranks(ranks, cells),
            ranks.iter().map(rank_roles).collect(),
            NO_RANKS,
        ),
    };
    let mut row = line(screen, width);
    if roles.is_empty() && screen.report.is_some() {
        row.text(Text, " ").sentence(Unknown, none);
        return vec![Line::default(), row.line()];
    }
    row.space(1);
    let mut lines = vec![table.line(&mut row, &table.rows[0], |_| Dim)];
    let room = room.saturating_sub(1);
    // Scroll so that the selected line is visible.
    let first = screen.picked.saturating_sub(room.saturating_sub(1));
    let all = table.rows.iter().skip(1).zip(roles).enumerate();
    for (place, (cells, role)) in all.skip(first).take(room) {
        let picked = place == screen.picked;
        let mark = if picked { row.glyphs().mark } else { " " };
        row.stale(false).text(Focus, mark);
        row.stale(screen.trouble.is_some());
        lines.push(table.line(&mut row, cells, |column| match column {
            0 if picked => Focus,
            _ => role(column),
        }));
    }
    lines
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

fn footer(screen: &FleetScreen, width: u16) -> Line<'static> {
    let mut row = line(screen, width);
    let keys: &[(Action, &str)] = match screen.page {
        None => &[
            (Action::Select, "ranks"),
            (Action::Down, "move"),
            (Action::Quit, "quit"),
        ],
        Some(_) => &[
            (Action::Cancel, "runs"),
            (Action::Down, "move"),
            (Action::PrintCommand, "quit and print the command"),
            (Action::Quit, "quit"),
        ],
    };
    // A key that would do nothing is not named.
    let keys = keys.iter().filter(|(action, _)| match action {
        Action::Select => screen.count() > 0,
        Action::Down => screen.count() > 1,
        Action::PrintCommand => screen.command().is_some(),
        _ => true,
    });
    for (action, words) in keys {
        if let Some(key) = screen.config.keys.keys(*action).first() {
            row.space(1).key(0, &key.to_string(), &format!("{words} "));
        }
    }
    row.line()
}
