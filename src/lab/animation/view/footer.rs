//! The last line: the keys, and how fast time passes.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::region::SimulationView;
use crate::action::Action;
use crate::config::Role::{Dim, Key, Text};
use crate::ui::panel;

pub(super) fn draw(view: &SimulationView<'_>, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let mut row = view.row(area.width);
    row.space(1);
    let pause = if view.paused { "resume" } else { "pause" };
    let keys = [
        (Action::Quit, "quit"),
        (Action::Pause, pause),
        (Action::IntervalLonger, "faster"),
        (Action::IntervalShorter, "slower"),
    ];
    let mut gap = 0;
    for (action, words) in keys {
        if let Some(key) = view.config.keys.keys(action).first() {
            row.item(gap, &[(Key, &key.to_string()), (Dim, " "), (Dim, words)]);
            gap = 2;
        }
    }
    let speed = format!("{} x ", view.speed);
    if !row.at_end(&[(Dim, "speed "), (Text, &speed)]) {
        row.at_end(&[(Text, &speed)]);
    }
    panel::write(frame, area, vec![row.line()]);
}
