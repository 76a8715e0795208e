//! A session at the keyboard: every action with each of its keys, in the real program, and its effect on the screen.
//!
//! The list of actions drives the test: it does not compile if an action has no step here, and fails if a key has no
//! effect.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pipetop::testing::action::Action;
use pipetop::testing::config::{Config, Environment, Keymap, Overrides};
use rustix::process::Signal;
use support::keys::typed;
use support::long_job;
use support::session::Session;
use support::waiting::wait;

/// Length of the recording in seconds: its middle is ten minutes from either end.
const LENGTH: u32 = 20 * 60;
const SIZE: (u16, u16) = (180, 40);

fn recording() -> &'static Path {
    static RECORDED: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = RECORDED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("long.rec");
        long_job::record(12, 10, LENGTH, &path);
        (folder, path)
    });
    path
}

/// The effect of a key on the screen, in a replay that is paused in the middle.
struct Step {
    /// Actions that come first, so that the effect becomes visible.
    before: &'static [Action],
    /// Whether the effect is visible, given the screen before and after.
    seen: fn(&str, &str) -> bool,
    /// Text to type after the key, if the action asks for text.
    typed: &'static str,
    /// Actions that bring the screen back to its first state.
    after: &'static [Action],
}

const fn step(seen: fn(&str, &str) -> bool, after: &'static [Action]) -> Step {
    Step {
        before: &[],
        seen,
        typed: "",
        after,
    }
}

fn changed(before: &str, after: &str) -> bool {
    before != after
}

/// Whether the replay is at this place.
macro_rules! at {
    ($place:literal) => {
        |_, after| after.contains(concat!(" ", $place, " of 0:20:00"))
    };
}

/// Returns the step that tests an action. `None` = no effect in a replay: see [`of_a_command`].
fn step_of(action: Action) -> Option<Step> {
    use Action as A;
    let focus = |name| match name {
        A::NextPanel => |_: &str, after: &str| after.contains("▸disk"),
        _ => |_: &str, after: &str| after.contains("▸2 GPUs"),
    };
    Some(match action {
        A::Help => step(|_, after| after.contains("COLOURS AND SIGNS"), &[A::Cancel]),
        A::Pause => step(
            |_, after| !after.contains("paused"),
            &[A::Pause, A::ToBegin, A::LeapForward],
        ),
        A::NextPanel => step(focus(action), &[A::PreviousPanel]),
        A::PreviousPanel => step(focus(action), &[A::NextPanel]),
        A::Up => Step {
            before: &[A::Down, A::Down],
            seen: |before, after| marked(before) == Some(2) && marked(after) == Some(1),
            typed: "",
            after: &[A::Up],
        },
        A::Down => step(|_, after| marked(after) == Some(1), &[A::Up]),
        A::PageUp => Step {
            before: &[A::PageDown],
            seen: |before, after| marked(before) == Some(10) && marked(after) == Some(0),
            typed: "",
            after: &[],
        },
        A::PageDown => step(|_, after| marked(after) == Some(10), &[A::PageUp]),
        A::Select => step(changed, &[A::Cancel]),
        A::Tree => step(|_, after| after.contains("not recorded"), &[A::Cancel]),
        A::Filter => Step {
            before: &[],
            seen: |_, after| after.contains("filter workers: _"),
            typed: "\u{1b}",
            after: &[],
        },
        // The first order is by number; sorting five times returns to it.
        A::SortNext => step(|_, after| after.contains("▼CPU"), &[A::SortNext; 5]),
        A::SortReverse => step(|_, after| after.contains("▲id"), &[A::SortReverse]),
        A::NextRank => step(
            |before, after| before.contains("rank 0 of 2") && after.contains("rank 1 of 2"),
            &[A::NextRank],
        ),
        A::ZoomIn => step(changed, &[A::ZoomOut]),
        A::ZoomOut => step(changed, &[A::ZoomIn]),
        A::IntervalShorter => step(|_, after| after.contains("0.5 x"), &[A::IntervalLonger]),
        A::IntervalLonger => step(|_, after| after.contains(" 2 x"), &[A::IntervalShorter]),
        A::Save => step(|_, after| after.contains("saved pipetop-"), &[A::Redraw]),
        A::Copy => step(|_, after| after.contains("clipboard: "), &[A::Redraw]),
        A::SeekBack => step(at!("0:09:50"), &[A::SeekForward]),
        A::SeekForward => step(at!("0:10:10"), &[A::SeekBack]),
        A::LeapBack => step(at!("0:00:00"), &[A::LeapForward]),
        A::LeapForward => step(at!("0:20:00"), &[A::LeapBack]),
        A::StepBack => step(at!("0:09:59"), &[A::ToBegin, A::LeapForward]),
        A::StepForward => step(at!("0:10:01"), &[A::ToBegin, A::LeapForward]),
        A::ToBegin => step(at!("0:00:00"), &[A::LeapForward]),
        A::ToEnd => step(at!("0:20:00"), &[A::LeapBack]),
        A::Cancel => Step {
            before: &[A::Select],
            seen: changed,
            typed: "",
            after: &[],
        },
        // These have no effect on the screen of a replay.
        A::Redraw | A::Suspend | A::Quit | A::EndCommand | A::Detach | A::PrintCommand => {
            return None;
        }
    })
}

