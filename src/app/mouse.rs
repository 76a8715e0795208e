//! The optional mouse: a click focuses a panel, the wheel scrolls it. Everything also works without it.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{App, Effect};
use crate::action::Action;
use crate::ui::panel_at;

/// Lines scrolled by one notch of the wheel.
const NOTCH: usize = 3;

impl App {
    pub(super) fn handle_mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        let scroll = match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => None,
            MouseEventKind::ScrollUp => Some(Action::Up),
            MouseEventKind::ScrollDown => Some(Action::Down),
            _ => return vec![],
        };
        let at = Position::new(mouse.column, mouse.row);
        let panel = panel_at(&self.view(), self.drawn, at);
        let turned = panel.is_some_and(|panel| self.state.focus_on(panel));
        let Some(scroll) = scroll else {
            return if turned { vec![Effect::Draw] } else { vec![] };
        };
        let mut effects: Vec<Effect> = (0..NOTCH).flat_map(|_| self.act(scroll)).collect();
        effects.dedup();
        effects
    }
}
