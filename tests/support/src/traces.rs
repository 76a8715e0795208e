//! One run of the built-in job in folders of its own, and what is left of it: processes, shared memory, sockets, files.

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

use crate::waiting::{wait, wait_telling};

/// A name that the dynamic loader looks for and does not find.
const NO_NVML: &str = "libpipetop-has-no-such.so.1";

/// A process of the built-in job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub pid: i32,
    /// In clock ticks since the start of the machine: no other process has both.
    started: u64,
    pub is_trainer: bool,
}

impl Member {
    pub fn kill(&self) {
        let pid = Pid::from_raw(self.pid).expect("a number");
        kill_process(pid, Signal::KILL).expect("it runs");
    }
}

/// Where one test runs its jobs, told from all others by their seed.
pub struct Place {
    folder: TempDir,
    pub seed: u64,
    shared_memory: BTreeSet<String>,
}

impl Place {
    #[expect(clippy::new_without_default, reason = "it makes folders")]
    pub fn new() -> Self {
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

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// What a command of this place has in its environment.
    pub fn environment(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("XDG_CACHE_HOME", self.cache()),
            ("TMPDIR", self.path().join("tmp")),
            ("XDG_CONFIG_HOME", self.path().join("none")),
        ]
    }

    /// The arguments of `line` with those that every run here has.
    pub fn arguments(&self, line: &str) -> Vec<String> {
        let mut arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        arguments.extend(["--seed".into(), self.seed.to_string()]);
        arguments.extend(["--nvml-lib".into(), NO_NVML.into()]);
        arguments
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(crate::pipetop());
        command
            .args(self.arguments(line))
            .envs(self.environment())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    /// The job's processes that run now.
    pub fn members(&self) -> Vec<Member> {
        // The settings that it was given end with it.
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

    /// Waits until a trainer and so many workers run, and gives them.
    pub fn running(&self, workers: usize) -> Vec<Member> {
        wait("the job", || {
            let members = self.members();
            let trainers = members.iter().filter(|member| member.is_trainer).count();
            (trainers == 1 && members.len() == 1 + workers).then_some(members)
        })
    }

    /// Waits until nothing is left of a job with these processes, which pipetop of that number ran.
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
        wait_telling("nothing to be left", nothing, || format!("{:#?}", left()));
    }
}

/// What a run has left behind.
#[derive(Debug, Default, PartialEq, Eq)]
struct Left {
    members: BTreeSet<Member>,
    sockets: Vec<String>,
    shared_memory: Vec<String>,
    temporary_files: Vec<PathBuf>,
    in_cache: Vec<PathBuf>,
}

/// The names of abstract sockets that this pipetop made.
pub fn sockets_of(pipetop: u32) -> Vec<String> {
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

/// Names of pipetop's in `/dev/shm`. Other tests may have some there meanwhile.
fn shared_memory() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("pipetop")).collect()
}

/// Every file below a folder.
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
