use clap::ValueEnum as _;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::style::Color;
use support::fuzz;

use std::collections::BTreeMap;

use super::keymap::KeyPress;
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
fn memory_for_the_past_has_limits() {
    assert_eq!(Config::default().past, 8 << 20);
    assert_eq!(from("past-mib = 5").expect("right").past, 5 << 20);
    for wrong in ["0", "4097", "-1", "\"5\""] {
        let error_text = message(&format!("past-mib = {wrong}"));
        assert!(error_text.starts_with("my.toml:1:12: "), "{error_text}");
    }
    for wrong in ["0", "-1"] {
        let error_text = message(&format!("past-mib = {wrong}"));
        assert!(error_text.contains("between 1 and 4096"), "{error_text}");
    }
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
    for &name in ThemeName::value_variants() {
        let theme = Theme::new(name, BTreeMap::new());
        let roles = theme.colours().filter(|(role, _)| role.is_some());
        assert_eq!(roles.count(), 14, "{name:?}");
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
    assert_eq!(
        press(KeyCode::Char('c'), KeyModifiers::NONE),
        Some(Action::Copy)
    );
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
fn only_keys_that_a_terminal_sends_are_keys() {
    let keys = from("[keys]\nsave = [\"shift-x\", \"ctrl-X\", \"alt-shift-x\", \"ctrl-space\"]");
    let keys = keys.expect("right").keys;
    let shown: Vec<_> = keys
        .keys(Action::Save)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown, ["X", "ctrl-x", "alt-X", "ctrl-space"]);
    for never in ["shift-1", "ctrl-1", "ctrl-i", "ctrl-m", "ctrl-[", "\\u001b"] {
        let error = message(&format!("[keys]\nquit = [\"{never}\"]"));
        assert!(error.ends_with("is not a key"), "{error}");
    }
}

#[test]
fn a_users_key_is_taken_from_its_default() {
    // `freeze` is the former name of `pause`.
    for name in ["pause", "freeze"] {
        let keys = from(&format!("[keys]\n{name} = [\"q\"]"));
        let keys = keys.expect("right").keys;
        let press = |key| keys.action(&KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
        assert_eq!(press('q'), Some(Action::Pause));
        assert_eq!(press(' '), None);
        assert_eq!(keys.keys(Action::Quit).len(), 1);
    }
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
        "my.toml:2:1: unknown option `asci`"
    );
    assert_eq!(
        message("[keys]\nquit = [\"q\", \"hyper-q\"]"),
        "my.toml:2:8: `hyper-q` is not a key"
    );
    assert_eq!(
        message("[keys]\nquit = [\"x\"]\nhelp = [\"x\"]"),
        "my.toml:3:9: key `x` is bound to both `quit` and `help`"
    );
    // By the names in the file, not by the words on the screen.
    assert_eq!(
        message("[keys]\nend-command = [\"x\"]\nup = [\"x\"]"),
        "my.toml:3:7: key `x` is bound to both `end-command` and `up`"
    );
    assert_eq!(
        message("[colours]\ncpu = \"rde\""),
        "my.toml:2:7: `rde` is not a colour"
    );
    for wrong in ["1ms", "2h", "-1s"] {
        assert_eq!(
            message(&format!("interval = \"{wrong}\"")),
            "my.toml:1:12: interval must be between 100ms and 1min"
        );
    }
    assert!(message("[keys]\nfly = [\"x\"]").starts_with("my.toml:2:1: unknown name `fly`"));
}

#[test]
fn a_hint_names_what_was_probably_meant() {
    let hint = |text: &str| from(text).expect_err("must be refused").hint();
    assert!(hint("interva = \"1s\"").starts_with("did you mean `interval`?"));
    assert!(hint("theme = \"colorblind\"").starts_with("did you mean `colour-blind`?"));
    assert!(hint("[keys]\nfilte = [\"x\"]").starts_with("did you mean `filter`?"));
    assert!(hint("xyz = 1").starts_with("`pipetop config` prints"));
    assert!(hint("interval = 5").starts_with("`pipetop config` prints"));
    assert!(hint("columns = [\"foo\"]").starts_with("possible values: pid, now, "));
}

#[test]
fn a_gpu_is_named_as_on_the_command_line() {
    let gpus = |text: &str| from(text).expect("right").gpus.expect("some");
    assert_eq!(gpus("gpu = [1, \"02\", \"GPU-8f\"]"), ["1", "2", "GPU-8f"]);
    assert_eq!(gpus("gpu = [2, 0, \"2\", \"00\"]"), ["2", "0"]);
    assert_eq!(
        message("gpu = [\"first\"]"),
        "my.toml:1:7: not a GPU index or UUID"
    );
    for empty in ["", "GPU-", "MIG-"] {
        assert!(message(&format!("gpu = [\"{empty}\"]")).contains("not a GPU"));
    }
}

#[test]
fn a_number_that_is_too_large_for_any_type_is_out_of_range() {
    // The parser has different words for each of these sizes.
    for number in [i128::from(i64::MAX) + 1, 1 << 64, i128::MAX] {
        let said = |option: &str| message(&format!("{option}{number}"));
        assert!(said("past-mib = ").ends_with("the number is out of range"));
        let of_gpu = message(&format!("gpu = [{number}]"));
        let refused = ["the number is out of range", "not a GPU index or UUID"];
        assert!(
            refused.iter().any(|words| of_gpu.ends_with(words)),
            "{of_gpu}"
        );
    }
    let overflowed = message(&format!("gpu = [{}0]", i128::MAX));
    assert!(
        overflowed.ends_with("the number is out of range"),
        "{overflowed}"
    );
}

#[test]
fn quitting_always_has_a_key() {
    let message = |text| message(text);
    assert_eq!(
        message("[keys]\nup = [\"k\"]\nquit = []"),
        "my.toml:3:1: `quit` has no key"
    );
    assert_eq!(
        message("[keys]\npause = [\"q\"]\nhelp = [\"ctrl-c\"]"),
        "my.toml:3:9: `quit` has no key"
    );
}

#[test]
fn each_answer_to_the_question_on_quitting_has_a_key() {
    use Action::{Cancel, Detach, EndCommand};
    for (text, shown) in [
        ("", ["e", "d", "esc"]),
        (
            "[keys]\nsave = [\"e\"]\ntree = [\"d\"]\nquit = [\"esc\"]",
            ["e", "d", "esc"],
        ),
        (
            "[keys]\nend-command = []\ndetach = [\"x\"]\ncancel = []",
            ["e", "x", "esc"],
        ),
        (
            "[keys]\nend-command = [\"d\"]\ncancel = [\"a\", \"e\"]",
            ["d", "b", "a"],
        ),
    ] {
        let keys = from(text).expect("right").keys;
        for (action, shown) in [EndCommand, Detach, Cancel].into_iter().zip(shown) {
            let key = keys.answer_key(action).expect("a key").to_string();
            assert_eq!(key, shown, "{action:?}: {text}");
            let code = match shown.chars().next() {
                Some(letter) if shown.len() == 1 => KeyCode::Char(letter),
                _ => KeyCode::Esc,
            };
            assert_eq!(keys.answer(&code.into()), Some(action), "{text}");
        }
    }
    let keys = from("[keys]\nsave = [\"e\"]").expect("right").keys;
    let e = KeyCode::Char('e').into();
    assert_eq!(keys.action(&e), Some(Action::Save));
}

#[test]
fn columns_are_chosen_each_once() {
    let columns = from("columns = [\"in\", \"load\"]").expect("right").columns;
    assert_eq!(columns, [Column::In, Column::Load]);
    assert_eq!(from("").expect("right").columns.len(), 9);
    assert_eq!(
        message("columns = []"),
        "my.toml:1:11: `columns` has no column"
    );
    assert_eq!(
        message("columns = [\"in\", \"pid\",\n \"in\"]"),
        "my.toml:2:2: duplicate column"
    );
}

/// Returns the linear light of a colour of the 256-colour palette: its cube or its greys.
fn light(colour: Color) -> [f64; 3] {
    let Color::Indexed(number @ 16..) = colour else {
        panic!("{colour:?} depends on the terminal");
    };
    let bytes = match number {
        232.. => [8 + 10 * (number - 232); 3],
        _ => [36, 6, 1]
            .map(|unit| [0, 95, 135, 175, 215, 255][usize::from((number - 16) / unit % 6)]),
    };
    bytes.map(|byte| {
        let share = f64::from(byte) / 255.0;
        if share <= 0.04045 {
            share / 12.92
        } else {
            ((share + 0.055) / 1.055).powf(2.4)
        }
    })
}

fn times(matrix: [[f64; 3]; 3], light: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| (0..3).map(|place| row[place] * light[place]).sum())
}

