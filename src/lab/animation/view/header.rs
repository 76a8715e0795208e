//! The first line: what is simulated.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::region::SimulationView;
use crate::config::Role::{Dim, Focus, Text};
use crate::lab::experiments::simulate::DeliveryOrder;
use crate::ui::{format, panel};

pub(super) fn draw(view: &SimulationView<'_>, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let settings = view.simulation.settings();
    let mut row = view.row(area.width);
    row.space(1).text(Text, "simulation");
    if view.simulation.is_over() {
        row.item(2, &[(Focus, "ENDED")]);
    } else if view.paused {
        row.item(2, &[(Focus, "PAUSED")]);
    }
    let millis = |time: std::time::Duration| format::millis(Some(time.as_secs_f64() * 1000.0));
    row.item(2, &[(Dim, "load "), (Text, &millis(settings.load))]);
    row.item(2, &[(Dim, "step "), (Text, &millis(settings.step))]);
    if settings.load_jitter > 0.0 {
        let jitter = format::whole_percent(settings.load_jitter * 100.0);
        row.item(2, &[(Dim, "varies by "), (Text, &jitter)]);
    }
    let order = match settings.order {
        DeliveryOrder::InOrder => "in order",
        DeliveryOrder::AnyOrder => "any order",
    };
    row.item(2, &[(Dim, order)]);
    if let Some(clock) = settings.clock {
        row.item(2, &[(Dim, "clock "), (Text, &millis(clock))]);
    }
    if settings.desync {
        row.item(2, &[(Dim, "out of step")]);
    }
    panel::write(frame, area, vec![row.line()]);
}
