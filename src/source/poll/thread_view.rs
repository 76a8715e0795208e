//! One thread of the job, polled many times a second through files that stay open.
//!
//! Does not depend on loaders. Reports what the thread is blocked in and, if permitted, on which descriptor.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::blocked::{Blocked, SystemCall, blocked_in};
use crate::units::Pid;

/// Result of one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Polled {
    pub(super) blocked: Blocked,
    /// The only descriptor that the thread polls; `None` if it polls several or cannot be read.
    pub(super) polled: Option<i32>,
}

impl Polled {
    /// Whether the thread was woken from a wait but has not been on a CPU since. When CPUs are short, that is part of
    /// the wait.
    pub(super) fn is_about_to_run(self, times_before: Option<u64>, times: Option<u64>) -> bool {
        self.blocked == Blocked::Running && times_before.is_some() && times_before == times
    }
}

/// What the kernel has counted for the thread so far, from its `schedstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// Time on a CPU or waiting for one.
    pub(super) ready: Duration,
    /// Number of times it was put on a CPU.
    pub(super) times: u64,
}

impl Scheduled {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
        let mut next = || numbers.next().flatten();
        let (on_cpu, waited, times) = (next()?, next()?, next()?);
        Some(Self {
            ready: Duration::from_nanos(on_cpu).saturating_add(Duration::from_nanos(waited)),
            times,
        })
    }
}

#[derive(Debug)]
pub(super) struct ThreadView {
    wchan: File,
    /// `None` without the right to attach.
    syscall: Option<File>,
    /// `None` if the kernel does not keep these statistics.
    schedstat: Option<File>,
    pub(super) thread: Pid,
    /// Its memory, opened below the proc root and not read by PID: if `/proc` is that of another PID namespace, the PID
    /// is another process here, or none. Kept open, as each poll of an idle worker reads its descriptor.
    memory: Option<File>,
    memory_path: PathBuf,
}

impl ThreadView {
    /// Opens the files of `thread` of `process`.
    pub(super) fn open(proc_root: &Path, process: Pid, thread: Pid) -> io::Result<Self> {
        let task = proc_root.join(format!("{process}/task/{thread}"));
        let syscall = File::open(task.join("syscall")).ok();
        let syscall = syscall.filter(|file| file.read_at(&mut [0; 1], 0).is_ok());
        let memory_path = task.join("mem");
        let memory = File::open(&memory_path).ok();
        // Without the memory it is not known which descriptor a `poll` is about.
        let syscall = syscall.filter(|_| memory.is_some());
        Ok(Self {
            wchan: File::open(task.join("wchan"))?,
            syscall,
            schedstat: File::open(task.join("schedstat")).ok(),
            thread,
            memory,
            memory_path,
        })
    }

    /// Whether memory and system calls can be read: access tier T2.
    pub(super) fn attachable(&self) -> bool {
        self.syscall.is_some()
    }

    /// Reads what the thread is blocked in.
    ///
    /// # Errors
    /// Returns an error if the thread has ended.
    pub(super) fn poll(&self) -> io::Result<Polled> {
        let mut blocked = self.blocked()?;
        // Since Linux 6.12 a thread may stay in the run queue for a while after it went to sleep (`DELAY_DEQUEUE`), and
        // has no wait function until it leaves. Reading its system call takes it out; up to 6.14, by the kernel's
        // source, that waits for a tick.
        if blocked == Blocked::Running && self.is_asleep() {
            blocked = self.blocked()?;
        }
        let mut polled = None;
        if blocked == Blocked::Poll
            && let Some(call) = self.call()
        {
            if call.polls_none() {
                blocked = Blocked::Timer;
            } else {
                polled = self.polled(call);
            }
        }
        Ok(Polled { blocked, polled })
    }

    /// Polls the thread. If its control group is known to be `frozen`, it is stopped, whatever it is blocked in.
    pub(super) fn poll_unless_frozen(&self, frozen: bool) -> io::Result<Polled> {
        let mut poll = self.poll()?;
        if frozen {
            poll.blocked = Blocked::Stopped;
        }
        Ok(poll)
    }

    fn blocked(&self) -> io::Result<Blocked> {
        let mut buffer = [0; 128];
        let length = self.wchan.read_at(&mut buffer, 0)?;
        Ok(blocked_in(&String::from_utf8_lossy(&buffer[..length])))
    }

    /// Whether it has gone to sleep. False if that cannot be seen.
    fn is_asleep(&self) -> bool {
        let mut buffer = [0; 256];
        let call = self.syscall.as_ref();
        let length = call.and_then(|call| call.read_at(&mut buffer, 0).ok());
        length.is_some_and(|length| length > 0 && !buffer.starts_with(b"running"))
    }

    pub(super) fn scheduled(&self) -> Option<Scheduled> {
        let mut buffer = [0; 80];
        let length = self.schedstat.as_ref()?.read_at(&mut buffer, 0).ok()?;
        Scheduled::parse(str::from_utf8(&buffer[..length]).ok()?)
    }

