//! The real program in a pseudo-terminal: whatever ends or stops it, the terminal is restored.

use std::io::Read;
use std::sync::atomic::Ordering;

use rustix::process::Signal;
use support::session::Session;
use support::waiting::wait;

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";

/// Starts pipetop on a machine without processes, so that it shows that it looks for a job.
fn looking() -> Session {
    let session = Session::start::<&str>(&[]);
    session.until("the screen", |text| text.contains("LOOKING"));
    session
}

fn assert_given_back(session: &Session) {
    // The last output may not have been read when the program has ended.
    session.until("the screen to go", |text| {
        text.rfind(ENTER) < text.rfind(LEAVE)
    });
    let text = session.text();
    let left = text.rfind(LEAVE).expect("the alternate screen was left");
    assert!(text.rfind(ENTER).is_some_and(|entered| entered < left));
    assert!(text.rfind(SHOW_CURSOR).is_some(), "the cursor is back");
    let (on, off) = (text.rfind("\u{1b}[?2004h"), text.rfind("\u{1b}[?2004l"));
    assert!(on.is_some() && on < off, "pasted text is keys again");
    assert!(session.is_set_back(), "keys do again what they did");
}

#[test]
fn a_key_or_a_signal_ends_it_and_gives_the_terminal_back() {
    for end in [
        None,
        Some(Signal::TERM),
        Some(Signal::HUP),
        Some(Signal::INT),
        Some(Signal::QUIT),
        Some(Signal::ABORT),
        Some(Signal::XCPU),
    ] {
        let mut session = looking();
        for signal in [Signal::USR1, Signal::USR2, Signal::ALARM] {
            session.signal(signal);
        }
        match end {
            None => session.press("q"),
            Some(signal) => session.signal(signal),
        }
        assert!(session.ended().success(), "{end:?}");
        session.until("the screen to go", |text| text.contains(LEAVE));
        assert_given_back(&session);
    }
}

#[test]
fn it_suspends_and_resumes() {
    let mut session = looking();
    for round in 1..=2 {
        if round == 1 {
            session.press("\u{1a}");
        } else {
            session.signal(Signal::TSTP);
        }
        wait("the stop", || session.is_stopped().then_some(()));
        session.until("the screen to go", |text| {
            text.rfind(LEAVE) > text.rfind(ENTER)
        });
        assert_given_back(&session);
        let before = session.text().len();
        session.signal(Signal::CONT);
        session.until("the screen again", |text| {
            text[before..].contains(ENTER) && text[before..].contains("LOOKING")
        });
    }
    session.press("q");
    assert!(session.ended().success());
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    let mut session = looking();
    session.release.store(true, Ordering::SeqCst);
    let before = session.text().len();
    session.press("?");
    session.until("the help", |text| text.len() > before);
    session.writer.take();
    session.master.take();
    // Only the terminal itself can hang up.
    let status = session.ended();
    assert!(status.success(), "{status:?}");
}

#[test]
fn it_follows_the_size_of_the_terminal() {
    let mut session = looking();
    session.resize(40, 10);
    session.shows("a frame of that size", |screen| {
        screen.contains("no job yet") && screen.lines().count() == 10
    });
    session.press("q");
    assert!(session.ended().success());
}

/// Run by the test below in a pseudo-terminal, as the program itself cannot be made to panic.
#[test]
#[ignore = "it panics"]
fn panics_on_the_screen() {
    let _screen = pipetop::testing::terminal::Screen::open().expect("it is a terminal");
    panic!("as a fault of ours would");
}

#[test]
fn a_panic_restores_the_terminal_before_the_message() {
    let program = std::env::current_exe().expect("a path");
    let arguments = [
        "--ignored",
        "--exact",
        "terminal::panics_on_the_screen",
        "--nocapture",
    ];
    let mut session = Session::start_program(program.as_os_str(), &arguments, &[], (80, 24));
    assert!(!session.ended().success());
    session.until("its words", |text| {
        text.contains("as a fault of ours would")
    });
    assert_given_back(&session);
    let text = session.text();
    assert!(
        text.find(LEAVE) < text.find("as a fault of ours would"),
        "{text}"
    );
}

/// Also run by the test below, as memory cannot be made to run out at a given place.
#[test]
#[ignore = "it aborts"]
fn aborts_on_the_screen() {
    let _screen = pipetop::testing::terminal::Screen::open().expect("it is a terminal");
    std::io::stdin().read_exact(&mut [0]).expect("a key");
    std::process::abort();
}

#[test]
fn an_abort_restores_the_terminal_too() {
    let program = std::env::current_exe().expect("a path");
    let arguments = ["--ignored", "--exact", "terminal::aborts_on_the_screen"];
    let mut session = Session::start_program(program.as_os_str(), &arguments, &[], (80, 24));
    session.until("the screen", |text| text.contains(ENTER));
    session.press("a");
    assert!(!session.ended().success());
    session.until("its words", |text| text.contains("cannot go on"));
    assert_given_back(&session);
}

#[test]
fn a_picture_that_cannot_be_written_leaves_no_files() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let line = format!(
        "cd {0} && ulimit -f 0 && exec {1} --proc-root {0}",
        folder.path().display(),
        support::pipetop().display()
    );
    let mut session = Session::start_program("sh".as_ref(), &["-c", &line], &[], (80, 24));
    session.until("the screen", |text| text.contains("LOOKING"));
    session.press("s");
    session.until("the error", |text| text.contains("cannot save"));
    let left: Vec<_> = folder.path().read_dir().expect("it is there").collect();
    assert!(left.is_empty(), "{left:?}");
    session.press("q");
    assert!(session.ended().success());
}

#[test]
fn without_room_for_its_open_files_no_screen_opens() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for limit in [8, 10, 12, 14, 20] {
        let line = format!(
            "ulimit -n {limit} && exec {} --proc-root {}",
            support::pipetop().display(),
            folder.path().display()
        );
        let mut session = Session::start_program("sh".as_ref(), &["-c", &line], &[], (80, 24));
        assert_eq!(session.ended().exit_code(), 1, "{limit}");
        session.until("the error", |text| {
            text.contains("hint: raise the limit of open files")
        });
        assert!(!session.text().contains(ENTER), "{limit}");
    }
}

/// A job that reads no files, so that none are created before it starts, on a device that every machine has.
const COMPUTE: [&str; 5] = ["demo", "--preset", "compute", "--device", "sim"];

#[test]
fn the_built_in_job_is_on_screen_before_it_is_judged() {
    let mut session = Session::start(&COMPUTE);
    session.until("the first frame", |text| text.contains("WARMING UP"));
    // Which verdict it is depends on other load of this machine.
    let screen = session.shows("a verdict", |screen| {
        let kinds = [
            "COMPUTE-BOUND",
            "BALANCED",
            "DATA-BOUND",
            "HOST-BOUND",
            "UNKNOWN",
        ];
        kinds.iter().any(|kind| screen.contains(kind))
    });
    assert!(screen.contains("device  simulated"), "{screen}");
    assert!(screen.contains("pipetop demo"), "{screen}");
    session.press("q");
    assert!(session.ended().success());
    session.until("the screen to go", |text| text.contains(LEAVE));
    assert_given_back(&session);
}
