//! The real program on every kind of terminal: what it is called, how large it is, which characters and colours it has,
//! and how fast it takes what is written to it.

#[expect(clippy::unwrap_used, reason = "benchmarks fail by panicking")]
#[path = "../benches/noise.rs"]
mod noise;
#[path = "support/patience.rs"]
mod patience;
#[expect(dead_code, reason = "other tests use all of it")]
#[path = "support/session.rs"]
mod session;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossterm::event::Event as Input;
use noise::Noise;
use patience::{now, pause, wait};
use pipetop::app::{App, Event};
use pipetop::config::Config;
use pipetop::terminal::Thrifty;
use pipetop::ui;
use ratatui::layout::{Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::process::Signal;
use session::Session;

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

/// One terminal as the environment describes it, and what was asked for.
#[derive(Debug, Clone, Copy)]
struct Kind {
    term: Option<&'static str>,
    locale: &'static str,
    no_color: bool,
    ascii: bool,
}

/// Every name with every locale, and each name once without colours and once with ASCII asked for.
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

/// On a machine without processes, so on the screen that looks for a job.
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

/// Parameters of every sequence that sets colours or styles.
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
    // 39 and 49 are the terminal's own.
    first.is_some_and(|number: u32| matches!(number, 30..=38 | 40..=48 | 90..=107))
}

fn is_right_on(kind: Kind) {
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
    // Several at once: each waits for the other end most of the time.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(kind) = { kinds.lock().expect("not poisoned").pop() } {
                    is_right_on(kind);
                }
            });
        }
    });
}

/// A job of its own that needs no files, on a device that every machine has.
const COMPUTE: [&str; 5] = ["demo", "--preset", "compute", "--device", "sim"];

/// What the verdict can say of a job that has begun.
fn has_verdict(screen: &str) -> bool {
    ["WARMING", "COMPUTE", "UNKNOWN", "BALANCED", "DATA-B"]
        .iter()
        .any(|word| screen.contains(word))
}

#[test]
fn every_size_shows_the_verdict_and_from_40_by_10_on_the_panels() {
    let sizes = [
        (40, 10),
        (80, 24),
        (120, 40),
        (200, 60),
        (500, 150),
        (500, 10),
        (40, 150),
        (39, 10),
        (80, 9),
        (20, 5),
        (10, 1),
        (1, 1),
        (500, 1),
        (1, 150),
        (64, 17),
    ];
    let mut session = Session::start(&COMPUTE);
    session.shows("the first frame", has_verdict);
    for (columns, rows) in sizes {
        session.resize(columns, rows);
        if columns < 10 {
            // A cell or two of it: nothing to read, nothing to break.
            session.until("a frame", |_| true);
            continue;
        }
        let screen = session.shows(&format!("the verdict at {columns}x{rows}"), has_verdict);
        if columns < 40 || rows < 10 {
            // The verdict has the first line, and nobody any other.
            session.shows("one line", |screen| {
                let mut lines = screen.lines();
                lines.next().is_some_and(has_verdict) && lines.all(str::is_empty)
            });
        }
        assert!(screen.lines().count() <= usize::from(rows), "{screen}");
        if columns >= 40 && rows >= 10 {
            let screen = session.shows("the panels", |screen| {
                let last = screen.lines().nth(usize::from(rows) - 1);
                last.is_some_and(|last| last.contains("? help"))
                    && screen.contains("trainer") | screen.contains("→")
            });
            assert!(screen.contains("workers"), "{screen}");
        }
    }
    session.press("q");
    session.until("the question", |text| !text.is_empty());
    session.signal(Signal::TERM);
    session.ended();
}