/// Returns the place of the marked worker.
fn marked(screen: &str) -> Option<u32> {
    let mut lines = screen.lines().filter_map(|line| line.split_once('▸'));
    lines.find_map(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
}

struct Replay {
    session: Session,
    keys: Keymap,
    /// The screen before each step.
    home: String,
}

impl Replay {
    /// Starts a replay with this configuration, paused in the middle.
    fn start(config: &str, size: (u16, u16)) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = folder.path().join("pipetop.toml");
        fs::write(&file, config).expect("ours");
        let arguments = [
            OsStr::new("replay"),
            recording().as_os_str(),
            OsStr::new("--config"),
            file.as_os_str(),
        ];
        let program = assert_cmd::cargo::cargo_bin!("pipetop").as_os_str();
        let session = Session::start_program(program, &arguments, &[], size);
        let mut replay = Self {
            session,
            keys: keymap(config),
            home: String::new(),
        };
        replay
            .session
            .shows("the replay", |screen| screen.contains(" of 0:20:00"));
        replay.act(Action::Pause);
        replay
            .session
            .shows("the pause", |screen| screen.contains("paused"));
        replay.act(Action::ToBegin);
        replay
            .session
            .shows("the begin", |screen| screen.contains(" 0:00:00 of"));
        replay.act(Action::LeapForward);
        let middle = |screen: &str| screen.contains(" 0:10:00 of") && screen.contains("DATA-BOUND");
        replay.home = replay.session.shows("the middle", middle);
        replay
    }

    /// Presses the first key of an action.
    fn act(&mut self, action: Action) {
        let key = self.keys.keys(action).first().expect("it has a key");
        self.session.press(&typed(&key.to_string()));
    }

    /// Tests the step with each key of the action.
    fn walk(&mut self, action: Action, step: &Step) {
        for key in self.keys.keys(action).to_vec() {
            let what = format!("{action:?} by `{key}`");
            let mut before = self.home.clone();
            for other in step.before {
                self.act(*other);
                let last = before.clone();
                let shown = |screen: &str| screen != last;
                before = self
                    .session
                    .shows(&format!("{other:?} before {what}"), shown);
            }
            self.session.press(&typed(&key.to_string()));
            self.session
                .shows(&what, |after| (step.seen)(&before, after));
            self.session.press(step.typed);
            for other in step.after {
                self.act(*other);
                // Seeks within one frame are combined, which would not bring the replay back to the middle: waits for
                // this one.
                if *other == Action::ToBegin {
                    let begin = |screen: &str| screen.contains(" 0:00:00 of");
                    self.session.shows("the begin", begin);
                }
            }
            let home = self.home.clone();
            self.session
                .shows(&format!("the screen before {what}"), |screen| {
                    screen == home
                });
        }
    }
}

fn keymap(config: &str) -> Keymap {
    let terminal = Environment {
        locale: Some("C.UTF-8".to_owned()),
        term: Some("xterm-256color".to_owned()),
        no_color: false,
    };
    let config = Config::from_text(Path::new(""), config, &Overrides::default(), &terminal);
    config.expect("right").keys
}

/// Tests each of these actions that has an effect in a replay, with all its keys.
fn walk_all(config: &str, actions: impl IntoIterator<Item = Action>) -> Replay {
    let mut replay = Replay::start(config, SIZE);
    for action in actions {
        if let Some(step) = step_of(action) {
            replay.walk(action, &step);
        }
    }
    replay
}

