//! One run of the built-in job in separate folders, and checks of what it leaves behind: processes, shared memory,
//! sockets, files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};
use tempfile::TempDir;

use crate::waiting::{wait, wait_with_state};

/// A name that the dynamic loader searches for and does not find.
const NO_NVML: &str = "libpipetop-has-no-such.so.1";

/// A process of the built-in job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub pid: i32,
    /// Start time in clock ticks since boot; together with the PID it identifies a process.
    started: u64,
    pub is_trainer: bool,
}

impl Member {
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid).expect("a number");
        kill_process(pid, signal).expect("it runs");
    }

    /// Returns the process that started this one.
    pub fn parent(&self) -> Option<Self> {
        let pid = Stat::read(self.pid)?.parent;
        Some(Self {
            pid,
            started: Stat::read(pid)?.started,
            is_trainer: false,
        })
    }

    /// Whether the process has ended, even if its parent has not reaped it yet.
    pub fn has_exited(&self) -> bool {
        Stat::read(self.pid).is_none_or(|stat| stat.state == 'Z')
    }
}

/// The folders of one test's jobs, which are identified by their seed.
pub struct Place {
    folder: TempDir,
    pub seed: u64,
    shared_memory: BTreeSet<String>,
}

impl Place {
    #[expect(clippy::new_without_default, reason = "it makes folders")]
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Orphaned processes become our children, so that their end can be observed whatever process 1 does.
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

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// Returns the environment of commands in this place.
    pub fn environment(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("XDG_CACHE_HOME", self.cache()),
            ("TMPDIR", self.path().join("tmp")),
            ("XDG_CONFIG_HOME", self.path().join("none")),
        ]
    }

    /// Returns the arguments in `line`, followed by those that all runs in this place have.
    pub fn arguments(&self, line: &str) -> Vec<String> {
        let mut arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        arguments.extend(["--seed".into(), self.seed.to_string()]);
        arguments.extend(["--nvml-lib".into(), NO_NVML.into()]);
        arguments
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = crate::with_all_signals();
        command
            .args(self.arguments(line))
            .envs(self.environment())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    /// Returns the job's running processes.
    pub fn members(&self) -> Vec<Member> {
        // The settings in its command line end with the seed.
        let seed = format!("\"seed\":{}}}", self.seed);
        let processes = fs::read_dir("/proc").expect("procfs").flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let member = |pid: i32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).into_owned();
            let words: BTreeSet<&str> = command.split('\0').collect();
            let is_trainer = words.contains("builtin-trainer");
            let ours = is_trainer || words.contains("builtin-worker");
            let started = Stat::read(pid)?.started;
            (ours && command.contains(&seed)).then_some(Member {
                pid,
                started,
                is_trainer,
            })
        };
        pids.filter_map(member).collect()
    }

    /// Waits until a trainer and this many workers run, and returns them.
    pub fn running(&self, workers: usize) -> Vec<Member> {
        wait("the job", || {
            let members = self.members();
            let trainers = members.iter().filter(|member| member.is_trainer).count();
            (trainers == 1 && members.len() == 1 + workers).then_some(members)
        })
    }

    /// Waits until nothing is left of a job with these processes, which the pipetop with this PID ran.
    pub fn assert_nothing_left(&self, members: &[Member], pipetop: u32) {
        let left = || {
            let members = members.iter().filter(|member| is_there(member)).cloned();
            Left {
                members: members.chain(self.members()).collect(),
                sockets: sockets_of(pipetop),
                shared_memory: shared_memory()
                    .difference(&self.shared_memory)
                    .cloned()
                    .collect(),
                temporary_files: files(&self.path().join("tmp")),
                in_cache: files_in_cache(&self.cache()),
            }
        };
        let nothing = || (left() == Left::default()).then_some(());
        wait_with_state("nothing to be left", nothing, || format!("{:#?}", left()));
    }
}

/// What is left of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Left {
    members: BTreeSet<Member>,
    sockets: Vec<String>,
    shared_memory: Vec<String>,
    temporary_files: Vec<PathBuf>,
    in_cache: Vec<PathBuf>,
}

/// Returns the names of abstract sockets that this pipetop created.
pub fn sockets_of(pipetop: u32) -> Vec<String> {
    let sockets = fs::read_to_string("/proc/net/unix").expect("procfs");
    let name = format!("@pipetop-{pipetop}-");
    let words = sockets
        .split_whitespace()
        .filter(|word| word.starts_with(&name));
    words.map(str::to_owned).collect()
}

/// Whether the process exists in any state. Reaps an ended process that was reparented to us.
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
        // The name in parentheses may contain anything.
        let mut words = stat.rsplit_once(") ")?.1.split(' ');
        Some(Self {
            state: words.next()?.chars().next()?,
            parent: words.next()?.parse().ok()?,
            started: words.nth(17)?.parse().ok()?,
        })
    }
}

/// Returns the names in `/dev/shm` that are pipetop's. Other tests may add some at any time.
fn shared_memory() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("pipetop")).collect()
}

/// Returns every file below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
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

/// Returns the files in the cache that are not part of a complete data set.
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
