//! The trainer: the batch in its step, and the steps before it with the waits between them.

use ratatui::text::Line;

use super::region::{RegionSize, SimulationView, bar};
use crate::config::Role::{Border, Dim, Text, Wait};
use crate::lab::experiments::simulate::TrainerState;
use crate::ui::{format, glyphs};

/// `computing 35 % of the time`
pub(super) fn remark(view: &SimulationView<'_>) -> String {
    let stall = view.simulation.outcome().stall;
    stall.map_or_else(String::new, |stall| {
        format!(
            "computing {} of the time",
            format::percent(Some(stall.complement()))
        )
    })
}

pub(super) fn draw(view: &SimulationView<'_>, room: RegionSize) -> Vec<Line<'static>> {
    let mut drawn = vec![now(view, room)];
    if room.lines > 1 {
        drawn.push(past(view, room.width));
    }
    drawn
}

fn now(view: &SimulationView<'_>, room: RegionSize) -> Line<'static> {
    let mut row = view.row(room.width);
    if room.unnamed {
        row.text(Dim, "trainer ");
    }
    let digits = view.digits();
    let label = digits + 2;
    let cells = row.left().saturating_sub(label + 2 + 4);
    let empty = view.config.theme.style(Border);
    match view.simulation.trainer() {
        TrainerState::Working { worker, done } => {
            row.styled(view.batch(worker), &format!(" {worker:>digits$} "));
            row.space(1);
            bar(&mut row, view.hue(worker), empty, done, cells);
            row.item(1, &[(Text, &format!("{done:.2}"))]);
        }
        TrainerState::Waiting => {
            row.text(Wait, "waiting for a batch");
        }
    }
    row.line()
}

/// A cell for each moment: the last digit of the loader whose batch was in its step, or the sign of waiting.
fn past(view: &SimulationView<'_>, width: u16) -> Line<'static> {
    let mut row = view.row(width);
    row.text(Dim, "past  ");
    let room = row.left();
    let moments: Vec<_> = view.past(&mut row, room).collect();
    for moment in moments {
        match moment.training {
            Some(worker) => row.styled(view.batch(worker), &(worker % 10).to_string()),
            None => row.text(Wait, glyphs::of(view.config).sign(Wait)),
        };
    }
    row.line()
}
