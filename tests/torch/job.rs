//! A training script that runs for one test, and always ends with it.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use support::machine::Share;
use tempfile::TempDir;

use crate::cgroup::{Cgroup, Limit};
use crate::clock::{now, sleep};
use crate::truth::Truth;

const SCRIPT: &str = include_str!("situations.py");
/// Variable in the environment of every process of a job, with the job's directory as its value.
const MARK: &str = "PIPETOP_TEST_JOB";
/// Folder for what Python compiles: the next job need not compile the same packages again, and nothing is left beside
/// their sources.
const BYTECODE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/bytecode");
/// Seconds. Only ends a hang: on a busy machine, importing torch takes a minute.
const STEADY_DEADLINE: f64 = 300.0;
/// The user and the group without any files.
pub(crate) const NOBODY: u32 = 65534;

/// A running job. Its fields are dropped in this order, after all its processes have ended.
pub(crate) struct Job {
    child: Child,
    nice: bool,
    _cgroup: Option<Cgroup>,
    directory: TempDir,
}

/// How the script is started.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Start {
    Plain,
    /// Without any capability, even for root.
    Unprivileged,
    /// Two ranks with `torchrun`.
    Torchrun,
}

impl Job {
    /// Starts the named situation in a separate process group, or returns why that is impossible.
    pub(crate) fn start(
        python: &str,
        situation: &str,
        start: Start,
        share: Share,
        limit: Option<Limit>,
    ) -> Result<Self, String> {
        let directory = folder()?;
        let path = directory.path();
        fs::write(path.join("situations.py"), SCRIPT).map_err(|error| error.to_string())?;
        let name = format!("pipetop-{}", path.file_name().unwrap_or_default().display());
        let cgroup = limit
            .map(|limit| Cgroup::new(&name, limit, path))
            .transpose()?;

        let mut words: Vec<String> = Vec::new();
        if let Some(cgroup) = &cgroup {
            let join = r#"echo $$ > "$0" && exec "$@""#;
            words.extend(["sh", "-c", join].map(String::from));
            words.push(cgroup.members().display().to_string());
        }
        if start == Start::Unprivileged {
            words.extend(crate::trial::UNPRIVILEGED.map(String::from));
        }
        words.push(python.to_owned());
        if start == Start::Torchrun {
            // Under Python 3.11, torch 1.13 cannot start with the default of no redirection.
            let torchrun = "-m torch.distributed.run --standalone --nproc_per_node 2 --redirects 1 --tee 1 --log_dir";
            words.extend(torchrun.split(' ').map(String::from));
            words.push(path.display().to_string());
        }
        words.push(path.join("situations.py").display().to_string());
        words.push(situation.to_owned());
        words.push(path.display().to_string());
        Self::spawn(&words, share, cgroup, directory)
    }

    /// Starts a script with its folder as the first argument; `launcher` comes before it.
    pub(crate) fn script(
        python: &str,
        launcher: &[&str],
        share: Share,
        script: &Path,
        arguments: &[String],
    ) -> Result<Self, String> {
        let directory = folder()?;
        let mut words = vec![python.to_owned()];
        words.extend(launcher.iter().map(|word| (*word).to_owned()));
        words.extend([script, directory.path()].map(|path| path.display().to_string()));
        words.extend_from_slice(arguments);
        Self::spawn(&words, share, None, directory)
    }

