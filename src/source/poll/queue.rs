//! How many batches are ready in a loader's result pipe.
//!
//! A pipe shows how many bytes are unread, and a loader's messages have about equal lengths if batches travel as shared
//! memory: so the smallest amount that was ever in the pipe, added or removed is one batch. If batches travel in the
//! pipe itself (`NumPy` arrays, bytes), a full pipe need not hold many: then the queue's semaphore is used, if it can
//! be read. Does not depend on the pipe's readers and writers.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::{QueueSeen, SLOTS, semaphore};

use crate::job::ResultPipe;
use crate::sample::QueueSource;
use crate::units::{Pid, ProcessKey};

/// Messages differ by less than this many bytes: numbers and names in them grow by a few digits.
const LENGTH_TOLERANCE: u64 = 32;
/// Messages longer than this, in bytes, carry data: an unread part of one can look like a shorter message.
const MAX_COUNTED: u64 = 8 * 1024;
/// Maximum number of searches for a loader's semaphore, and polls from one search to the next.
const SEARCHES: u32 = 5;
const POLLS_PER_SEARCH: u64 = 10;
/// A pipe holds 64 KiB. When it is this full, a message may be half written.
const FULL: u64 = 60 * 1024;

#[derive(Debug)]
pub(super) struct QueueView {
    path: PathBuf,
    pub(super) inode: u64,
    /// The workers that filled it when it was first polled.
    pub(super) workers: Vec<ProcessKey>,
    shortest: Option<u64>,
    /// Unread bytes at the poll before.
    before: u64,
    /// Whether batches travel in the pipe itself.
    bulky: bool,
    proc_root: PathBuf,
    trainer: Pid,
    /// Searches left. Workers that are starting do not have the semaphore yet.
    searches: u32,
    semaphore: Option<PathBuf>,
    pub(super) seen: QueueSeen,
}

impl QueueView {
    pub(super) fn new(
        proc_root: &Path,
        trainer: Pid,
        pipe: ResultPipe,
        workers: &[ProcessKey],
    ) -> Self {
        Self {
            path: proc_root.join(format!("{trainer}/fd/{}", pipe.fd)),
            inode: pipe.inode,
            workers: workers.to_vec(),
            shortest: None,
            before: 0,
            bulky: false,
            proc_root: proc_root.to_owned(),
            trainer,
            searches: SEARCHES,
            semaphore: None,
            seen: QueueSeen::default(),
        }
    }

    /// Counts what is ready now, or that the pipe is gone.
    pub(super) fn poll(&mut self, now: Duration) {
        let Some(unread) = self.unread() else {
            self.seen.tally.gone += u64::from(self.is_gone());
            return;
        };
        let ready = self.batches(unread);
        let counted = if self.bulky { self.counted() } else { None };
        if counted.is_some() {
            self.seen.tally.source = QueueSource::Semaphore;
        }
        let ready = counted.unwrap_or(ready);
        self.seen.tally.polls += 1;
        self.seen.tally.empty += u64::from(unread == 0 && ready == 0);
        self.seen.tally.ready_sum += u64::from(ready);
        self.seen.tally.ready = ready;
        self.seen.polls.record(now, ready, SLOTS);
    }

    /// Returns the number of unread bytes. The pipe is opened, queried and closed at once: an end that stayed open
    /// would keep a writer from noticing that its reader is gone. The descriptor's number may by now refer to another
    /// file, and opening that could have side effects, so it is compared first.
    fn unread(&self) -> Option<u64> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        if !self.is_this(&metadata) {
            return None;
        }
        let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits();
        let pipe = File::options()
            .read(true)
            .custom_flags(i32::try_from(flags).ok()?)
            .open(&self.path)
            .ok()?;
        rustix::io::ioctl_fionread(&pipe).ok()
    }

    fn is_this(&self, metadata: &Metadata) -> bool {
        metadata.file_type().is_fifo() && metadata.ino() == self.inode
    }

    /// Whether its reader has closed it. One that cannot be read for another reason is not gone.
    fn is_gone(&self) -> bool {
        match std::fs::metadata(&self.path) {
            Ok(metadata) => !self.is_this(&metadata),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    /// Returns the number of ready batches by the queue's semaphore, if it has one with a name.
    fn counted(&mut self) -> Option<u32> {
        let due = self.seen.tally.polls.is_multiple_of(POLLS_PER_SEARCH);
        if self.semaphore.is_none() && self.searches > 0 && due {
            self.searches -= 1;
            self.semaphore = semaphore::find(&self.proc_root, self.trainer, &self.workers);
        }
        semaphore::ready(self.semaphore.as_ref()?)
    }

    fn batches(&mut self, unread: u64) -> u32 {
        // In a queue that is never nearly empty, only changes show the length of a single batch.
        let moved = unread.abs_diff(self.before);
        self.before = unread;
        let seen = [unread, moved]
            .into_iter()
            .filter(|bytes| *bytes >= LENGTH_TOLERANCE);
        self.shortest = seen.chain(self.shortest).min();
        let (Some(shortest), true) = (self.shortest, unread > 0) else {
            return 0;
        };
        self.bulky |= shortest > MAX_COUNTED || unread > FULL;
        if self.bulky {
            // It is only certain that there is something.
            return 1;
        }
        let batches = (unread as f64 / shortest as f64).round();
        let batches = if batches < 1.0 { 1.0 } else { batches };
        // Bounded by the pipe's 64 KiB, so it fits.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "1 to 65536"
        )]
        let batches = batches as u32;
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn unread_messages_are_counted_and_not_consumed() {
        let (read, mut write) = std::io::pipe().unwrap();
        let own = Pid(i32::try_from(std::process::id()).unwrap());
        let inode = std::fs::metadata(format!("/proc/self/fd/{}", read.as_raw_fd()))
            .unwrap()
            .ino();
        let pipe = ResultPipe {
            inode,
            fd: read.as_raw_fd(),
        };
        let mut queue = QueueView::new(Path::new("/proc"), own, pipe, &[]);
        queue.poll(Duration::ZERO);
        write.write_all(&[0; 441]).unwrap();
        queue.poll(Duration::ZERO);
        write.write_all(&[0; 444 + 441]).unwrap();
        queue.poll(Duration::ZERO);
        queue.poll(Duration::ZERO);
        assert_eq!((queue.seen.tally.polls, queue.seen.tally.empty), (4, 1));
        assert_eq!(
            (queue.seen.tally.ready, queue.seen.tally.ready_sum),
            (3, 1 + 3 + 3)
        );

        // From here on never fewer than two batches: the length of one is known from what was added.
        let mut full = QueueView::new(Path::new("/proc"), own, pipe, &[]);
        full.poll(Duration::ZERO);
        assert_eq!(
            full.seen.tally.ready, 1,
            "nothing tells yet that these are several"
        );
        write.write_all(&[0; 444]).unwrap();
        full.poll(Duration::ZERO);
        assert_eq!(full.seen.tally.ready, 4);

        let stranger = ResultPipe {
            inode: inode + 1,
            ..pipe
        };
        let mut other = QueueView::new(Path::new("/proc"), own, stranger, &[]);
        other.poll(Duration::ZERO);
        assert_eq!(
            other.seen.tally.polls, 0,
            "another file under that number is not touched"
        );

        drop(read);
        queue.poll(Duration::ZERO);
        let tally = queue.seen.tally;
        assert_eq!((tally.polls, tally.gone), (4, 1));
    }
}
