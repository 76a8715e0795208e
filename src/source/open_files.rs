//! `/proc/PID/fd`: the regular files that a process has open, and how far it has read in them (needs T1).
//!
//! Reads links and `fdinfo`; opens no file of the job. Only reads sizes on file systems of this machine, because a dead
//! server would block the call.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::sample::{JobSample, OpenFile, OpenFiles};
use crate::source::file::{self, field, printable, unreadable};
use crate::source::mounts::{self, MountInfo};
use crate::units::{Bytes, ProcessKey};

/// Maximum number of files listed.
const LISTED: usize = 32;
/// Maximum number of descriptors read: a loader can hold thousands of shared batches.
const MAX_DESCRIPTORS: usize = 512;
/// File systems without data of the job: files opened there are devices and figures.
const NO_DATA: [&str; 6] = ["proc", "sysfs", "devtmpfs", "devpts", "cgroup2", "mqueue"];
/// File systems of this machine, which do not block.
const LOCAL: [&str; 11] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs", "overlay", "squashfs", "erofs",
];

/// Shortest time between two readings: a little less than a second.
const PAUSE: Duration = Duration::from_millis(900);

/// Reads the open files of the worker whose page is open.
pub(super) struct FilesReader {
    proc_root: PathBuf,
    process: Option<ProcessKey>,
    /// When the files were last read, and the result.
    newest: Option<(Duration, OpenFiles)>,
}

impl FilesReader {
    pub(super) fn new(proc_root: &Path) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            process: None,
            newest: None,
        }
    }

    /// Reads the files of this process from now on; `None` = of no process.
    pub(super) fn watch(&mut self, process: Option<ProcessKey>) {
        (self.process, self.newest) = (process, None);
    }

    /// Returns the files if the process is a worker of the job. Reads them at most once a second.
    pub(super) fn read(&mut self, now: Duration, job: Option<&JobSample>) -> Option<OpenFiles> {
        let process = self.process?;
        let mut ranks = job.filter(|job| !job.ended)?.ranks.iter();
        if !ranks.any(|rank| rank.worker(process).is_some()) {
            return None;
        }
        let old = |at: &Duration| now.saturating_sub(*at) >= PAUSE;
        if self.newest.as_ref().is_none_or(|(at, _)| old(at)) {
            self.newest = Some((now, open_files(&self.proc_root, process)));
        }
        self.newest.as_ref().map(|(_, files)| files.clone())
    }
}

/// Returns the files that `process` has open now.
pub fn open_files(proc_root: &Path, process: ProcessKey) -> OpenFiles {
    let found = read(&proc_root.join(process.pid.to_string()));
    let (files, more) = match found {
        Ok((mut files, unseen)) => {
            let more = files.len().saturating_sub(LISTED) + unseen;
            files.truncate(LISTED);
            (Ok(files), more)
        }
        Err(reason) => (Err(reason), 0),
    };
    OpenFiles {
        process,
        files,
        more,
    }
}

/// Returns the files, and the number of descriptors that were not read.
fn read(process: &Path) -> Result<(Vec<OpenFile>, usize), String> {
    let reason = |path: &Path, error: &io::Error| unreadable("files", path, error).reason;
    let mounts =
        mounts::read(process).map_err(|error| reason(&process.join("mountinfo"), &error))?;
    let folder = process.join("fd");
    let entries = std::fs::read_dir(&folder).map_err(|error| reason(&folder, &error))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut numbers: Vec<u32> = names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    let unseen = numbers.len().saturating_sub(MAX_DESCRIPTORS);
    numbers.truncate(MAX_DESCRIPTORS);
    // A descriptor that was closed meanwhile does not count.
    let files = numbers
        .iter()
        .filter_map(|number| open_file(process, *number, &mounts));
    Ok((files.collect(), unseen))
}