    fn spawn(
        words: &[String],
        share: Share,
        cgroup: Option<Cgroup>,
        directory: TempDir,
    ) -> Result<Self, String> {
        let path = directory.path();
        let output = File::create(path.join("output")).map_err(|error| error.to_string())?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        // If a job has the whole machine, nothing else is measured that it could disturb.
        let nice = share != Share::Whole && can_lower_niceness();
        let before: &[&str] = if nice { &NICE } else { &[] };
        let words: Vec<&str> = before
            .iter()
            .copied()
            .chain(words.iter().map(String::as_str))
            .collect();
        let child = Command::new(words[0])
            .args(&words[1..])
            .env(MARK, path)
            .env_remove("PYTHONDONTWRITEBYTECODE")
            .env("PYTHONPYCACHEPREFIX", BYTECODE)
            .env("GLOO_SOCKET_IFNAME", "lo")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", words[0]))?;
        Ok(Self {
            child,
            nice,
            _cgroup: cgroup,
            directory,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the marks so far of the script, or of the given rank.
    pub(crate) fn truth(&self, rank: Option<u64>) -> Truth {
        let file = rank.map_or_else(|| "truth".to_owned(), |rank| format!("truth.{rank}"));
        Truth::read(&self.directory.path().join(file))
    }

    /// Returns the rank of this process, from the first line of each rank's marks.
    pub(crate) fn rank_of(&self, pid: u64) -> Option<u64> {
        let ranks = (0..).map_while(|rank| {
            let marks = self.file(&format!("truth.{rank}"));
            let line = marks.lines().next()?;
            Some((rank, line == format!("pid {pid}")))
        });
        ranks.filter(|(_, same)| *same).map(|(rank, _)| rank).next()
    }

    /// Returns a file of the script as far as it is written; empty if it has not begun.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
    }

    /// Changes the beginning of a file of the script, without truncating it.
    pub(crate) fn overwrite(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let path = self.directory.path().join(name);
        File::options().write(true).open(path)?.write_all(bytes)
    }

    /// Waits until the script has had this many batches, and then resets its niceness to normal.
    pub(crate) fn reach(&mut self, batches: usize, rank: Option<u64>) -> Result<(), String> {
        let deadline = now() + STEADY_DEADLINE;
        while self.truth(rank).batches() < batches {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || now() > deadline {
                let output = self.directory.path().join("output");
                let output = fs::read_to_string(output).unwrap_or_default();
                return Err(format!(
                    "no {batches} batches ({ended:?}); the script's output:\n{output}"
                ));
            }
            sleep(Duration::from_millis(50));
        }
        if self.nice {
            // Other processes are found by their environment. The child may have changed its title, which overwrites
            // that.
            let processes = self.processes().into_iter();
            processes
                .chain([Pid::from_child(&self.child)])
                .for_each(reset_niceness);
        }
        Ok(())
    }

    /// Stops it like `Ctrl-Z`, with a signal that cannot be caught.
    pub(crate) fn stop(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::STOP);
    }

    /// Kills it without warning, like the kernel when memory is short.
    pub(crate) fn kill(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }

    /// Returns the processes of this job in any group: `torchrun` puts its ranks into separate groups.
    fn processes(&self) -> Vec<Pid> {
        let mark = format!("{MARK}={}", self.directory.path().display());
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        pids.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let marked = environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes());
            marked.then(|| Pid::from_raw(pid)).flatten()
        })
        .collect()
    }
}

/// Makes the imports use only the CPU time that is left by other jobs, which are being measured.
const NICE: [&str; 3] = ["nice", "-n", "19"];

/// Whether a process may lower its niceness, which needs a permission. Tried in a separate thread that ends afterwards.
fn can_lower_niceness() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    let try_it = || {
        rustix::process::nice(1).is_ok() && rustix::process::setpriority_process(None, 0).is_ok()
    };
    *MAY.get_or_init(|| thread::spawn(try_it).join().unwrap_or(false))
}

/// Resets the niceness of all threads of the process: each has its own.
fn reset_niceness(process: Pid) {
    let threads = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
    for thread in threads.into_iter().flatten().flatten() {
        let thread = thread.file_name().to_str().and_then(|id| id.parse().ok());
        if let Some(thread) = thread.and_then(Pid::from_raw) {
            // It may have just ended.
            let _ = rustix::process::setpriority_process(Some(thread), 0);
        }
    }
}

/// Creates a folder below the target folder: the usual folder for temporary files may be in memory, on no disk.
fn folder() -> Result<TempDir, String> {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(|error| error.to_string())
}

impl Drop for Job {
    fn drop(&mut self) {
        // Other processes are found by their environment, below. The child may have changed its title, which overwrites
        // that.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        // A process may have been started while the others were killed.
        for _ in 0..100 {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
            sleep(Duration::from_millis(20));
        }
        let _ = self.child.wait();
    }
}