    /// Returns the system call that it sleeps in. `None` if it runs or that cannot be read.
    pub(super) fn call(&self) -> Option<SystemCall> {
        let mut buffer = [0; 256];
        let length = self.syscall.as_ref()?.read_at(&mut buffer, 0).ok()?;
        SystemCall::parse(&String::from_utf8_lossy(&buffer[..length]))
    }

    fn polled(&self, call: SystemCall) -> Option<i32> {
        let address = call.polls_one()?;
        // `struct pollfd` begins with the descriptor.
        let mut descriptor = [0; 4];
        let mut read = |memory: &File| memory.read_exact_at(&mut descriptor, address);
        // After an `exec` the file that was opened reads nothing more.
        read(self.memory.as_ref()?)
            .or_else(|_| read(&File::open(&self.memory_path)?))
            .ok()?;
        Some(i32::from_ne_bytes(descriptor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of process 1 that is in `poll` with one descriptor, below a root that is not `/proc`.
    fn in_poll(root: &Path, memory: Option<&[u8]>) -> ThreadView {
        let task = root.join("1/task/1");
        std::fs::create_dir_all(&task).unwrap();
        std::fs::write(task.join("wchan"), "do_poll.constprop.0").unwrap();
        let number = if cfg!(target_arch = "x86_64") { 7 } else { 73 };
        let call = format!("{number} 0x8 0x1 0x1388 0x0 0x0 0x0 0x7ffc0 0x7f3a0\n");
        std::fs::write(task.join("syscall"), call).unwrap();
        if let Some(memory) = memory {
            std::fs::write(task.join("mem"), memory).unwrap();
        }
        ThreadView::open(root, Pid(1), Pid(1)).unwrap()
    }

    /// A thread has no wait function as long as it is in the run queue.
    #[test]
    fn a_thread_that_fell_asleep_is_not_running() {
        let root = tempfile::tempdir().unwrap();
        let thread = in_poll(root.path(), Some(b""));
        let task = root.path().join("1/task/1");
        std::fs::write(task.join("wchan"), "0").unwrap();
        assert!(thread.is_asleep());
        for call in ["running\n", ""] {
            std::fs::write(task.join("syscall"), call).unwrap();
            assert!(!thread.is_asleep(), "{call:?}");
        }
    }

    /// A thread in a frozen group of version 1 still shows the call that it was in.
    #[test]
    fn a_thread_in_a_frozen_group_is_stopped_whatever_it_is_blocked_in() {
        let root = tempfile::tempdir().unwrap();
        let thread = in_poll(root.path(), Some(b""));
        assert_eq!(
            thread.poll_unless_frozen(false).unwrap().blocked,
            Blocked::Poll
        );
        assert_eq!(
            thread.poll_unless_frozen(true).unwrap().blocked,
            Blocked::Stopped
        );
    }

    #[test]
    fn the_polled_descriptor_is_read_below_the_proc_root() {
        let root = tempfile::tempdir().unwrap();
        let memory = [[0; 8].as_slice(), &17_i32.to_ne_bytes()].concat();
        let thread = in_poll(root.path(), Some(&memory));
        assert_eq!(thread.poll().unwrap().polled, Some(17));
        assert!(thread.attachable());
    }

    #[test]
    fn a_poll_without_a_descriptor_is_a_sleep() {
        let root = tempfile::tempdir().unwrap();
        let thread = in_poll(root.path(), Some(b""));
        let select = if cfg!(target_arch = "x86_64") {
            270
        } else {
            72
        };
        let call = format!("{select} 0x0 0x0 0x0 0x0 0x7ffd10 0x0 0x7ffc0 0x7f3a0\n");
        std::fs::write(root.path().join("1/task/1/syscall"), call).unwrap();
        assert_eq!(thread.poll().unwrap().blocked, Blocked::Timer);
    }

    #[test]
    fn the_memory_of_a_program_that_replaced_itself_is_read_anew() {
        let root = tempfile::tempdir().unwrap();
        let thread = in_poll(root.path(), Some(b""));
        assert_eq!(thread.poll().unwrap().polled, None);
        let memory = root.path().join("1/task/1/mem");
        std::fs::remove_file(&memory).unwrap();
        std::fs::write(&memory, [[0; 8].as_slice(), &17_i32.to_ne_bytes()].concat()).unwrap();
        assert_eq!(thread.poll().unwrap().polled, Some(17));
    }

    #[test]
    fn without_its_memory_a_thread_is_not_attachable() {
        let root = tempfile::tempdir().unwrap();
        let thread = in_poll(root.path(), None);
        assert_eq!(thread.poll().unwrap().blocked, Blocked::Poll);
        assert!(!thread.attachable());
    }

    #[test]
    fn time_that_a_thread_was_ready_is_on_a_cpu_and_waiting_for_one() {
        assert_eq!(
            Scheduled::parse("5000000 2000000 12\n"),
            Some(Scheduled {
                ready: Duration::from_millis(7),
                times: 12,
            })
        );
        for cut in ["", "5000000", "5000000 2000000", "5000000 -1 12", "a b c"] {
            assert_eq!(Scheduled::parse(cut), None, "{cut:?}");
        }
    }
}
