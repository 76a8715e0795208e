//! A training script that runs for one test, and that ends with it whatever happens.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use crate::cgroup::{Cgroup, Limit};
use crate::clock::{now, sleep};
use crate::truth::Truth;

const SCRIPT: &str = include_str!("situations.py");
/// In the environment of every process of a job, with the job's directory as its value.
const MARK: &str = "PIPETOP_TEST_JOB";
const STEADY_DEADLINE: f64 = 90.0;

/// Fields drop in this order, after all processes have ended.
pub(crate) struct Job {
    child: Child,
    _cgroup: Option<Cgroup>,
    directory: TempDir,
}

/// How the script is started.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Start {
    Plain,
    /// Without any capability, also where the user is root.
    Unprivileged,
    /// Two ranks by `torchrun`.
    Torchrun,
}

impl Job {
    /// Starts the named situation in a process group of its own, or says why it cannot.
    pub(crate) fn start(
        python: &str,
        situation: &str,
        start: Start,
        limit: Option<Limit>,
    ) -> Result<Self, String> {
        // Below the target folder: a temporary folder may lie in memory, and files in memory are on no disk.
        let directory =
            tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(|error| error.to_string())?;
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
            // Torch 1.13 under Python 3.11 cannot start with the default of no redirection.
            let torchrun = "-m torch.distributed.run --standalone --nproc_per_node 2 --redirects 1 --tee 1 --log_dir";
            words.extend(torchrun.split(' ').map(String::from));
            words.push(path.display().to_string());
        }
        words.push(path.join("situations.py").display().to_string());
        words.push(situation.to_owned());
        words.push(path.display().to_string());

        let output = File::create(path.join("output")).map_err(|error| error.to_string())?;
        let errors = output.try_clone().map_err(|error| error.to_string())?;
        let child = Command::new(&words[0])
            .args(&words[1..])
            .env(MARK, path)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("GLOO_SOCKET_IFNAME", "lo")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", words[0]))?;
        Ok(Self {
            child,
            _cgroup: cgroup,
            directory,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the script, or its given rank, has marked so far.
    pub(crate) fn truth(&self, rank: Option<u64>) -> Truth {
        let file = rank.map_or_else(|| "truth".to_owned(), |rank| format!("truth.{rank}"));
        Truth::read(&self.directory.path().join(file))
    }

    /// A file that the script writes, as far as it has; empty where it has not begun.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
    }

    /// Waits until the script has had so many batches.
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
        Ok(())
    }

    /// As `Ctrl-Z` does, but not to be caught.
    pub(crate) fn stop(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::STOP);
    }

    /// Ends it without a word, as the kernel does when memory is short.
    pub(crate) fn kill(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }

    /// Processes of this job, wherever they moved: `torchrun` puts its ranks into groups of their own.
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

impl Drop for Job {
    fn drop(&mut self) {
        // One may have been born while the others were killed.
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

/// A copy of `file` that every user may read and run.
pub(crate) fn for_everyone(file: &Path) -> Result<(TempDir, PathBuf), String> {
    let copy = || {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("pipetop");
        fs::copy(file, &path)?;
        for path in [directory.path(), &path] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        }
        Ok((directory, path))
    };
    copy().map_err(|error: std::io::Error| format!("cannot copy {}: {error}", file.display()))
}
