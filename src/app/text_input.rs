//! Keys while a line is typed: letters are letters, and any other key is its action as ever.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{App, Effect};

impl App {
    /// Takes a key into the line that is typed. `None` where it is no part of one.
    pub(super) fn typed(&mut self, key: &KeyEvent) -> Option<Vec<Effect>> {
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
        Some(vec![Effect::Draw])
    }

    /// At the question what becomes of the command, ctrl-c is the answer of a terminal: the command ends. `None` for
    /// any other key, and where the question is not open.
    pub(super) fn interrupted(&mut self, key: &KeyEvent) -> Option<Vec<Effect>> {
        let interrupts = key.kind == KeyEventKind::Press
            && key.modifiers == KeyModifiers::CONTROL
            && key.code == KeyCode::Char('c');
        let launched = self.launched.as_mut().filter(|launched| launched.asks())?;
        interrupts.then(|| launched.end())
    }
}
