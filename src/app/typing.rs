//! Keys while a line is typed: letters are letters, and what is no letter is a wish as ever.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{App, Flow};

impl App {
    /// Takes a key into the line that is typed. `None` where it is no part of one.
    pub(super) fn typed(&mut self, key: &KeyEvent) -> Option<Flow> {
        let marked = self.marked();
        let filter = self.state.filter_in_use();
        if !filter.is_typing() || key.kind == KeyEventKind::Release {
            return None;
        }
        let command = key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Char(letter) if !command && !letter.is_control() => filter.add(letter),
            KeyCode::Backspace => filter.erase(),
            KeyCode::Enter => filter.keep(),
            KeyCode::Esc => filter.clear(),
            _ => return None,
        }
        self.state.scroll = 0;
        self.mark(marked);
        Some(Flow::Draw)
    }
}
