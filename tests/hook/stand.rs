//! A listener and the hook, and what was heard of a script that ran under them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use pipetop::launch::{Hook, Overrides};
use pipetop::probe::Writer;
use pipetop::source::probe::{Listener, Report};
use pipetop::units::Pid;
use tempfile::TempDir;

use crate::patience;

/// What the script says at its end.
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
    /// What the loader was like, or what it handed out.
    pub(crate) seen: Option<serde_json::Value>,
}

/// What was heard of one script and what it left behind.
pub(crate) struct Run {
    pub(crate) pid: Pid,
    pub(crate) output: Output,
    pub(crate) reports: BTreeMap<Pid, Report>,
}

impl Run {
    pub(crate) fn truth(&self) -> Truth {
        let text = String::from_utf8_lossy(&self.output.stdout);
        let errors = String::from_utf8_lossy(&self.output.stderr);
        assert!(self.output.status.success(), "{text}\n{errors}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{errors}"))
    }

    /// The report of the script's own process: nobody else may have written.
    pub(crate) fn report(&self) -> &Report {
        let writers: Vec<_> = self.reports.keys().collect();
        assert_eq!(writers, [&self.pid], "only the trainer writes");
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

/// A listener and the hook, in a directory of its own for temporary files.
pub(crate) struct Stand {
    pub(crate) listener: Listener,
    pub(crate) hook: Hook,
    pub(crate) folder: TempDir,
}

impl Stand {
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
        self.run_with(&Overrides::default(), command)
    }

    /// The same for an experiment.
    pub(crate) fn run_with(&self, overrides: &Overrides, command: &mut Command) -> Run {
        let child = self.start(overrides, command);
        let pid = Pid(child.id().cast_signed());
        let output = child.wait_with_output().expect("our child");
        Run {
            pid,
            output,
            reports: self.heard(),
        }
    }

    pub(crate) fn start(&self, overrides: &Overrides, command: &mut Command) -> Child {
        let address = self.listener.address();
        spawn(command.envs(self.hook.environment_with(address, overrides)))
    }

    /// What everybody has written. Datagrams come in the order in which they were sent: once the listener
    /// knows ours it knows all before it.
    pub(crate) fn heard(&self) -> BTreeMap<Pid, Report> {
        let own = Pid(std::process::id().cast_signed());
        let address = OsStr::new(self.listener.address());
        let mut writer = Writer::connect(address, None).expect("the listener is there");
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

pub(crate) fn listed(variable: &str) -> Vec<String> {
    let list = std::env::var(variable).unwrap_or_else(|_| "python3".to_owned());
    let each = list.split(':').filter(|one| !one.is_empty());
    each.map(str::to_owned).collect()
}

pub(crate) fn pythons() -> Vec<String> {
    listed("PIPETOP_PYTHONS")
}

/// Whether this Python can import the module.
pub(crate) fn has(python: &str, module: &str) -> bool {
    let find = format!("import importlib.util as u, sys; sys.exit(not u.find_spec({module:?}))");
    let output = Command::new(python).args(["-c", &find]).output();
    output.is_ok_and(|output| output.status.success())
}

/// What is missing fails the test where all must be there, and is said elsewhere.
pub(crate) fn say_skipped(why: &str) {
    let must = std::env::var_os("PIPETOP_REQUIRE_TORCH").is_some_and(|value| value == "1");
    assert!(!must, "PIPETOP_REQUIRE_TORCH=1, but {why}");
    let line = format!("skipped: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Those that have torch.
pub(crate) fn torches() -> &'static [String] {
    static FOUND: OnceLock<Vec<String>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let (with, without): (Vec<_>, Vec<_>) = listed("PIPETOP_TORCH_PYTHONS")
            .into_iter()
            .partition(|python| has(python, "torch"));
        for python in without {
            say_skipped(&format!(
                "{python} cannot import torch (set PIPETOP_TORCH_PYTHONS)"
            ));
        }
        with
    })
}

pub(crate) fn job(python: &str, situation: &str) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hook/job.py");
    let mut command = Command::new(python);
    command.arg(script).arg(situation);
    command
}

pub(crate) fn short(python: &str, script: &str) -> Command {
    let mut command = Command::new(python);
    command.args(["-c", script]);
    command
}
