//! What has come of it so far.

use ratatui::text::Line;

use super::region::{RegionSize, SimulationView};
use crate::config::Role::{Dim, Text, Wait};
use crate::ui::format;

pub(super) fn draw(view: &SimulationView<'_>, room: RegionSize) -> Vec<Line<'static>> {
    let outcome = view.simulation.outcome();
    let now = view.simulation.now().as_secs_f64();
    let span = view.simulation.settings().span.as_secs_f64();
    let mut row = view.row(room.width);
    row.text(Text, &format!("{now:.1}"))
        .text(Dim, &format!(" of {} ", format::span(span)));
    row.item(
        1,
        &[(Text, &outcome.batches.to_string()), (Dim, " batches")],
    );
    let stall = format::percent(outcome.stall);
    row.item(2, &[(Dim, "stalled "), (Wait, &stall)]);
    let rate = format::per_second(outcome.batches_per_s);
    row.item(2, &[(Text, &rate), (Dim, " batches/s")]);
    if let Some(period) = outcome.period_batches {
        let period = period.to_string();
        row.item(
            2,
            &[(Dim, "waits every "), (Text, &period), (Dim, " batches")],
        );
    }
    vec![row.line()]
}
