//! The real program on every kind of terminal: with various names, sizes, character sets and colours.

use std::ffi::OsStr;
use std::sync::Mutex;

use rustix::process::Signal;
use support::session::Session;
use support::waiting::wait;

const LEAVE: &str = "\u{1b}[?1049l";
const FRAME_BEGIN: &str = "\u{1b}[?2026h";
const FRAME_END: &str = "\u{1b}[?2026l";

const TERMS: [Option<&str>; 7] = [
    Some("xterm-256color"),
    Some("screen"),
    Some("tmux-256color"),
    Some("linux"),
    Some("vt100"),
    Some("dumb"),
    None,
];
const LOCALES: [&str; 4] = ["C", "POSIX", "C.UTF-8", "en_US.ISO-8859-1"];

/// A terminal as the environment describes it, and the user's options.
#[derive(Debug, Clone, Copy)]
struct Kind {
    term: Option<&'static str>,
    locale: &'static str,
    no_color: bool,
    ascii: bool,
}

/// Returns every terminal name with every locale, and each name once without colours and once in ASCII.
fn kinds() -> Vec<Kind> {
    let plain = |term, locale| Kind {
        term,
        locale,
        no_color: false,
        ascii: false,
    };
    TERMS
        .into_iter()
        .flat_map(|term| {
            let utf8 = plain(term, "C.UTF-8");
            let asked = [
                Kind {
                    no_color: true,
                    ..utf8
                },
                Kind {
                    ascii: true,
                    ..utf8
                },
            ];
            LOCALES
                .into_iter()
                .map(move |locale| plain(term, locale))
                .chain(asked)
        })
        .collect()
}

/// Starts pipetop on a machine without processes, so that it shows that it looks for a job.
fn start(kind: Kind) -> (Session, tempfile::TempDir) {
    let nothing = tempfile::tempdir().expect("a temporary directory");
    let mut arguments = vec![];
    for root in ["--proc-root", "--sys-root"] {
        arguments.extend([OsStr::new(root), nothing.path().as_os_str()]);
    }
    if kind.ascii {
        arguments.push(OsStr::new("--ascii"));
    }
    let environment = [
        ("TERM", kind.term.map(OsStr::new)),
        ("COLORTERM", None),
        ("LANG", None),
        ("LC_CTYPE", None),
        ("LC_ALL", Some(OsStr::new(kind.locale))),
        ("NO_COLOR", kind.no_color.then_some(OsStr::new("1"))),
    ];
    let program = assert_cmd::cargo::cargo_bin!("pipetop").as_os_str();
    let session = Session::start_program(program, &arguments, &environment, (80, 24));
    (session, nothing)
}

/// Returns the parameters of every sequence that sets colours or styles.
fn styles(text: &str) -> Vec<&str> {
    let sequences = text.split("\u{1b}[").skip(1);
    sequences
        .filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            rest[end..].starts_with('m').then_some(&rest[..end])
        })
        .collect()
}

fn is_colour(style: &str) -> bool {
    let first = style
        .split(';')
        .next()
        .and_then(|number| number.parse().ok());
    // 39 and 49 are the terminal's default colours.
    first.is_some_and(|number: u32| matches!(number, 30..=38 | 40..=48 | 90..=107))
}

fn check_terminal(kind: Kind) {
    let (mut session, _nothing) = start(kind);
    if kind.term == Some("dumb") {
        session.until("a line", |text| text.contains('\n'));
        session.signal(Signal::TERM);
        session.ended();
        let text = session.text();
        assert!(!text.contains('\u{1b}'), "{kind:?}: {text:?}");
        assert!(session.is_set_back(), "{kind:?}");
        return;
    }
    session.shows("the screen", |screen| screen.contains("LOOKING"));
    session.press("?");
    let screen = session.shows("the help", |screen| screen.contains("KEYS"));
    let small = matches!(kind.term, Some("linux" | "vt100") | None);
    let ascii = kind.ascii || small || kind.locale != "C.UTF-8";
    assert_eq!(screen.is_ascii(), ascii, "{kind:?}\n{screen}");
    let text = session.text();
    assert_eq!(text.is_ascii(), ascii, "{kind:?}");
    let colours = styles(&text)
        .into_iter()
        .filter(|style| is_colour(style))
        .count();
    let mono = kind.no_color || kind.term == Some("vt100");
    assert_eq!(colours == 0, mono, "{kind:?}: {colours}");
    session.press("q");
    assert!(session.ended().success(), "{kind:?}");
    wait("the terminal as it was", || {
        session.is_set_back().then_some(())
    });
}