#[test]
fn every_key_does_what_it_says_on_a_recording() {
    let mut replay = walk_all("", Action::ALL);
    let clipboard = b"\x1b]52;c;";
    let bytes = replay.session.bytes();
    let mut pieces = bytes.windows(clipboard.len());
    assert!(pieces.any(|piece| piece == clipboard), "no OSC 52");
    // Every cell is drawn anew, and nothing else changes.
    let written = replay.session.bytes().len();
    replay.act(Action::Redraw);
    let all = usize::from(SIZE.0) * 20;
    wait("every cell anew", || {
        (replay.session.bytes().len() > written + all).then_some(())
    });
    let home = replay.home.clone();
    replay.session.shows("the same", |screen| screen == home);
    replay.act(Action::Suspend);
    wait("the stop", || replay.session.is_stopped().then_some(()));
    assert!(replay.session.is_set_back(), "the shell has its terminal");
    replay.session.signal(Signal::CONT);
    replay
        .session
        .shows("the same again", |screen| screen == home);
    replay.act(Action::Quit);
    assert!(replay.session.ended().success());
    assert!(replay.session.is_set_back());
    for key in replay.keys.keys(Action::Quit) {
        let mut session = Session::start::<&str>(&[]);
        session.shows("the screen", |screen| screen.contains("LOOKING"));
        session.press(&typed(&key.to_string()));
        assert!(session.ended().success(), "{key}");
        assert!(session.is_set_back(), "{key}");
    }
}

