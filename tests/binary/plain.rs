//! The built-in job without a terminal: starting it, and reading its output and its documents.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output};

use rustix::process::{Signal, kill_process};
use serde_json::Value;
use support::traces::{Member, Place, sockets_of};
use support::waiting::{wait, wait_with_state};

pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the one document of a run that succeeded.
pub(crate) fn document(output: &Output) -> Value {
    let errors = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

pub(crate) fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

pub(crate) fn count(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

/// Returns the error and the hint, which must be the only lines apart from those about creating a data set.
pub(crate) fn refused(errors: &str) -> (String, String) {
    let lines = errors.lines();
    let said: Vec<&str> = lines.filter(|line| !line.starts_with("creat")).collect();
    let [error, hint] = said[..] else {
        panic!("not one error and one hint: {errors}");
    };
    let error = error.strip_prefix("error: ").expect(errors);
    let hint = hint.strip_prefix("hint: ").expect(errors);
    assert!(!error.is_empty() && !hint.is_empty(), "{errors}");
    (error.to_owned(), hint.to_owned())
}

/// A command that runs without a terminal, and its output. Dropping it ends it.
pub(crate) struct Plain {
    child: Child,
    folder: PathBuf,
}

impl Plain {
    pub(crate) fn start(place: &Place, line: &str) -> Self {
        Self::of(place, place.command(line))
    }

    pub(crate) fn of(place: &Place, mut command: Command) -> Self {
        let folder = place.path().to_owned();
        let file = |name| File::create(folder.join(name)).expect("a file");
        let child = command
            .stdout(file("out"))
            .stderr(file("errors"))
            .spawn()
            .expect("it starts");
        Self { child, folder }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn out(&self) -> String {
        fs::read_to_string(self.folder.join("out")).expect("UTF-8")
    }

    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(self.folder.join("errors")).expect("UTF-8")
    }

    /// Waits for a document that satisfies `wanted`, of a command that prints one per line.
    pub(crate) fn document(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let find = || {
            let out = self.out();
            // The last line may be incomplete.
            let whole = out.rsplit_once('\n')?.0;
            let documents = whole
                .lines()
                .map(|line| serde_json::from_str(line).expect("a document a line"));
            documents.into_iter().find(&wanted)
        };
        wait_with_state(what, find, || self.out() + &self.errors())
    }

    /// Waits until the job runs and pipetop has found it.
    pub(crate) fn seen(&self, place: &Place, workers: usize) -> Vec<Member> {
        let members = place.running(workers);
        wait("a line", || self.out().contains("batches/s").then_some(()));
        assert_eq!(sockets_of(self.child.id()).len(), 1, "it listens");
        members
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
    }

    /// Returns the exit code; `None` if a signal ended it.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        wait("the end", || self.child.try_wait().expect("ours")).code()
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
