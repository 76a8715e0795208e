//! Folders for one run of `pipetop run`, and checks of what the run leaves behind: processes and temporary files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::Pid;
use tempfile::TempDir;

use crate::session::Session;
use crate::waiting::{ToEnd, wait_with_state};

/// The folders of one test. Its processes are found by the temporary folder's path, which is in their environment.
pub struct RunFolder {
    folder: TempDir,
}

impl RunFolder {
    #[expect(clippy::new_without_default, reason = "it makes folders")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(folder.path().join("tmp")).expect("ours");
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn temporary(&self) -> PathBuf {
        self.path().join("tmp")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::with_all_signals();
        command
            .arg("run")
            .args(arguments)
            .current_dir(self.path())
            .env("TMPDIR", self.temporary())
            .env("XDG_CONFIG_HOME", self.path().join("none"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).to_end()
    }

    /// Runs `pipetop run` with these arguments in a pseudo-terminal.
    pub fn session(&self, arguments: &[&str]) -> Session {
        let mut words = vec!["run"];
        words.extend(arguments);
        let (temporary, home) = (self.temporary(), self.path().to_owned());
        let environment = [
            ("TMPDIR", temporary.as_os_str()),
            ("HOME", home.as_os_str()),
            ("PWD", home.as_os_str()),
        ];
        Session::start_with(&words, &environment)
    }

    /// Returns the processes that run for this test, including pipetop's own.
    pub fn processes(&self) -> Vec<(Pid, String)> {
        let mark = [b"TMPDIR=", self.temporary().as_os_str().as_encoded_bytes()].concat();
        let entries = fs::read_dir("/proc").expect("procfs").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let ours = |pid: i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let marked = environment
                .split(|byte| *byte == 0)
                .any(|word| word == mark);
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            marked.then_some((Pid::from_raw(pid)?, command))
        };
        pids.filter_map(ours).collect()
    }

    /// Counts the temporary files of pipetop, and those that a killed Python leaves. Files of torch itself do not
    /// count.
    pub fn temporary_files(&self) -> usize {
        let entries = fs::read_dir(self.temporary()).expect("ours").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let ours = names.filter(|name| name.starts_with("pipetop-") || name.starts_with("pymp-"));
        ours.count()
    }

    /// Waits until no process and no file is left.
    pub fn assert_nothing_is_left(&self) {
        wait_with_state(
            "nothing to be left",
            || (self.processes().is_empty() && self.temporary_files() == 0).then_some(()),
            || format!("{:?}, {} files", self.processes(), self.temporary_files()),
        );
    }
}
