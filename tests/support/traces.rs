//! One run of the built-in job in folders of its own, and what is left of it: processes, shared memory, sockets, files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};
use tempfile::TempDir;

use crate::patience::{now, pause, wait};

const PIPETOP: &str = env!("CARGO_BIN_EXE_pipetop");
/// A name that the dynamic loader looks for and does not find.
const NO_NVML: &str = "libpipetop-has-no-such.so.1";

/// A process of the built-in job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) pid: i32,
    /// In clock ticks since the start of the machine: no other process has both.
    started: u64,
    pub(crate) is_trainer: bool,
}

impl Member {
    pub(crate) fn kill(&self) {
        let pid = Pid::from_raw(self.pid).expect("a number");
        kill_process(pid, Signal::KILL).expect("it runs");
    }
}

/// Where one test runs its jobs, told from all others by their seed.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) seed: u64,
    shared_memory: BTreeSet<String>,
}

impl Place {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Whoever loses its parent becomes our child, so that every end can be seen, whatever process 1 does.
        set_child_subreaper(Some(getpid())).expect("Linux");
        let folder = tempfile::tempdir().expect("a temporary directory");
        for name in ["cache", "tmp"] {
            fs::create_dir(folder.path().join(name)).expect("ours");
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            folder,
            seed: u64::from(std::process::id()) * 1000 + count,
            shared_memory: shared_memory(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// What a command of this place has in its environment.
    pub(crate) fn environment(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("XDG_CACHE_HOME", self.cache()),
            ("TMPDIR", self.path().join("tmp")),
            ("XDG_CONFIG_HOME", self.path().join("none")),
        ]
    }

    /// The arguments of `line` with those that every run here has.
    pub(crate) fn arguments(&self, line: &str) -> Vec<String> {
        let mut arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        arguments.extend(["--seed".into(), self.seed.to_string()]);
        arguments.extend(["--nvml-lib".into(), NO_NVML.into()]);
        arguments
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(PIPETOP);
        command
            .args(self.arguments(line))
            .envs(self.environment())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    /// The job's processes that run now.
    pub(crate) fn members(&self) -> Vec<Member> {
        let seed = format!("--seed={}", self.seed);
        let processes = fs::read_dir("/proc").expect("procfs").flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let member = |pid: i32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).into_owned();
            let words: BTreeSet<&str> = command.split('\0').collect();
            let is_trainer = words.contains("builtin-trainer");
            let ours = is_trainer || words.contains("builtin-worker");
            let started = Stat::read(pid)?.started;
            (ours && words.contains(seed.as_str())).then_some(Member {
                pid,
                started,
                is_trainer,
            })
        };
        pids.filter_map(member).collect()
    }

    /// Waits until a trainer and so many workers run, and gives them.
    pub(crate) fn running(&self, workers: usize) -> Vec<Member> {
        wait("the job", || {
            let members = self.members();
            let trainers = members.iter().filter(|member| member.is_trainer).count();
            (trainers == 1 && members.len() == 1 + workers).then_some(members)
        })
    }

    /// Waits until nothing is left of a job with these processes, which pipetop of that number ran.
    pub(crate) fn assert_nothing_left(&self, members: &[Member], pipetop: u32) {
        let left =
            || -> Vec<&Member> { members.iter().filter(|member| is_there(member)).collect() };
        let deadline = now() + Duration::from_secs(5);
        while !left().is_empty() && now() < deadline {
            pause(Duration::from_millis(5));
        }
        assert_eq!(left(), Vec::<&Member>::new(), "processes are left");
        assert_eq!(self.members(), [], "processes are left");
        let sockets = sockets_of(pipetop);
        assert!(sockets.is_empty(), "sockets are left: {sockets:?}");
        let memory = shared_memory();
        let memory: Vec<_> = memory.difference(&self.shared_memory).collect();
        assert!(memory.is_empty(), "shared memory is left: {memory:?}");
        let files = files(&self.path().join("tmp"));
        assert!(files.is_empty(), "temporary files are left: {files:?}");
        let others = files_in_cache(&self.cache());
        assert!(others.is_empty(), "files are left in the cache: {others:?}");
    }
}

/// The names of abstract sockets that this pipetop made.
pub(crate) fn sockets_of(pipetop: u32) -> Vec<String> {
    let sockets = fs::read_to_string("/proc/net/unix").expect("procfs");
    let name = format!("@pipetop-{pipetop}-");
    let words = sockets
        .split_whitespace()
        .filter(|word| word.starts_with(&name));
    words.map(str::to_owned).collect()
}

/// Whether the process is there in any state. One that has ended and became our child is let go.
fn is_there(member: &Member) -> bool {
    let Some(stat) = Stat::read(member.pid).filter(|stat| stat.started == member.started) else {
        return false;
    };
    if stat.state == 'Z' && stat.parent == getpid().as_raw_nonzero().get() {
        let _ = waitpid(Pid::from_raw(member.pid), WaitOptions::NOHANG);
        return false;
    }
    true
}

struct Stat {
    state: char,
    parent: i32,
    started: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses can hold anything.
        let mut words = stat.rsplit_once(") ")?.1.split(' ');
        Some(Self {
            state: words.next()?.chars().next()?,
            parent: words.next()?.parse().ok()?,
            started: words.nth(17)?.parse().ok()?,
        })
    }
}

/// Names in `/dev/shm`, but for those that Python makes: other tests run it meanwhile.
fn shared_memory() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| {
            !["sem.mp-", "torch_", "psm_"]
                .iter()
                .any(|start| name.starts_with(start))
        })
        .collect()
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Files in the cache that are no part of a whole data set.
fn files_in_cache(cache: &Path) -> Vec<PathBuf> {
    let part = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        let in_set = path.starts_with(cache.join("pipetop"));
        let known = path.extension() == Some(OsStr::new("jpg"))
            || [OsStr::new("manifest.json"), OsStr::new("lock")].contains(&name);
        in_set && known
    };
    let mut found = files(cache);
    found.retain(|path| !part(path));
    found
}
