//! The real program on a terminal that accepts no output, as with a closed laptop, a stopped `ssh` or a paused
//! emulator: it neither hangs nor queues frames.

use std::ffi::OsStr;
use std::fs::File;
use std::sync::atomic::Ordering;

use portable_pty::MasterPty;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::process::Signal;
use support::session::Session;
use support::waiting::wait;

const LEAVE: &str = "\u{1b}[?1049l";
/// The key that redraws every cell.
const REDRAW: &str = "\u{c}";

/// The program's end of the pseudo-terminal, to check what the kernel has queued in it.
struct Queues(File);

impl Queues {
    fn of(session: &Session) -> Self {
        let master = session.master.as_deref().map(MasterPty::tty_name);
        let name = master.flatten().expect("a pseudo-terminal has a name");
        let end = File::options().read(true).write(true).open(name);
        Self(end.expect("the terminal is ours"))
    }

    /// Whether there is no room for output, so that a write would block.
    fn are_full(&self) -> bool {
        let mut end = [PollFd::new(&self.0, PollFlags::OUT)];
        poll(&mut end, Some(&Timespec::default())).expect("it is open") == 0
    }

    /// Whether every key was read.
    fn have_no_keys(&self) -> bool {
        ioctl_fionread(&self.0).expect("it is a terminal") == 0
    }
}

/// Opens the help on a large terminal, stops reading the other end, and fills the kernel's queue.
fn blocked() -> (Session, Queues) {
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
    let queues = Queues::of(&session);
    session.paused.store(true, Ordering::SeqCst);
    let mut read = 0;
    wait("the terminal to be full", || {
        if queues.have_no_keys() {
            session.press(REDRAW);
        }
        // The thread that reads the other end may still be in its last read.
        let before = std::mem::replace(&mut read, session.bytes().len());
        (queues.are_full() && before == read).then_some(())
    });
    (session, queues)
}

#[test]
fn an_unblocked_terminal_gets_the_newest_frame() {
    const ASKED: usize = 100;
    let (mut session, queues) = blocked();
    let before = session.bytes().len();
    for _ in 0..ASKED {
        session.press(REDRAW);
        wait("the key to be read", || queues.have_no_keys().then_some(()));
    }
    // pipetop reads the key that closes the help, and draws as soon as it can.
    session.press("?");
    wait("the key to be read", || queues.have_no_keys().then_some(()));
    assert_eq!(session.bytes().len(), before, "nothing was taken");
    session.paused.store(false, Ordering::SeqCst);
    session.shows("the newest", |screen| {
        screen.contains("LOOKING") && !screen.contains("KEYS")
    });
    let late = session.bytes().len() - before;
    // What the kernel had queued and two frames, not the hundred frames that were requested.
    assert!(late < 160_000, "{late} bytes");
    session.press("q");
    assert!(session.ended().success());
    assert!(session.is_set_back());
}

#[test]
fn a_blocked_terminal_does_not_prevent_quitting() {
    let leave = |end: Option<Signal>| {
        let (mut session, _) = blocked();
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
fn a_blocked_terminal_does_not_prevent_suspending() {
    let (session, _) = blocked();
    session.signal(Signal::TSTP);
    wait("the stop", || session.is_stopped().then_some(()));
    assert!(session.is_set_back());
    session.paused.store(false, Ordering::SeqCst);
    session.signal(Signal::CONT);
    session.shows("the help again", |screen| screen.contains("KEYS"));
}

#[test]
fn where_it_goes_too_the_program_ends() {
    let (mut session, queues) = blocked();
    drop(queues);
    session.release.store(true, Ordering::SeqCst);
    session.paused.store(false, Ordering::SeqCst);
    session.writer.take();
    session.master.take();
    session.ended();
}