/// Converts to CIE L*a*b*, in which distances match perceived differences.
fn lab(light: [f64; 3]) -> [f64; 3] {
    const XYZ: [[f64; 3]; 3] = [
        [0.4124 / 0.950_47, 0.3576 / 0.950_47, 0.1805 / 0.950_47],
        [0.2126, 0.7152, 0.0722],
        [0.0193 / 1.088_83, 0.1192 / 1.088_83, 0.9505 / 1.088_83],
    ];
    let [x, y, z] = times(XYZ, light).map(|share| {
        if share > 216.0 / 24_389.0 {
            share.cbrt()
        } else {
            (24_389.0 / 27.0 * share + 16.0) / 116.0
        }
    });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// Matrices for all cones, and for a lack of each kind of cone: Machado, Oliveira and Fernandes 2009.
const EYES: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ],
    [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ],
    [
        [1.255_528, -0.076_749, -0.178_779],
        [-0.078_411, 0.930_809, 0.147_602],
        [0.004_733, 0.691_367, 0.303_900],
    ],
];

/// Returns the contrast ratio as the Web Content Accessibility Guidelines define it.
fn contrast(one: f64, other: f64) -> f64 {
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Every colour is used for words somewhere, and as the background of a verdict's bar. Only frames may be fainter.
#[test]
fn words_can_be_read_on_black_or_on_white() {
    for name in [ThemeName::Dark, ThemeName::ColourBlind, ThemeName::Light] {
        let theme = Theme::new(name, BTreeMap::new());
        let ground = if theme.is_light() { 1.0 } else { 0.0 };
        for (role, colour) in theme.colours() {
            let [red, green, blue] = light(colour);
            let found = contrast(0.2126 * red + 0.7152 * green + 0.0722 * blue, ground);
            let least = if role == Some(Role::Border) { 1.5 } else { 4.5 };
            assert!(found >= least, "{name:?} {role:?} {colour}: {found:.2}");
        }
    }
}

#[test]
fn colours_are_distinct_for_colour_blind_users() {
    use Role::{Compute, Cpu, Full, Read, Runnable, Trouble, Unknown, Wait};
    let theme = Theme::new(ThemeName::ColourBlind, BTreeMap::new());
    let meanings = [Cpu, Read, Wait, Full, Runnable, Compute, Trouble, Unknown];
    for eye in EYES {
        let seen = meanings.map(|paint| {
            let colour = theme.style(paint).fg.expect("every meaning has one");
            let seen = times(eye, light(colour));
            (paint, lab(seen.map(|share| share.clamp(0.0, 1.0))))
        });
        for (place, (paint, one)) in seen.iter().enumerate() {
            for (other_paint, other) in &seen[place + 1..] {
                let apart: f64 = (0..3).map(|at| (one[at] - other[at]).powi(2)).sum();
                assert!(
                    apart.sqrt() >= 15.0,
                    "{paint:?} {other_paint:?} {}",
                    apart.sqrt()
                );
            }
        }
    }
}

#[test]
fn a_check_finds_every_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipetop.toml");
    let text =
        "themes = \"dark\"\nascii = 3\nmouse = true\n[keys]\nquit = [\"q\"]\nhelp = [\"q\"]\n";
    std::fs::write(&path, text).unwrap();
    let errors = Config::check(&path);
    let lines: Vec<_> = errors.iter().map(ConfigError::line).collect();
    assert_eq!(lines, [Some(1), Some(2), Some(6)], "{errors:?}");
    // The entries of an unknown table do not count as entries of the table before it.
    let text = "[colours]\ncpu = \"red\"\n[colors]\ncpu = \"blue\"\n[keys]\nquit = 3\n";
    std::fs::write(&path, text).unwrap();
    let errors = Config::check(&path);
    let lines: Vec<_> = errors.iter().map(ConfigError::line).collect();
    assert_eq!(lines, [Some(3), Some(6)], "{errors:?}");
    std::fs::write(&path, DEFAULT_FILE).unwrap();
    assert!(Config::check(&path).is_empty());
    assert_eq!(Config::check(folder.path()).len(), 1);
}

