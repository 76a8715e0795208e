//! Keys while text is typed: letters are added to it, all other keys keep their action.

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{App, Effect, Event};
use crate::config::esc_and_key;

impl App {
    /// Applies a key to the text being typed. `None` if no text is being typed or the key does not edit it.
    pub(super) fn typed(&mut self, key: &KeyEvent) -> Option<Vec<Effect>> {
        let marked = self.marked();
        let filter = self.state.filter_in_use();
        if !filter.typing || key.kind == KeyEventKind::Release {
            return None;
        }
        let command = key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Char(letter) if !command && !letter.is_control() => filter.add(letter),
            KeyCode::Backspace => _ = filter.text.pop(),
            KeyCode::Enter => filter.typing = false,
            KeyCode::Esc => filter.clear(),
            _ => return None,
        }
        self.state.scroll = 0;
        self.mark(marked);
        Some(vec![Effect::Draw])
    }

    /// Handles an alt key without an action as esc and then the key.
    pub(super) fn after_esc(&mut self, key: KeyEvent) -> Vec<Effect> {
        let keys = esc_and_key(key).into_iter().flatten();
        keys.flat_map(|key| self.handle_event(Event::Input(Input::Key(key))))
            .collect()
    }

    /// Adds pasted text to the text being typed. If none is being typed, ignores it: its letters are not meant as keys.
    pub(super) fn pasted(&mut self, text: &str) -> Vec<Effect> {
        let keys = text.chars().map(|letter| KeyCode::Char(letter).into());
        let effects = keys.filter_map(|key| self.typed(&key)).flatten();
        effects.collect()
    }

    /// Handles ctrl-c while pipetop asks what to do with the command: as in a terminal, the command ends. `None` for
    /// any other key, or if the question is not open.
    pub(super) fn interrupted(&mut self, key: &KeyEvent) -> Option<Vec<Effect>> {
        let interrupts = key.kind == KeyEventKind::Press
            && key.modifiers == KeyModifiers::CONTROL
            && key.code == KeyCode::Char('c');
        let launched = self
            .launched
            .as_mut()
            .filter(|launched| launched.is_asking())?;
        interrupts.then(|| launched.end())
    }
}
