//! The real program in a pseudo-terminal of 24 lines and 80 columns.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portable_pty::{CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

use crate::patience::{now, wait, wait_telling};

const ROWS: NonZero<u16> = NonZero::new(24).expect("not 0");
const COLUMNS: NonZero<u16> = NonZero::new(80).expect("not 0");

/// The program, and what it has written.
pub(crate) struct Session {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    pub(crate) master: Option<Box<dyn MasterPty + Send>>,
    pub(crate) writer: Option<Box<dyn Write + Send>>,
    /// Each piece with the time since the start of the program.
    written: Arc<Mutex<Vec<(Duration, String)>>>,
    /// Whoever reads the other end lets go of it after the next byte.
    pub(crate) let_go: Arc<AtomicBool>,
    folder: tempfile::TempDir,
}

impl Session {
    /// With these arguments; without any, on a machine without processes.
    pub(crate) fn start<T: AsRef<OsStr>>(arguments: &[T]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// The same with these variables in its environment.
    pub(crate) fn start_with<T: AsRef<OsStr>>(
        arguments: &[T],
        environment: &[(&str, &OsStr)],
    ) -> Self {
        let nothing = tempfile::tempdir().expect("a temporary directory");
        let size = PtySize {
            rows: ROWS.get(),
            cols: COLUMNS.get(),
            ..PtySize::default()
        };
        let pair = native_pty_system()
            .openpty(size)
            .expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(assert_cmd::cargo::cargo_bin!("pipetop"));
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
            command.env(name, value);
        }
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let written = Arc::new(Mutex::new(Vec::new()));
        let let_go = Arc::new(AtomicBool::new(false));
        let began = now();
        let child = pair.slave.spawn_command(command).expect("it starts");
        let (sink, done) = (Arc::clone(&written), Arc::clone(&let_go));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while !done.load(Ordering::SeqCst)
                && let Ok(count @ 1..) = reader.read(&mut bytes)
            {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                let mut sink = sink.lock().expect("not poisoned");
                sink.push((now() - began, text));
            }
        });
        Self {
            child,
            writer: pair.master.take_writer().ok(),
            master: Some(pair.master),
            written,
            let_go,
            folder: nothing,
        }
    }

    /// Where it runs: a folder of its own.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn pid(&self) -> Pid {
        let pid = self.child.process_id().expect("it runs");
        Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid")
    }

    pub(crate) fn text(&self) -> String {
        let written = self.written.lock().expect("not poisoned");
        written.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The screen as it stands, a line each.
    pub(crate) fn screen(&self) -> String {
        let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
        terminal.process(self.text().as_bytes());
        terminal.screen().contents()
    }

    /// From the start of the program until a text was written.
    pub(crate) fn time_to(&self, wanted: &str) -> Option<Duration> {
        let written = self.written.lock().expect("not poisoned");
        let mut so_far = String::new();
        let mut pieces = written.iter();
        let found = pieces.find(|(_, text)| {
            so_far.push_str(text);
            so_far.contains(wanted)
        });
        found.map(|(after, _)| *after)
    }

    /// Waits until what was written satisfies a condition.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        wait(what, || holds(&self.text()).then_some(()));
    }

    /// Waits until the screen satisfies a condition, and gives it.
    pub(crate) fn shows(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let look = || Some(self.screen()).filter(|screen| holds(screen));
        wait_telling(what, look, || self.screen())
    }

    pub(crate) fn press(&mut self, keys: &str) {
        let writer = self.writer.as_mut().expect("still open");
        writer.write_all(keys.as_bytes()).expect("it is open");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait("the end", || self.child.try_wait().expect("our child"))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid().as_raw_pid()));
        stat.is_ok_and(|stat| stat.contains(") T "))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
