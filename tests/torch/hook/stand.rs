//! A listener with the hook, and the reports of a script that ran under them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use pipetop::testing::launch::{Hook, LoaderOverrides};
use pipetop::testing::probe::ProbeWriter;
use pipetop::testing::source::probe::{Listener, ProbeReport};
use pipetop::units::Pid;
use tempfile::TempDir;

use support::machine::{self, Share};
use support::waiting as patience;
use support::waiting::ToEnd;

/// The script's own figures at its end.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Truth {
    /// Nanoseconds.
    pub(crate) waited: u64,
    pub(crate) batches: u64,
    pub(crate) digest: String,
    pub(crate) random: f64,
    pub(crate) hooked: bool,
    pub(crate) error: Option<String>,
    pub(crate) child: Option<i32>,
    /// The loader's settings, or its batches.
    pub(crate) seen: Option<serde_json::Value>,
}

/// The reports of one script, and what it left behind.
pub(crate) struct Run {
    pub(crate) pid: Pid,
    pub(crate) output: Output,
    pub(crate) reports: BTreeMap<Pid, ProbeReport>,
}

impl Run {
    pub(crate) fn truth(&self) -> Truth {
        let text = String::from_utf8_lossy(&self.output.stdout);
        let errors = String::from_utf8_lossy(&self.output.stderr);
        assert!(self.output.status.success(), "{text}\n{errors}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{errors}"))
    }

    /// Returns the report of the script's own process, which must be the only one.
    pub(crate) fn report(&self) -> &ProbeReport {
        let writers: Vec<_> = self.reports.keys().collect();
        assert_eq!(
            writers,
            [&self.pid],
            "only the trainer writes: {:?}",
            self.words()
        );
        &self.reports[&self.pid]
    }

    pub(crate) fn notice(&self) -> Option<&str> {
        self.reports.get(&self.pid)?.notice.as_deref()
    }

    pub(crate) fn words(&self) -> (Option<i32>, String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let Output {
            status,
            stdout,
            stderr,
        } = &self.output;
        (status.code(), text(stdout), text(stderr))
    }
}

/// A listener and the hook, with a separate directory for temporary files.
pub(crate) struct HookSession {
    pub(crate) listener: Listener,
    pub(crate) hook: Hook,
    pub(crate) folder: TempDir,
}

impl HookSession {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            listener: Listener::bind().expect("a socket"),
            hook: Hook::install_in(folder.path()).expect("installed"),
            folder,
        }
    }

    /// Runs the command to its end, under the hook.
    pub(crate) fn run(&self, command: &mut Command) -> Run {
        self.run_with(&LoaderOverrides::default(), command)
    }

    /// Runs it with the settings of an experiment.
    pub(crate) fn run_with(&self, overrides: &LoaderOverrides, command: &mut Command) -> Run {
        let mut child = self.start(overrides, command);
        let pid = Pid(child.id().cast_signed());
        let output = child.to_end();
        Run {
            pid,
            output,
            reports: self.heard(),
        }
    }

    pub(crate) fn start(&self, overrides: &LoaderOverrides, command: &mut Command) -> Child {
        let address = self.listener.address();
        spawn(command.envs(self.hook.environment(address, overrides)))
    }

    /// Returns all reports. Datagrams arrive in the order in which they were sent: once the listener has ours, it has all
    /// earlier ones.
    pub(crate) fn heard(&self) -> BTreeMap<Pid, ProbeReport> {
        let own = Pid(std::process::id().cast_signed());
        let address = OsStr::new(self.listener.address());
        let mut writer = ProbeWriter::connect(address, None).expect("the listener is there");
        patience::wait("the listener to hear us", || {
            writer.notice("the end");
            self.listener.writers().contains(&own).then_some(())
        });
        let writers = self.listener.writers().into_iter();
        writers
            .filter(|pid| *pid != own)
            .filter_map(|pid| Some((pid, self.listener.take(pid)?)))
            .collect()
    }
}

pub(crate) fn spawn(command: &mut Command) -> Child {
    command
        .env_remove("RANK")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the interpreter starts")
}

/// Runs `body` with each Python, with torch or without.
pub(crate) fn each_python(body: impl Fn(&str) + Sync) {
    machine::each_interpreter(Share::Sixth, body);
}

/// Runs `body` with each Python that has torch.
pub(crate) fn each_torch(body: impl Fn(&str) + Sync) {
    machine::each_torch(Share::Sixth, |python| body(&python.path));
}

/// Runs `body` with the last Python that has torch, for what does not depend on torch's version.
pub(crate) fn last_torch(body: impl FnOnce(&str)) {
    machine::last_torch(Share::Sixth, |python| body(&python.path));
}

pub(crate) fn job(python: &str, situation: &str) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torch/hook/job.py");
    let mut command = Command::new(python);
    command.arg(script).arg(situation);
    command
}

pub(crate) fn short(python: &str, script: &str) -> Command {
    let mut command = Command::new(python);
    command.args(["-c", script]);
    command
}
