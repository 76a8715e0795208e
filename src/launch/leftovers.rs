//! What a Python leaves in the directory for temporary files when a signal ends it: the folders in which its
//! `multiprocessing` listens, as each worker of a `DataLoader` does. Who ends Pythons clears up behind them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use procfs::process::{FDTarget, Process};
use rustix::process::Pid;

use super::tree::below;

/// What the names of such folders, and of the sockets in them, begin with.
const FOLDER: &str = "pymp-";
const SOCKET: &str = "listener-";

/// The folders of those who were ended. Dropping it removes them.
#[derive(Debug, Default)]
pub(super) struct Leftovers(BTreeSet<PathBuf>);

impl Leftovers {
    /// Remembers the folders of all below `root`, who are about to be ended.
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
            // Mostly it is gone already: its Python has cleared up.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// The folder of such a socket. `None` of any other.
fn folder_of(socket: &Path) -> Option<&Path> {
    let begins = |path: &Path, with| Some(path.file_name()?.to_str()?.starts_with(with));
    let folder = socket.parent()?;
    let ours = begins(socket, SOCKET)? && begins(folder, FOLDER)? && socket.is_absolute();
    ours.then_some(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

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
    fn folders_of_nobody_below_are_left_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().canonicalize().unwrap().join("pymp-test");
        fs::create_dir(&path).unwrap();
        let _listener = UnixListener::bind(path.join("listener-x")).unwrap();
        let mut leftovers = Leftovers::default();
        // We hold it ourselves, and are not below ourselves.
        leftovers.remember(rustix::process::getpid());
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