#[test]
fn it_starts_on_every_terminal_and_asks_no_more_of_it_than_it_has() {
    let kinds = Mutex::new(kinds());
    // Several in parallel, as each mostly waits for the other end.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(kind) = { kinds.lock().expect("not poisoned").pop() } {
                    check_terminal(kind);
                }
            });
        }
    });
}

/// Returns what a terminal answers when it is asked for its colours and then for its type.
fn colours(text: &str, background: &str) -> String {
    format!("\u{1b}]10;rgb:{text}\u{1b}\\\u{1b}]11;rgb:{background}\u{1b}\\\u{1b}[?62c")
}

#[test]
fn a_light_theme_on_a_dark_terminal_is_a_warning() {
    let [black, white] = ["0000/0000/0000", "ffff/ffff/ffff"];
    for (answer, dark) in [
        (colours(white, black), true),
        (colours(black, white), false),
    ] {
        let nothing = tempfile::tempdir().expect("a temporary directory");
        let nothing = nothing.path().as_os_str();
        let arguments = ["--theme", "light", "--proc-root", "--sys-root"].map(OsStr::new);
        let [theme, light, proc, sys] = arguments;
        let mut session = Session::start(&[theme, light, proc, nothing, sys, nothing]);
        // Typed before the question, so that the answer cannot come too late.
        session.press(&answer);
        let screen = session.shows("the screen", |screen| screen.contains("LOOKING"));
        let warned = screen.contains("the terminal's background is dark");
        assert_eq!(warned, dark, "{screen}");
        session.press("q");
        assert!(session.ended().success());
    }
}

#[test]
fn an_answer_about_colours_that_comes_late_is_not_taken_for_keys() {
    let nothing = tempfile::tempdir().expect("a temporary directory");
    let nothing = nothing.path().as_os_str();
    let arguments = ["--theme", "light", "--proc-root", "--sys-root"].map(OsStr::new);
    let [theme, light, proc, sys] = arguments;
    let mut session = Session::start(&[theme, light, proc, nothing, sys, nothing]);
    // The screen opens only when pipetop no longer waits for the answer.
    session.shows("the screen", |screen| screen.contains("LOOKING"));
    // Some terminals end an answer with BEL.
    let answer = colours("ffff/ffff/ffff", "0000/0000/0000");
    session.press(&answer.replace("\u{1b}\\", "\u{7}"));
    // As keys, the slash would begin a filter, and this would be a letter of it.
    session.press("q");
    assert!(session.ended().success());
}

/// A job that needs no files, on a device that every machine has.
const COMPUTE: [&str; 5] = ["demo", "--preset", "compute", "--device", "sim"];

/// Whether the screen shows a verdict on a job that has begun.
fn has_verdict(screen: &str) -> bool {
    ["WARMING", "COMPUTE", "UNKNOWN", "BALANCED", "DATA-B"]
        .iter()
        .any(|word| screen.contains(word))
}

/// Checks what a terminal of this size shows of a job.
fn check_size(session: &mut Session, columns: u16, rows: u16) {
    let before = session.bytes().len();
    session.resize(columns, rows);
    if columns < 10 {
        // A few columns show nothing readable; drawing them only must not fail.
        wait(&format!("a frame at {columns}x{rows}"), || {
            let written = session.bytes();
            contains(&written[before..], FRAME_END).then_some(())
        });
        return;
    }
    let has_panels = columns >= 40 && rows >= 10;
    let screen = session.shows(&format!("all of {columns}x{rows}"), |screen| {
        let mut lines = screen.lines();
        if has_panels {
            let last = lines.nth(usize::from(rows) - 1);
            has_verdict(screen)
                && screen.contains("workers")
                && last.is_some_and(|last| last.contains("? help"))
                && screen.contains("trainer") | screen.contains("─▸")
        } else {
            // The verdict is in the first line, and the others are empty.
            lines.next().is_some_and(has_verdict) && lines.all(str::is_empty)
        }
    });
    assert!(screen.lines().count() <= usize::from(rows), "{screen}");
}

fn contains(bytes: &[u8], wanted: &str) -> bool {
    let wanted = wanted.as_bytes();
    bytes.windows(wanted.len()).any(|part| part == wanted)
}

