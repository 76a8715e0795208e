//! Key bindings, and conversion between text such as `"ctrl-c"` and key events.
//!
//! The file, the event loop, the footer and the help share one table.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use toml::Spanned;

use crate::action::Action;

/// `[keys]` as written in the file.
pub(super) type Bindings = BTreeMap<Spanned<Action>, Vec<Spanned<KeyPress>>>;

/// Keys with a name, as written in the file and shown on screen.
const NAMES: [(&str, KeyCode); 17] = [
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("shift-tab", KeyCode::BackTab),
    ("space", KeyCode::Char(' ')),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("page-up", KeyCode::PageUp),
    ("page-down", KeyCode::PageDown),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("null", KeyCode::Null),
];

const MODIFIERS: [(&str, KeyModifiers); 3] = [
    ("ctrl-", KeyModifiers::CONTROL),
    ("alt-", KeyModifiers::ALT),
    ("shift-", KeyModifiers::SHIFT),
];

/// A key with its modifiers. Shift is part of a character, not a modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
pub struct KeyPress {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl KeyPress {
    fn new(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let code = match code {
            KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
            other => other,
        };
        let kept = modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let modifiers = match code {
            KeyCode::Char(_) | KeyCode::BackTab => kept - KeyModifiers::SHIFT,
            _ => kept,
        };
        Self { code, modifiers }
    }
}

impl FromStr for KeyPress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rest = text;
        let mut modifiers = KeyModifiers::NONE;
        while let Some((prefix, modifier)) = MODIFIERS
            .iter()
            .find(|(prefix, _)| rest.starts_with(prefix) && rest.len() > prefix.len())
        {
            rest = &rest[prefix.len()..];
            modifiers |= *modifier;
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(only), None) => Some(KeyCode::Char(only)),
            _ => NAMES
                .iter()
                .find(|(name, _)| *name == rest)
                .map(|(_, code)| *code)
                .or_else(|| {
                    let number = rest.strip_prefix('f')?.parse().ok()?;
                    (1..=12).contains(&number).then_some(KeyCode::F(number))
                }),
        };
        let code = match code {
            Some(KeyCode::Char(key)) => sent(key, modifiers).map(KeyCode::Char),
            other => other,
        };
        code.map(|code| Self::new(code, modifiers))
            .ok_or_else(|| format!("`{}` is not a key", text.escape_debug()))
    }
}

/// Returns the character that terminals send for a key with its modifiers; `None` if they send none, or that of another
/// key: `ctrl-i` is tab.
fn sent(key: char, modifiers: KeyModifiers) -> Option<char> {
    let mut key = key;
    if modifiers.contains(KeyModifiers::SHIFT) {
        key = key.to_uppercase().next().filter(|key| key.is_uppercase())?;
    }
    if modifiers.contains(KeyModifiers::CONTROL) {
        key = key.to_ascii_lowercase();
        let own = matches!(key, 'a'..='z' | '4'..='7' | ' ') && !matches!(key, 'i' | 'm');
        return own.then_some(key);
    }
    (!key.is_control()).then_some(key)
}

impl fmt::Display for KeyPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, modifier) in MODIFIERS {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        if let Some((name, _)) = NAMES.iter().find(|(_, code)| *code == self.code) {
            return f.write_str(name);
        }
        match self.code {
            KeyCode::Char(key) => write!(f, "{key}"),
            KeyCode::F(number) => write!(f, "f{number}"),
            _ => f.write_str("?"),
        }
    }
}

/// Returns esc and the key that make up a key with alt: a terminal sends the same bytes for both. `None` for any other
/// key.
pub fn esc_and_key(mut key: KeyEvent) -> Option<[KeyEvent; 2]> {
    if key.kind == KeyEventKind::Release || !key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    key.modifiers -= KeyModifiers::ALT;
    Some([KeyCode::Esc.into(), key])
}

/// Settings that conflict: one key for two actions, no key to quit, a column listed twice.
/// Where, and which.
pub(super) type Clash = (Option<Range<usize>>, String);

/// The answers to the question on quitting.
const ANSWERS: [Action; 3] = [Action::EndCommand, Action::Detach, Action::Cancel];

/// The keys of all actions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Keymap {
    keys: BTreeMap<Action, Vec<KeyPress>>,
    /// A key for each answer that has none of its own, for another action has it. It counts only while the question is
    /// open.
    spare: BTreeMap<Action, KeyPress>,
}