/// Returns the file of a descriptor. `None` for pipes, sockets, folders, devices and shared memory.
fn open_file(process: &Path, number: u32, mounts: &[MountInfo]) -> Option<OpenFile> {
    let link = process.join(format!("fd/{number}"));
    let target = std::fs::read_link(&link).ok()?;
    if !target.is_absolute() || target.starts_with("/dev") {
        return None;
    }
    let info = file::read(&process.join(format!("fdinfo/{number}"))).ok()?;
    let (flags, mount) = opened(&info, mounts)?;
    if flags.contains(OFlags::DIRECTORY) {
        return None;
    }
    let size = if LOCAL.contains(&&*mount.fs_type) {
        let about = std::fs::metadata(&link).ok()?;
        if !about.is_file() {
            return None;
        }
        Some(Bytes(about.len()))
    } else {
        None
    };
    let (path, deleted) = named(&target);
    Some(OpenFile {
        path: printable(&path),
        position: field(&info, "pos:")?.parse().ok()?,
        size,
        deleted,
    })
}

/// Returns how a file was opened and the mount that it is on, from its `fdinfo`. `None` for a file without data of the
/// job; anonymous shared memory is not on any mount.
pub(super) fn opened<'a>(fdinfo: &str, mounts: &'a [MountInfo]) -> Option<(OFlags, &'a MountInfo)> {
    let flags = u32::from_str_radix(field(fdinfo, "flags:")?, 8).ok()?;
    let mount: i32 = field(fdinfo, "mnt_id:")?.parse().ok()?;
    let mount = mounts.iter().find(|known| known.mnt_id == mount)?;
    let has_data = !NO_DATA.contains(&&*mount.fs_type);
    has_data.then_some((OFlags::from_bits_retain(flags), mount))
}

/// Splits off the suffix that the kernel adds to the name of a deleted file.
fn named(target: &Path) -> (PathBuf, bool) {
    let text = target
        .to_str()
        .and_then(|text| text.strip_suffix(" (deleted)"));
    text.map_or_else(|| (target.to_owned(), false), |path| (path.into(), true))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;
    use crate::units::Pid;

    fn own() -> ProcessKey {
        ProcessKey {
            pid: Pid(i32::try_from(std::process::id()).unwrap()),
            start_ticks: 0,
        }
    }

    #[test]
    fn files_are_found_with_their_place_and_nothing_else_is() {
        // Not in the temporary folder, which may be on any file system.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("train\u{1b}[31m.tar");
        std::fs::File::create(&path)
            .unwrap()
            .write_all(b"ten bytes.")
            .unwrap();
        let mut open = std::fs::File::open(&path).unwrap();
        open.read_exact(&mut [0; 4]).unwrap();
        let gone = folder.path().join("gone");
        let _gone = std::fs::File::create(&gone).unwrap();
        std::fs::remove_file(&gone).unwrap();
        let _folder = std::fs::File::open(folder.path()).unwrap();
        let _device = std::fs::File::open("/dev/null").unwrap();
        let found = open_files(Path::new("/proc"), own());
        let files = found.files.unwrap();
        let ours = |file: &&OpenFile| file.path.contains(folder.path().to_str().unwrap());
        let ours: Vec<&OpenFile> = files.iter().filter(ours).collect();
        assert_eq!(ours.len(), 2, "{files:?}");
        let train = ours
            .iter()
            .find(|file| file.path.contains("train"))
            .unwrap();
        assert!(!train.path.contains('\u{1b}'), "{train:?}");
        assert_eq!((train.position, train.deleted), (4, false));
        assert!(train.size.is_none_or(|size| size == Bytes(10)), "{train:?}");
        let gone = ours
            .iter()
            .find(|file| file.path.ends_with("gone"))
            .unwrap();
        assert!(gone.deleted, "{gone:?}");
        assert!(!files.iter().any(|file| file.path == "/dev/null"));
    }

    #[test]
    fn some_dozens_are_listed_and_the_others_counted() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("part");
        std::fs::write(&path, "x").unwrap();
        let _open: Vec<_> = (0..LISTED + 8)
            .map(|_| std::fs::File::open(&path).unwrap())
            .collect();
        let found = open_files(Path::new("/proc"), own());
        assert_eq!(found.files.unwrap().len(), LISTED);
        assert!(found.more >= 8, "{}", found.more);
    }

    #[test]
    fn unreadable_files_have_a_reason() {
        let root = tempfile::tempdir().unwrap();
        let reason = open_files(root.path(), own()).files.unwrap_err();
        assert!(reason.contains("mountinfo: no such file"), "{reason}");
    }
}