fn check_sizes(sizes: &[(u16, u16)]) {
    let mut session = Session::start(&COMPUTE);
    session.shows("the first frame", has_verdict);
    for (columns, rows) in sizes {
        check_size(&mut session, *columns, *rows);
    }
    session.signal(Signal::TERM);
    assert!(session.ended().success());
    assert!(session.is_set_back());
}

#[test]
fn from_40_by_10_on_a_screen_has_the_verdict_and_the_panels() {
    check_sizes(&[
        (40, 10),
        (80, 24),
        (120, 40),
        (200, 60),
        (500, 150),
        (500, 10),
        (40, 150),
        (64, 17),
    ]);
}

#[test]
fn a_smaller_screen_has_the_verdict_in_one_line() {
    check_sizes(&[
        (39, 10),
        (80, 9),
        (20, 5),
        (10, 1),
        (1, 1),
        (500, 1),
        (1, 150),
    ]);
}

#[test]
fn a_frame_is_shown_whole_or_not_at_all() {
    let mut session = Session::start::<&str>(&[]);
    let looking = |screen: &str| screen.contains("LOOKING");
    let help = |screen: &str| screen.contains("KEYS");
    session.shows("the screen", looking);
    session.press("?");
    session.shows("the help", help);
    session.press("?");
    session.shows("the screen again", |screen| {
        looking(screen) && !help(screen)
    });
    session.press("q");
    assert!(session.ended().success());
    session.until("the screen to go", |text| text.contains(LEAVE));
    let text = session.text();
    let (ours, _) = text.split_once(LEAVE).expect("it is given back");
    let mut frames = ours.split(FRAME_BEGIN);
    let taken = frames.next().expect("a first piece");
    // The screen is cleared, for terminals without an alternate screen.
    assert!(
        taken.ends_with("\u{1b}[?1049h\u{1b}[2J\u{1b}[?25l"),
        "{taken:?}"
    );
    let frames: Vec<_> = frames
        .map(|frame| frame.split_once(FRAME_END).expect("it ends"))
        .collect();
    assert!(frames.len() >= 3);
    for (number, (frame, behind)) in frames.iter().enumerate() {
        assert!(!frame.is_empty());
        // Before the terminal is restored, bracketed paste is turned off and the cursor is shown.
        let last = number + 1 == frames.len();
        assert_eq!(*behind, if last { "\u{1b}[?2004l\u{1b}[?25h" } else { "" });
    }
}

#[test]
fn a_storm_of_sizes_leaves_a_whole_screen() {
    let mut session = Session::start::<&str>(&[]);
    session.shows("the screen", |screen| screen.contains("LOOKING"));
    for turn in 0..100_u16 {
        session.resize(1 + turn * 7 % 240, 1 + turn * 5 % 80);
    }
    session.resize(100, 30);
    session.shows("the last size", |screen| {
        let rows: Vec<&str> = screen.lines().collect();
        screen.contains("LOOKING") && rows.len() == 30 && rows[29].contains("q quit")
    });
    session.press("q");
    assert!(session.ended().success());
    assert!(session.is_set_back());
}

#[test]
fn the_mouse_is_taken_where_it_is_wanted_and_given_back() {
    const ON: &str = "\u{1b}[?1000h";
    const OFF: &str = "\u{1b}[?1000l";
    let folder = tempfile::tempdir().expect("a temporary directory");
    let config = folder.path().join("pipetop.toml");
    std::fs::write(&config, "mouse = true\n").expect("ours");
    for wanted in [false, true] {
        let mut arguments: Vec<&OsStr> = COMPUTE.iter().map(OsStr::new).collect();
        if wanted {
            arguments.extend([OsStr::new("--config"), config.as_os_str()]);
        }
        let mut session = Session::start(&arguments);
        session.shows("the panels", |screen| {
            has_verdict(screen) && screen.contains("▸workers")
        });
        // A click on the second line, which is part of the verdict.
        session.press("\u{1b}[<0;5;2M");
        if wanted {
            session.shows("that the verdict has the keys", |screen| {
                !screen.contains("▸workers")
            });
        }
        session.press("q");
        session.until("the screen to go", |text| text.contains(LEAVE));
        let text = session.text();
        assert_eq!(text.contains(ON), wanted);
        assert_eq!(text.rfind(OFF) > text.rfind(ON), wanted);
    }
}