/// Returns a configuration with a different key for each action: letters in order.
fn remapped() -> String {
    let letters = ('a'..='z').chain('A'..='Z');
    let lines = Action::ALL.iter().zip(letters).map(|(action, letter)| {
        let name = serde_json::to_value(action).expect("a name");
        format!("{} = [\"{letter}\"]", name.as_str().expect("a name"))
    });
    format!("[keys]\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn keys_that_were_changed_do_what_footer_and_help_say() {
    let config = remapped();
    // Some actions of each kind are enough, as an action's key is only data.
    let some = [
        Action::Help,
        Action::Down,
        Action::Select,
        Action::SortReverse,
        Action::ZoomOut,
        Action::SeekBack,
    ];
    let mut replay = walk_all(&config, some);
    let footer = replay.home.lines().last().unwrap_or_default().to_owned();
    // Each item is an action's key and its description.
    let words: Vec<&str> = footer.trim().split("  ").collect();
    let keys = words
        .iter()
        .filter(|item| item.split(' ').next().is_some_and(|key| key.len() == 1));
    let mut checked = 0;
    for item in keys {
        let Some((key, word)) = item.trim().split_once(' ').filter(|(_, word)| *word != "x") else {
            continue;
        };
        let action = Action::ALL.into_iter().find(|action| {
            let keys = replay.keys.keys(*action);
            keys.iter().any(|of| of.to_string() == key)
        });
        let action = action.unwrap_or_else(|| panic!("`{item}` is no key of the map: {footer}"));
        let in_replay = match action {
            Action::Pause => "resume",
            Action::IntervalLonger => "faster",
            Action::IntervalShorter => "slower",
            action => action.short(),
        };
        assert_eq!(word, in_replay, "{footer}");
        checked += 1;
    }
    assert!(checked >= 8, "{footer}");
    replay.session.resize(SIZE.0, 120);
    // crossterm holds back a key that arrives together with a resize until the next event.
    let grown = |screen: &str| screen.lines().count() == 120;
    replay.session.shows("the larger screen", grown);
    replay.act(Action::Help);
    let end = |screen: &str| screen.contains("n/a, ~") && screen.contains("unknown or out of date");
    let seen = replay.session.shows("the whole help", end);
    for action in Action::ALL {
        if matches!(action, Action::EndCommand | Action::Detach) {
            continue;
        }
        let key = replay.keys.keys(action)[0].to_string();
        let line = |line: &str| line.contains(&format!(" {key}   "));
        assert!(
            seen.lines().any(line),
            "the help lacks `{key}` for {action:?}: {seen}"
        );
    }
    replay.act(Action::Quit);
    assert!(replay.session.ended().success());
    assert!(replay.session.is_set_back());
}

/// Actions to type one after the other; each entry has a name and a word that is on the screen afterwards.
const WALK: [(&str, &[Action], &str); 17] = {
    use Action as A;
    [
        ("begin", &[A::ToBegin], " 0:00:00 of"),
        ("middle", &[A::LeapForward], " 0:10:00 of"),
        ("zoomed out", &[A::ZoomOut, A::ZoomOut], "min"),
        (
            "one earlier",
            &[A::ZoomIn, A::ZoomIn, A::StepBack],
            " 0:09:59 of",
        ),
        ("second worker", &[A::Down, A::Select], "ITS TIME"),
        ("page of the disk", &[A::NextPanel], "▸disk"),
        ("page of the timeline", &[A::NextPanel], "▸timeline"),
        ("page of the history", &[A::NextPanel], "▸history"),
        ("page of the verdict", &[A::NextPanel], "▸verdict"),
        ("page of the rank", &[A::NextPanel], "▸rank 0"),
        ("page of the GPU", &[A::NextPanel], "▸GPU 0"),
        ("sorted", &[A::Cancel, A::SortNext, A::SortReverse], "▲"),
        ("tree", &[A::Tree], "▼pid"),
        ("help", &[A::Cancel, A::Help], "q"),
        ("filter", &[A::Help, A::Filter], "filter workers"),
        ("near the end", &[A::Cancel, A::LeapForward], " 0:19:59 of"),
        ("begin again", &[A::ToBegin], " 0:00:00 of"),
    ]
};

/// Returns all screens of the walk, each under its name.
fn walked(size: (u16, u16)) -> String {
    let mut replay = Replay::start("", size);
    let (mut screens, mut last) = (String::new(), replay.home.clone());
    for (name, actions, word) in WALK {
        for action in actions {
            replay.act(*action);
            // Waits for each effect, so that no two keys arrive together.
            let before = last;
            let what = format!("{name}, by {action:?}");
            last = replay.session.shows(&what, |screen| screen != before);
        }
        assert!(last.contains(word), "{name}:\n{last}");
        writeln!(screens, "== {name}\n{last}").expect("text");
    }
    screens
}

#[test]
fn a_walk_through_all_views_looks_as_it_did() {
    let sizes = [(80, 24), (120, 40), (200, 60)];
    std::thread::scope(|scope| {
        let walks = sizes.map(|size| scope.spawn(move || walked(size)));
        for ((columns, rows), walk) in sizes.into_iter().zip(walks) {
            let screens = walk.join().expect("it does not panic");
            insta::assert_snapshot!(format!("walk_{columns}x{rows}"), screens);
        }
    });
}

/// Tests the actions that apply only to a running job or a launched command, each with a job of its own.
#[test]
fn keys_that_concern_a_command_do_what_they_say() {
    /// A command that ends when the session's folder is removed.
    const UNTIL_LEFT: &str = "while [ -e \"$PWD\" ]; do sleep 0.1; done";
    const DEMO: [&str; 5] = ["demo", "--preset", "compute", "--device", "sim"];
    let keys = Config::default().keys;
    let press = |session: &mut Session, action| {
        let key = keys.keys(action).first().expect("it has a key");
        session.press(&typed(&key.to_string()));
    };
    let asks = |session: &mut Session| {
        press(session, Action::Quit);
        session.shows("the question", |screen| screen.contains("still running"));
    };
    let launch = || {
        let session = Session::start(&["run", "--", "sh", "-c", UNTIL_LEFT]);
        session.shows("the command", |screen| screen.contains("LOOKING"));
        session
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = Session::start(&DEMO);
            session.shows("the job", |screen| screen.contains("trainer"));
            press(&mut session, Action::Pause);
            session.shows("that it is paused", |screen| screen.contains("PAUSED"));
            press(&mut session, Action::Pause);
            session.shows("that it goes on", |screen| !screen.contains("PAUSED"));
            press(&mut session, Action::IntervalLonger);
            session.shows("a longer interval", |screen| screen.contains("2.0 s"));
            press(&mut session, Action::IntervalShorter);
            session.shows("a shorter interval", |screen| screen.contains("1.0 s"));
            press(&mut session, Action::Tree);
            session.shows("the tree", |screen| screen.contains("worker 0"));
            press(&mut session, Action::Tree);
            session.shows("the panels", |screen| screen.contains("trainer"));
            press(&mut session, Action::Quit);
            session.ended();
            assert!(session.is_set_back());
        });
        scope.spawn(|| {
            let mut session = launch();
            asks(&mut session);
            press(&mut session, Action::Cancel);
            session.shows("that it goes on", |screen| {
                !screen.contains("still running")
            });
            asks(&mut session);
            press(&mut session, Action::EndCommand);
            session.ended();
            assert!(session.is_set_back());
        });
        scope.spawn(|| {
            // The command ends by itself soon after pipetop has quit.
            let mut session = launch();
            asks(&mut session);
            press(&mut session, Action::Detach);
            assert!(session.ended().success());
            assert!(session.is_set_back());
        });
    });
}
