//! Signals the processes below the supervisor, and removes the files that they leave behind: a Python that is ended by
//! a signal leaves the temporary folders of its `multiprocessing` listeners, such as one for each worker of a
//! `DataLoader`.
//!
//! Signals need real processes, so this reads only the real `/proc`. `source`, which can read another root, has its own
//! list of processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use procfs::process::{FDTarget, Process};
use rustix::process::{Pid, Signal, kill_process};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

use crate::job::ProcessTree;
use crate::units;

/// Prefixes of the names of these folders, and of the sockets in them.
const FOLDER: &str = "pymp-";
const SOCKET: &str = "listener-";

/// Returns everything below `root`, without `root`. A process that ends meanwhile may be included or not.
fn below(root: Pid) -> Vec<Pid> {
    // Fails on systems that sysinfo does not support.
    let Ok(mut system) = System::new() else {
        return Vec::new();
    };
    let identity = ProcessRefreshKind::nothing().without_tasks();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, identity);
    let processes = system.processes().values();
    let tree: ProcessTree = processes
        .filter_map(|process| Some((number(process.pid())?, number(process.parent()?)?)))
        .collect();
    let below = tree.descendants(units::Pid(root.as_raw_nonzero().get()));
    let below = below.into_iter();
    below.filter_map(|pid| Pid::from_raw(pid.0)).collect()
}

fn number(pid: sysinfo::Pid) -> Option<units::Pid> {
    i32::try_from(pid.as_u32()).ok().map(units::Pid)
}

/// Sends a signal to everything below `root`. Processes that have ended meanwhile are ignored.
pub(super) fn signal_below(root: Pid, signal: Signal) {
    for pid in below(root) {
        let _ = kill_process(pid, signal);
    }
}

/// The listener folders of processes that are being ended. Dropping this removes the folders.
#[derive(Debug, Default)]
pub(super) struct Leftovers(BTreeSet<PathBuf>);

impl Leftovers {
    /// Records the folders of all processes below `root`, which are about to be ended.
    pub(super) fn remember(&mut self, root: Pid) {
        let sockets = procfs::net::unix().unwrap_or_default();
        let sockets = sockets.into_iter().filter_map(|socket| {
            let folder = socket.path.as_deref().and_then(folder_of)?;
            Some((socket.inode, folder.to_owned()))
        });
        let sockets: Vec<(u64, PathBuf)> = sockets.collect();
        if sockets.is_empty() {
            return;
        }
        for pid in below(root) {
            let held = Process::new(pid.as_raw_nonzero().get()).and_then(|process| process.fd());
            for held in held.into_iter().flatten().flatten() {
                if let FDTarget::Socket(inode) = held.target {
                    let listening = sockets.iter().filter(|(number, _)| *number == inode);
                    self.0.extend(listening.map(|(_, folder)| folder.clone()));
                }
            }
        }
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Usually Python has removed it itself.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Returns the folder of a listener's socket. `None` for any other socket.
fn folder_of(socket: &Path) -> Option<&Path> {
    let begins = |path: &Path, with| Some(path.file_name()?.to_str()?.starts_with(with));
    let folder = socket.parent()?;
    let ours = begins(socket, SOCKET)? && begins(folder, FOLDER)? && socket.is_absolute();
    ours.then_some(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_grandchild_is_below_and_a_thread_is_not() {
        let parent = rustix::process::getppid().expect("who runs the tests");
        let (ready, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        let mut child = Command::new("sleep")
            .arg("60")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let found = below(parent);
        let own = below(rustix::process::getpid());
        child.kill().unwrap();
        child.wait().unwrap();
        drop(ready);
        thread.join().unwrap().unwrap_err();
        assert!(found.contains(&pid), "{found:?}");
        assert!(found.contains(&rustix::process::getpid()), "{found:?}");
        // Other tests of this program may have children, too.
        assert!(own.contains(&pid), "{own:?}");
        for pid in own {
            let task = format!("/proc/self/task/{}", pid.as_raw_nonzero());
            assert!(!std::path::Path::new(&task).exists(), "{pid:?} is a thread");
        }
    }

    #[test]
    fn only_a_listener_of_multiprocessing_has_such_a_folder() {
        let folder = |path| folder_of(Path::new(path));
        let expected = Path::new("/tmp/pymp-abc");
        assert_eq!(folder("/tmp/pymp-abc/listener-x1"), Some(expected));
        for other in [
            "@pymp-abc/listener-x1",
            "pymp-abc/listener-x1",
            "/tmp/pymp-abc/other",
            "/tmp/other/listener-x1",
            "/listener-x1",
        ] {
            assert_eq!(folder(other), None, "{other}");
        }
    }

    #[test]
    fn folders_of_other_processes_are_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().canonicalize().unwrap().join("pymp-test");
        fs::create_dir(&path).unwrap();
        let _listener = UnixListener::bind(path.join("listener-x")).unwrap();
        let mut leftovers = Leftovers::default();
        // This process holds the socket, but is not below its own child. It cannot be the root itself: children that
        // other tests have forked hold the socket, too, until they run another program.
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        leftovers.remember(pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(leftovers.0.is_empty(), "{leftovers:?}");
        drop(leftovers);
        assert!(path.exists());
        let parent = rustix::process::getppid().expect("who runs the tests");
        let mut leftovers = Leftovers::default();
        leftovers.remember(parent);
        leftovers.0.retain(|folder| *folder == path);
        drop(leftovers);
        assert!(!path.exists());
    }
}
