//! The terminal's answer to the question for its colours (OSC 10 and 11), if it comes after the wait for it: it arrives
//! as keys that nobody has pressed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::config::Keymap;

/// What the answers begin with, after `ESC ]`, which arrives as alt-].
const BEGINS: [&str; 2] = ["10;rgb", "11;rgb"];
/// Length of the longest answer, `11;rgba:ffff/ffff/ffff/ffff`.
const LONGEST: usize = 27;

/// Recognises the keys of an answer.
#[derive(Debug, Default)]
pub(super) struct LateAnswer {
    expected: bool,
    /// The last key was esc: alone, `ESC` arrives as that key, and what it begins or ends as a key without alt.
    esc: bool,
    /// What has arrived of an answer so far.
    begun: Option<String>,
}

impl LateAnswer {
    pub(super) fn expected() -> Self {
        Self {
            expected: true,
            ..Self::default()
        }
    }

    /// Whether the key belongs to an answer. A user who has given alt-] an action keeps it.
    pub(super) fn takes(&mut self, key: &KeyEvent, keys: &Keymap) -> bool {
        if !self.expected {
            return false;
        }
        let pressed = |letter, modifiers| *key == KeyEvent::new(KeyCode::Char(letter), modifiers);
        let is_esc = *key == KeyCode::Esc.into();
        let after_esc = std::mem::replace(&mut self.esc, is_esc);
        let follows = |letter| after_esc && pressed(letter, KeyModifiers::NONE);
        let Some(mut text) = self.begun.take() else {
            let alt = pressed(']', KeyModifiers::ALT) && keys.action(key).is_none();
            let begins = alt || follows(']');
            self.begun = begins.then(String::new);
            return begins;
        };
        // It ends with `ESC \` or BEL.
        let ends = [
            pressed('\\', KeyModifiers::ALT),
            pressed('g', KeyModifiers::CONTROL),
            follows('\\'),
        ];
        if ends.contains(&true) {
            return true;
        }
        if is_esc && !after_esc {
            self.begun = Some(text);
            return true;
        }
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let KeyCode::Char(letter) = key.code else {
            return false;
        };
        text.push(letter);
        let belongs = plain && is_begun(&text);
        self.begun = belongs.then_some(text);
        belongs
    }
}

/// Whether an answer can begin with this text.
fn is_begun(text: &str) -> bool {
    let figures = |rest: &str| {
        rest.chars()
            .all(|it| it.is_ascii_hexdigit() || it == ':' || it == '/')
    };
    let fits = |begin: &str| {
        let rest = text.strip_prefix(begin);
        begin.starts_with(text) || rest.is_some_and(figures)
    };
    text.len() <= LONGEST && BEGINS.into_iter().any(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// Returns the letters that are left to be keys; `^` is the end of an answer.
    fn left(late: &mut LateAnswer, typed: &str) -> String {
        let keys = Config::default().keys;
        let key = |letter| match letter {
            ']' => KeyEvent::new(KeyCode::Char(letter), KeyModifiers::ALT),
            '^' => KeyEvent::new(KeyCode::Char('\\'), KeyModifiers::ALT),
            '!' => KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL),
            '$' => KeyCode::Esc.into(),
            '(' => KeyCode::Char(']').into(),
            'A'..='Z' => KeyEvent::new(KeyCode::Char(letter), KeyModifiers::SHIFT),
            _ => KeyCode::Char(letter).into(),
        };
        let taken = |letter: &char| late.takes(&key(*letter), &keys);
        let (_, left): (String, String) = typed.chars().partition(taken);
        left
    }

    #[test]
    fn an_answer_that_comes_late_is_not_taken_for_keys() {
        let mut late = LateAnswer::expected();
        let answers = "q]10;rgb:ffff/FFFF/ffff^t]11;rgba:0/0/0/f!]11;rgb:00/00/00^/";
        assert_eq!(left(&mut late, answers), "qt/");
    }

    #[test]
    fn an_answer_that_is_cut_after_its_esc_is_not_taken_for_keys() {
        let mut late = LateAnswer::expected();
        let answers = "$(10;rgb:ffff/ffff/ffff$\\q]11;rgb:00/00/00$\\/$(11;rgb:0/0/0!/";
        assert_eq!(left(&mut late, answers), "$q/$/");
    }

    #[test]
    fn what_is_no_answer_stays_keys() {
        let mut late = LateAnswer::expected();
        assert_eq!(left(&mut late, "]q"), "q");
        assert_eq!(left(&mut late, "]11;rq"), "q");
        assert_eq!(left(&mut late, "$$q(]q"), "$$q(q");
        assert_eq!(left(&mut late, "]11;r$q"), "q");
        let zeros = "0".repeat(40);
        let rest = left(&mut late, &format!("]11;rgb:{zeros}"));
        assert_eq!(rest.len(), 8 + 40 - 1 - LONGEST);
        let unasked = "]11;rgb:0/0/0^";
        assert_eq!(left(&mut LateAnswer::default(), unasked), unasked);
    }
}