#[test]
fn a_frame_is_shown_whole_or_not_at_all() {
    let mut session = Session::start::<&str>(&[]);
    let looking = |screen: &str| screen.contains("LOOKING");
    let first = session.shows("the screen", looking);
    session.press("?");
    session.shows("the help", |screen| screen != first);
    session.press("?");
    session.shows("the screen again", looking);
    session.press("q");
    assert!(session.ended().success());
    let text = session.text();
    let (ours, _) = text.split_once(LEAVE).expect("it is given back");
    let mut frames = ours.split("\u{1b}[?2026h");
    let taken = frames.next().expect("a first piece");
    assert!(taken.ends_with("\u{1b}[?25l"), "{taken:?}");
    let frames: Vec<_> = frames
        .map(|frame| frame.split_once("\u{1b}[?2026l").expect("it ends"))
        .collect();
    assert!(frames.len() >= 3);
    for (number, (frame, behind)) in frames.iter().enumerate() {
        assert!(!frame.is_empty());
        // The cursor is shown before the terminal is given back.
        let last = number + 1 == frames.len();
        assert_eq!(*behind, if last { "\u{1b}[?25h" } else { "" });
    }
}

#[test]
fn a_storm_of_sizes_leaves_a_whole_screen() {
    let mut session = Session::start::<&str>(&[]);
    session.shows("the screen", |screen| screen.contains("LOOKING"));
    for turn in 0..400_u16 {
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

const LEAVE: &str = "\u{1b}[?1049l";
/// What it asks for more often than a terminal can take: every cell anew.
const REDRAW: &str = "\u{c}";

/// A figure of `/proc/PID/NAME`, in its second column.
fn figure(session: &Session, file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/{file}", session.pid().as_raw_pid()));
    let text = text.expect("it runs");
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .expect("it has that figure");
    line.split_whitespace()
        .nth(1)
        .expect("a figure")
        .parse()
        .expect("a number")
}

/// On the help of a large terminal whose other end is not read any more, with as much written as the kernel takes.
fn blocked() -> Session {
    let nothing = tempfile::tempdir().expect("a temporary directory");
    let root = nothing.path().as_os_str();
    let arguments = [
        OsStr::new("--proc-root"),
        root,
        OsStr::new("--sys-root"),
        root,
    ];
    let environment = [("LC_ALL", Some(OsStr::new("C.UTF-8")))];
    let program = assert_cmd::cargo::cargo_bin!("pipetop").as_os_str();
    let mut session = Session::start_program(program, &arguments, &environment, (200, 60));
    session.shows("the screen", |screen| screen.contains("LOOKING"));
    session.press("?");
    session.shows("the help", |screen| screen.contains("KEYS"));
    session.paused.store(true, Ordering::SeqCst);
    let mut last = (0, 0);
    wait("the terminal to be full", || {
        session.press(REDRAW);
        pause(Duration::from_millis(10));
        let written = figure(&session, "io", "wchar:");
        // Beside frames it writes a few bytes to itself.
        last = if written > last.0 + 1000 {
            (written, 0)
        } else {
            (last.0, last.1 + 1)
        };
        (last.1 == 30).then_some(())
    });
    session
}

#[test]
fn a_terminal_that_takes_nothing_gets_the_newest_frame_once_it_does() {
    let mut session = blocked();
    let (memory, before) = (figure(&session, "status", "VmRSS:"), session.bytes().len());
    for _ in 0..100 {
        session.press(REDRAW);
        pause(Duration::from_millis(1));
    }
    let grown = figure(&session, "status", "VmRSS:").saturating_sub(memory);
    assert!(grown < 2048, "{grown} kB more");
    // It has taken the key that closes the help, and draws that when it can.
    session.press("?");
    session.paused.store(false, Ordering::SeqCst);
    session.shows("the newest", |screen| {
        screen.contains("LOOKING") && !screen.contains("KEYS")
    });
    let late = session.bytes().len() - before;
    // What the kernel held, and two frames: not the hundred that were asked for.
    assert!(late < 160_000, "{late} bytes");
    session.press("q");
    assert!(session.ended().success());
    assert!(session.is_set_back());
}

#[test]
fn a_terminal_that_takes_nothing_keeps_nobody_from_leaving() {
    let leave = |end: Option<Signal>| {
        let mut session = blocked();
        match end {
            Some(signal) => session.signal(signal),
            None => session.press("q"),
        }
        assert!(session.ended().success(), "{end:?}");
        assert!(session.is_set_back(), "{end:?}");
        session.paused.store(false, Ordering::SeqCst);
        session.until("the screen to go", |text| text.contains(LEAVE));
    };
    std::thread::scope(|scope| {
        for end in [Some(Signal::TERM), Some(Signal::HUP), None] {
            scope.spawn(move || leave(end));
        }
    });
}

#[test]
fn a_terminal_that_takes_nothing_keeps_nobody_from_stopping() {
    let session = blocked();
    session.signal(Signal::TSTP);
    wait("the stop", || session.is_stopped().then_some(()));
    assert!(session.is_set_back());
    session.paused.store(false, Ordering::SeqCst);
    session.signal(Signal::CONT);
    session.shows("the help again", |screen| screen.contains("KEYS"));
}

#[test]
fn a_terminal_that_takes_nothing_and_goes_ends_it() {
    let mut session = blocked();
    session.let_go.store(true, Ordering::SeqCst);
    session.paused.store(false, Ordering::SeqCst);
    session.writer.take();
    session.master.take();
    session.ended();
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
        // A click on the second line, which is the verdict's.
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

/// The most bytes a second that a steady job may write to a terminal of 120 by 40.
const BUDGET: f64 = 2048.0;

#[test]
fn a_steady_job_costs_a_slow_link_little() {
    let program = assert_cmd::cargo::cargo_bin!("pipetop").as_os_str();
    let environment = [
        ("LC_ALL", Some(OsStr::new("C.UTF-8"))),
        ("TERM", Some(OsStr::new("xterm-256color"))),
    ];
    let session = Session::start_program(program, &COMPUTE, &environment, (120, 40));
    session.shows("the first frame", has_verdict);
    // The first intervals are of a job that starts.
    pause(Duration::from_secs(3));
    let (from, before) = (now(), session.bytes().len());
    pause(Duration::from_secs(6));
    let written = session.bytes().len() - before;
    let rate = written as f64 / from.elapsed().as_secs_f64();
    eprintln!("{rate:.0} bytes a second");
    assert!(rate < BUDGET, "{rate:.0} bytes a second");
}

/// Counts what is written to it.
struct Counter<'a>(&'a AtomicUsize);

impl Write for Counter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(bytes.len(), Ordering::SeqCst);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes that a frame a second takes, on average, where each worker does something else every second and no figure
/// stays as it is.
fn noisy(workers: u32, gpus: u32, shifts: bool) -> usize {
    const FRAMES: u64 = 60;
    let mut noise = Noise::of(workers, gpus);
    noise.restless = true;
    let mut app = App::new(Config::default(), Duration::from_secs(10), String::new());
    app.update(Event::Input(Input::Resize(120, 40)));
    let written = AtomicUsize::new(0);
    let backend = Thrifty::of_size(Counter(&written), shifts, Size::new(120, 40));
    let viewport = Viewport::Fixed(Rect::new(0, 0, 120, 40));
    let mut terminal =
        Terminal::with_options(backend, TerminalOptions { viewport }).expect("nothing is asked");
    let mut first = 0;
    for second in 0..200 + FRAMES {
        app.update(Event::Sample(Box::new(noise.sample(second + 1))));
        if second < 199 {
            continue;
        }
        let view = app.view();
        let drawn = terminal.draw(|frame| ui::draw(&view, frame));
        drawn.expect("a counter takes all");
        if second == 199 {
            first = written.load(Ordering::SeqCst);
        }
    }
    (written.load(Ordering::SeqCst) - first) / usize::try_from(FRAMES).expect("few")
}

#[test]
fn a_noisy_job_costs_a_slow_link_little_too() {
    // Workers, GPUs, whether parts of a line can be moved. Measured: 932, 1855, 1277 and 1482.
    let limits = [
        (4, 1, true, 1080),
        (4, 1, false, 2048),
        (12, 8, true, 1470),
        (12, 8, false, 1720),
    ];
    for (workers, gpus, shifts, most) in limits {
        let rate = noisy(workers, gpus, shifts);
        eprintln!("{workers} workers, {gpus} GPUs, {shifts}: {rate} bytes a second");
        assert!(
            rate < most,
            "{workers} workers, {gpus} GPUs, {shifts}: {rate}"
        );
    }
}