impl Keymap {
    /// Puts the user's keys over the default ones: an action that the user lists has no other keys, and a key that the
    /// user lists no longer triggers its default action.
    pub(super) fn layered(user: Bindings, default: Option<Bindings>) -> Result<Self, Clash> {
        let mut keys: BTreeMap<Action, Vec<KeyPress>> = BTreeMap::new();
        // Where to point if no key is left for quitting: the entry of `quit`, or the last key that the file lists.
        let (mut quit, mut last) = (None, None);
        // In the order of the file, so that the later of two clashing entries is reported.
        let mut user: Vec<_> = user.into_iter().collect();
        user.sort_by_key(|(action, _)| action.span().start);
        for (action, list) in user {
            let (span, action) = (action.span(), action.into_inner());
            if action == Action::Quit {
                quit = Some(span);
            }
            let mut own = Vec::new();
            for key in list {
                let taken = keys.iter().find(|(_, keys)| keys.contains(key.get_ref()));
                if let Some((other, _)) = taken {
                    let bound = key.get_ref();
                    let message =
                        format!("key `{bound}` is bound to both `{other}` and `{action}`");
                    return Err((Some(key.span()), message));
                }
                last = Some(key.span());
                own.push(key.into_inner());
            }
            keys.insert(action, own);
        }
        let taken: Vec<KeyPress> = keys.values().flatten().copied().collect();
        let mut usual = BTreeMap::new();
        for (action, list) in default.unwrap_or_default() {
            let list: Vec<_> = list.into_iter().map(Spanned::into_inner).collect();
            let free = list.iter().filter(|key| !taken.contains(key)).copied();
            let action = action.into_inner();
            keys.entry(action).or_insert_with(|| free.collect());
            usual.insert(action, list);
        }
        if keys.get(&Action::Quit).is_none_or(Vec::is_empty) {
            return Err((quit.or(last), "`quit` has no key".to_owned()));
        }
        let spare = spare(&keys, &usual);
        Ok(Self { keys, spare })
    }

    /// Returns the action of this key; `None` for a release or an unbound key.
    pub fn action(&self, event: &KeyEvent) -> Option<Action> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let pressed = KeyPress::new(event.code, event.modifiers);
        self.keys
            .iter()
            .find(|(_, keys)| keys.contains(&pressed))
            .map(|(action, _)| *action)
    }

    /// Returns the action of this key while the question on quitting is open.
    pub fn answer(&self, event: &KeyEvent) -> Option<Action> {
        let pressed = KeyPress::new(event.code, event.modifiers);
        let mut spare = self.spare.iter();
        match spare.find(|(_, key)| **key == pressed) {
            Some((action, _)) if event.kind != KeyEventKind::Release => Some(*action),
            _ => self.action(event),
        }
    }

    /// Returns the keys of an action; the first one is shown.
    pub fn keys(&self, action: Action) -> &[KeyPress] {
        self.keys.get(&action).map_or(&[], Vec::as_slice)
    }

    /// Returns the key that is shown for an action while the question on quitting is open: each answer has one.
    pub fn answer_key(&self, action: Action) -> Option<KeyPress> {
        let own = self.keys(action).first();
        own.or_else(|| self.spare.get(&action)).copied()
    }
}

/// Returns a key for each answer without one: its usual key, or else the first letter that is not another answer's.
fn spare(
    keys: &BTreeMap<Action, Vec<KeyPress>>,
    usual: &BTreeMap<Action, Vec<KeyPress>>,
) -> BTreeMap<Action, KeyPress> {
    let of = |map: &BTreeMap<Action, Vec<KeyPress>>, action| -> Vec<KeyPress> {
        map.get(&action).cloned().unwrap_or_default()
    };
    let mut taken: Vec<_> = ANSWERS
        .iter()
        .flat_map(|action| of(keys, *action))
        .collect();
    let mut spare = BTreeMap::new();
    for action in ANSWERS {
        let letters = ('a'..='z').map(|key| KeyPress::new(KeyCode::Char(key), KeyModifiers::NONE));
        let mut all = of(usual, action).into_iter().chain(letters);
        if of(keys, action).is_empty()
            && let Some(key) = all.find(|key| !taken.contains(key))
        {
            taken.push(key);
            spare.insert(action, key);
        }
    }
    spare
}
