//! What shows a wait for PyTorch's loader without a stack: the pipe that the main thread polls for it, or that the
//! pinning thread has no batch.
//!
//! Does not read stacks.

use std::fs::read_link;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::paced::odd_pause;
use crate::job::ResultPipe;

/// Mean time between two waits on a lock that are compared to their stacks.
const CHECK_AFTER: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct VisibleWaits {
    /// The folder of the trainer's descriptors.
    descriptors: PathBuf,
    result_pipes: Vec<NumberedFile>,
    /// What it polled while its stack showed it waiting for a batch.
    polled: Vec<NumberedFile>,
    /// Whether a stack showed it waiting elsewhere on a lock while the pinning thread had no batch. Until then, it waits
    /// for a batch when it waits on a lock while that thread has none.
    pub(super) locks_elsewhere: bool,
    /// When a wait on a lock was last compared to its stack.
    lock_checked: Duration,
}

/// A descriptor, and what was open there: its number may be given to another file once this one is closed.
#[derive(Debug, PartialEq, Eq)]
struct NumberedFile {
    fd: i32,
    file: PathBuf,
}

impl VisibleWaits {
    /// Creates the state. `process`: the trainer's folder in `/proc`.
    pub(super) fn of(process: &Path) -> Self {
        Self {
            descriptors: process.join("fd"),
            result_pipes: Vec::new(),
            polled: Vec::new(),
            locks_elsewhere: false,
            lock_checked: Duration::ZERO,
        }
    }

    pub(super) fn follow(&mut self, pipes: impl Iterator<Item = ResultPipe>) {
        let file = |pipe: &ResultPipe| format!("pipe:[{}]", pipe.inode).into();
        let polled = |pipe| NumberedFile {
            file: file(&pipe),
            fd: pipe.fd,
        };
        self.result_pipes = pipes.map(polled).collect();
    }

    /// Whether this is the result pipe of a known worker.
    pub(super) fn is_result_pipe(&self, fd: i32) -> bool {
        self.is_one_of(&self.result_pipes, fd)
    }

    /// Whether it waits for a batch when it polls this descriptor.
    pub(super) fn is_polled_for_batches(&self, fd: i32) -> bool {
        self.is_result_pipe(fd) || self.is_one_of(&self.polled, fd)
    }

    fn is_one_of(&self, all: &[NumberedFile], fd: i32) -> bool {
        let mut known = all.iter().filter(|known| known.fd == fd).peekable();
        known.peek().is_some()
            && read_link(self.path(fd)).is_ok_and(|file| known.any(|known| known.file == file))
    }

    /// Records a descriptor that the main thread polled while a stack showed it waiting for a batch.
    pub(super) fn add(&mut self, fd: i32) {
        if let Ok(file) = read_link(self.path(fd)) {
            self.polled.retain(|known| known.fd != fd);
            self.polled.push(NumberedFile { fd, file });
        }
    }

    fn path(&self, fd: i32) -> PathBuf {
        self.descriptors.join(fd.to_string())
    }

    /// Returns the descriptors that it polled while its stack showed it waiting.
    pub(super) fn polled(&self) -> impl Iterator<Item = i32> {
        self.polled.iter().map(|polled| polled.fd)
    }

    /// Whether a wait on a lock is to be compared to its stack now.
    pub(super) fn lock_is_due(&mut self, now: Duration) -> bool {
        let pause = odd_pause(self.lock_checked, CHECK_AFTER);
        let due = now.saturating_sub(self.lock_checked) >= pause;
        if due {
            self.lock_checked = now;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn another_file_with_the_number_of_a_closed_pipe_is_not_polled_for_batches() {
        let process = tempfile::tempdir().unwrap();
        std::fs::create_dir(process.path().join("fd")).unwrap();
        let opens = |fd: i32, file: &str| {
            let path = process.path().join(format!("fd/{fd}"));
            let _ = std::fs::remove_file(&path);
            symlink(file, path).unwrap();
        };
        let mut waits = VisibleWaits::of(process.path());
        opens(7, "pipe:[70]");
        opens(9, "pipe:[90]");
        waits.follow([ResultPipe { inode: 70, fd: 7 }].into_iter());
        waits.add(9);
        let polled = |waits: &VisibleWaits| [7, 8, 9].map(|fd| waits.is_polled_for_batches(fd));
        assert_eq!(polled(&waits), [true, false, true]);
        assert!(waits.is_result_pipe(7) && !waits.is_result_pipe(9));
        opens(7, "socket:[71]");
        opens(9, "pipe:[91]");
        assert_eq!(polled(&waits), [false; 3]);
        // The next loader's pipe has the same number.
        waits.add(9);
        assert_eq!(polled(&waits), [false, false, true]);
        assert_eq!(waits.polled().collect::<Vec<_>>(), [9]);
    }
}
