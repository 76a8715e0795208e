//! The real program in a pseudo-terminal, by default of 24 lines and 80 columns.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portable_pty::{CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

use crate::waiting::{now, pause, wait, wait_with_state};

const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

const FRAME_BEGIN: &[u8] = b"\x1b[?2026h";
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// Pieces of output, each with the time since the start of the program.
type Written = Vec<(Duration, Vec<u8>)>;

/// The program and its output.
pub struct Session {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    pub master: Option<Box<dyn MasterPty + Send>>,
    pub writer: Option<Box<dyn Write + Send>>,
    written: Arc<Mutex<Written>>,
    /// Set = the reading thread closes its end of the terminal after its next read.
    pub release: Arc<AtomicBool>,
    /// Set = the other end is not read.
    pub paused: Arc<AtomicBool>,
    /// The terminal's screen, and the number of bytes of output that it has processed.
    terminal: RefCell<(vt100::Parser, usize)>,
    /// The terminal's settings at the start.
    settings: String,
    folder: tempfile::TempDir,
}

impl Session {
    /// Starts pipetop with these arguments. Without any, it is started on a machine without processes.
    pub fn start<T: AsRef<OsStr>>(arguments: &[T]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// Starts pipetop with these variables in its environment.
    pub fn start_with<T: AsRef<OsStr>>(arguments: &[T], environment: &[(&str, &OsStr)]) -> Self {
        let program = crate::pipetop();
        let set: Vec<_> = environment
            .iter()
            .map(|(name, value)| (*name, Some(*value)))
            .collect();
        Self::start_program(program.as_os_str(), arguments, &set, (COLUMNS, ROWS))
    }

    /// Starts any program on a terminal of this size; variables without a value are removed.
    pub fn start_program<T: AsRef<OsStr>>(
        program: &OsStr,
        arguments: &[T],
        environment: &[(&str, Option<&OsStr>)],
        (columns, rows): (u16, u16),
    ) -> Self {
        let nothing = tempfile::tempdir().expect("a temporary directory");
        let pair = native_pty_system()
            .openpty(pty_size(columns, rows))
            .expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        if arguments.is_empty() {
            for root in ["--proc-root", "--sys-root"] {
                command.arg(root);
                command.arg(nothing.path());
            }
        }
        command.cwd(nothing.path());
        command.env("LC_ALL", "C.UTF-8");
        command.env("TERM", "xterm-256color");
        command.env("XDG_CONFIG_HOME", nothing.path());
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            }
        }
        let settings = format!("{:?}", pair.master.get_termios());
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let written = Arc::new(Mutex::new(Vec::new()));
        let release = Arc::new(AtomicBool::new(false));
        let began = now();
        let child = pair.slave.spawn_command(command).expect("it starts");
        let paused = Arc::new(AtomicBool::new(false));
        let (sink, done) = (Arc::clone(&written), Arc::clone(&release));
        let wait = Arc::clone(&paused);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !done.load(Ordering::SeqCst)
                && let Ok(count @ 1..) = reader.read(&mut bytes)
            {
                let mut sink = sink.lock().expect("not poisoned");
                sink.push((now() - began, bytes[..count].to_vec()));
                drop(sink);
                while wait.load(Ordering::SeqCst) {
                    pause(Duration::from_millis(5));
                }
            }
        });
        Self {
            child,
            writer: pair.master.take_writer().ok(),
            master: Some(pair.master),
            written,
            release,
            paused,
            terminal: RefCell::new((terminal(columns, rows), 0)),
            settings,
            folder: nothing,
        }
    }

    /// Returns the program's working directory, which no other session uses.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn pid(&self) -> Pid {
        let pid = self.child.process_id().expect("it runs");
        Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid")
    }

    /// Returns the program's whole output.
    pub fn bytes(&self) -> Vec<u8> {
        let written = self.written.lock().expect("not poisoned");
        let pieces: Vec<&[u8]> = written.iter().map(|(_, bytes)| &bytes[..]).collect();
        pieces.concat()
    }

    pub fn text(&self) -> String {
        // Decoded as a whole, as a piece may end within a character.
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Returns the screen after the last whole frame, one line each, without trailing blanks, which are invisible.
    pub fn screen(&self) -> String {
        let (terminal, taken) = &mut *self.terminal.borrow_mut();
        let bytes = self.bytes();
        // A part of a mark may have been processed before.
        let from = taken.saturating_sub(FRAME_BEGIN.len());
        let new = &bytes[from..];
        let last = |mark: &[u8]| new.windows(mark.len()).rposition(|bytes| bytes == mark);
        let begun = last(FRAME_BEGIN).filter(|begun| last(FRAME_END) < Some(*begun));
        let whole = begun.map_or(bytes.len(), |begun| from + begun).max(*taken);
        terminal.process(&bytes[*taken..whole]);
        *taken = whole;
        let lines = terminal.screen().contents();
        let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
        lines.join("\n")
    }

    /// Returns the time from the start of the program until a text was written.
    pub fn time_to(&self, wanted: &str) -> Option<Duration> {
        let written = self.written.lock().expect("not poisoned");
        let mut so_far = Vec::new();
        let mut pieces = written.iter();
        let found = pieces.find(|(_, bytes)| {
            so_far.extend_from_slice(bytes);
            String::from_utf8_lossy(&so_far).contains(wanted)
        });
        found.map(|(after, _)| *after)
    }

    /// Returns the time from the start of the program until this many bytes were written.
    pub fn time_to_bytes(&self, wanted: usize) -> Option<Duration> {
        let written = self.written.lock().expect("not poisoned");
        let mut so_far = 0;
        let mut pieces = written.iter();
        let found = pieces.find(|(_, bytes)| {
            so_far += bytes.len();
            so_far >= wanted
        });
        found.map(|(after, _)| *after)
    }

    /// Waits until the output satisfies a condition.
    pub fn until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        wait(what, || holds(&self.text()).then_some(()));
    }

    /// Waits until the screen satisfies a condition, and returns it.
    pub fn shows(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let poll = || Some(self.screen()).filter(|screen| holds(screen));
        wait_with_state(what, poll, || self.screen())
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        let master = self.master.as_ref().expect("still open");
        // Earlier output is for another size.
        let written = self.bytes().len();
        self.terminal = RefCell::new((terminal(columns, rows), written));
        master.resize(pty_size(columns, rows)).expect("it is open");
    }

    /// Whether the terminal's settings are those at the start.
    pub fn is_set_back(&self) -> bool {
        let master = self.master.as_ref().expect("still open");
        format!("{:?}", master.get_termios()) == self.settings
    }

    pub fn press(&mut self, keys: &str) {
        let writer = self.writer.as_mut().expect("still open");
        writer.write_all(keys.as_bytes()).expect("it is open");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    pub fn ended(&mut self) -> ExitStatus {
        wait("the end", || self.child.try_wait().expect("our child"))
    }

    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid().as_raw_pid()));
        stat.is_ok_and(|stat| stat.contains(") T "))
    }
}

fn terminal(columns: u16, rows: u16) -> vt100::Parser {
    let size = |length| NonZero::new(length).expect("a terminal with cells");
    vt100::Parser::new(size(rows), size(columns), 0)
}

fn pty_size(cols: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        ..PtySize::default()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.paused.store(false, Ordering::SeqCst);
        let _ = self.child.kill();
    }
}