#[test]
fn errors_contain_no_control_characters() {
    for text in [
        "theme = \"\\u001b[2J\"",
        "\"\\u001b[2J\" = 1",
        "columns = [\"\tpid\"]",
    ] {
        let error_text = message(text);
        assert!(
            error_text.contains('\u{fffd}') && !error_text.contains(char::is_control),
            "{error_text:?}"
        );
    }
}

proptest! {
    #![proptest_config(fuzz::cases_or(400))]

    #[test]
    fn fuzzed_configurations(text in fuzz::text([
        "interval = \"500ms\"\nascii = \"auto\"\ntheme = \"dark\"\nmouse = true\npast-mib = 5\n",
        "gpu = [0, \"GPU-1\"]\ncolumns = [\"pid\", \"cpu\"]\n",
        "[keys]\nquit = [\"q\", \"ctrl-c\"]\nhelp = [\"f1\", \"alt-shift-tab\"]\n",
        "[colours]\ncpu = \"light-blue\"\nread = \"117\"\nwait = \"#a0b1c2\"\n",
    ])) {
        if let Err(error) = from(&text) {
            // It names a position in the text, and contains no control characters.
            prop_assert!(error.line().is_none_or(|line| line <= text.lines().count() + 1), "{error}");
            let error_text = error.to_string();
            prop_assert!(!error_text.chars().any(char::is_control), "{error_text:?}");
        }
    }

    #[test]
    fn fuzzed_names_of_keys(text in fuzz::text(["ctrl-alt-shift-x", "f12", "page-up", "space", "\u{e9}", "ctrl--"])) {
        if let Ok(key) = text.parse::<KeyPress>() {
            prop_assert_eq!(key.to_string().parse(), Ok(key));
        }
    }
}
