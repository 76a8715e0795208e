use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use std::collections::BTreeMap;

use super::*;
use crate::action::Action;

fn utf8() -> Environment {
    Environment {
        locale: Some("en_US.UTF-8".to_owned()),
        term: Some("xterm-256color".to_owned()),
        no_color: false,
    }
}

fn from(text: &str) -> Result<Config, ConfigError> {
    Config::from_text(Path::new("my.toml"), text, &Overrides::default(), &utf8())
}

fn message(text: &str) -> String {
    from(text).expect_err("must be refused").to_string()
}

#[test]
fn the_default_file_as_users_file_is_the_default() {
    let config = from(DEFAULT_FILE).expect("the default file is right");
    assert_eq!(config, Config::default());
    assert_eq!(config.interval, Duration::from_secs(1));
    assert_eq!(config.gpus, None);
    assert!(!config.ascii);
}

#[test]
fn every_action_has_a_key_of_its_own() {
    let keys = Config::default().keys;
    let mut seen = Vec::new();
    for action in Action::ALL {
        assert!(!keys.keys(action).is_empty(), "{action:?}");
        for key in keys.keys(action) {
            assert!(!seen.contains(key), "{key} twice");
            assert_eq!(key.to_string().parse(), Ok(*key));
            seen.push(*key);
        }
    }
}

#[test]
fn every_theme_gives_every_meaning_its_colour() {
    for name in [ThemeName::Dark, ThemeName::Light, ThemeName::Mono] {
        assert_eq!(Theme::new(name, BTreeMap::new()).colours(), 14, "{name:?}");
    }
}

#[test]
fn keys_reach_their_actions() {
    let keys = Config::default().keys;
    let press = |code, modifiers| keys.action(&KeyEvent::new(code, modifiers));
    assert_eq!(
        press(KeyCode::Char('c'), KeyModifiers::CONTROL),
        Some(Action::Quit)
    );
    assert_eq!(press(KeyCode::Char('c'), KeyModifiers::NONE), None);
    assert_eq!(
        press(KeyCode::Char('O'), KeyModifiers::SHIFT),
        Some(Action::SortReverse)
    );
    assert_eq!(
        press(KeyCode::BackTab, KeyModifiers::SHIFT),
        Some(Action::PreviousPanel)
    );
    assert_eq!(
        press(KeyCode::Char('-'), KeyModifiers::NONE),
        Some(Action::IntervalShorter)
    );
}

#[test]
fn a_users_key_is_taken_from_its_default() {
    let keys = from("[keys]\nfreeze = [\"q\"]").expect("right").keys;
    let press = |key| keys.action(&KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
    assert_eq!(press('q'), Some(Action::Freeze));
    assert_eq!(press(' '), None);
    assert_eq!(keys.keys(Action::Quit).len(), 1);
}

#[test]
fn command_line_over_file_over_default() {
    let file = "interval = \"2s\"\ntheme = \"light\"\ngpu = [1]";
    let overrides = Overrides {
        interval: Some(Duration::from_millis(500)),
        ascii: true,
        theme: None,
        gpus: Some(vec!["0".to_owned(), "2".to_owned()]),
    };
    let config = Config::from_text(Path::new("f"), file, &overrides, &utf8()).expect("right");
    assert_eq!(config.interval, Duration::from_millis(500));
    assert!(config.ascii);
    assert_eq!(config.theme, Theme::new(ThemeName::Light, BTreeMap::new()));
    assert_eq!(config.gpus, overrides.gpus);
    assert_eq!(from(file).expect("right").gpus, Some(vec!["1".to_owned()]));
}

#[test]
fn terminals_that_cannot_show_more_get_ascii_and_no_colour_is_obeyed() {
    let ascii = |locale: Option<&str>, term: &str| {
        Environment {
            locale: locale.map(str::to_owned),
            term: Some(term.to_owned()),
            no_color: false,
        }
        .needs_ascii()
    };
    assert!(!ascii(Some("de_DE.utf8"), "tmux-256color"));
    assert!(ascii(Some("C"), "xterm"));
    assert!(ascii(None, "xterm"));
    assert!(ascii(Some("C.UTF-8"), "linux"));
    assert!(ascii(Some("C.UTF-8"), "dumb"));
    let bare = Environment {
        no_color: true,
        ..utf8()
    };
    let text = "[colours]\ncpu = \"red\"";
    let config = Config::from_text(Path::new("f"), text, &Overrides::default(), &bare);
    let mono = Theme::new(ThemeName::Mono, BTreeMap::new());
    assert_eq!(config.expect("right").theme, mono);
}

#[test]
fn errors_name_file_line_and_column() {
    assert_eq!(
        message("interval = \"1s\"\nasci = \"auto\"\n"),
        "my.toml:2:1: unknown field `asci`, expected one of `interval`, `ascii`, `theme`, `gpu`, `keys`, `colours`"
    );
    assert_eq!(
        message("[keys]\nquit = [\"q\", \"hyper-q\"]"),
        "my.toml:2:8: `hyper-q` is not a key"
    );
    assert_eq!(
        message("[keys]\nquit = [\"x\"]\nhelp = [\"x\"]"),
        "my.toml:3:9: key `x` stands for both `quit` and `help`"
    );
    assert_eq!(
        message("[colours]\ncpu = \"rde\""),
        "my.toml:2:7: `rde` is not a colour"
    );
    assert_eq!(
        message("interval = \"1ms\""),
        "my.toml:1:12: an interval lies between 100ms and 1m"
    );
    assert!(message("[keys]\nfly = [\"x\"]").starts_with("my.toml:2:1: unknown variant `fly`"));
}
