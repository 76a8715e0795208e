//! What a thread is blocked in, from two lines of the kernel: `wchan` (same user) and `syscall` (needs the right to
//! attach).
//!
//! Pure. Names of wait functions differ between kernels, so prefixes are compared.

/// What kind of wait a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blocked {
    /// On a CPU or runnable: `wchan` is `0`. Permission denied has the same text, so the right must be checked
    /// elsewhere.
    Running,
    /// `poll` or `select`. Without a descriptor it is a sleep ([`Self::Timer`]), but if the call cannot be read, it
    /// counts here.
    Poll,
    PipeRead,
    PipeWrite,
    /// Receiving from a Unix socket, which is how shared-memory descriptors travel.
    Unix,
    /// A block device, or a page that is being read from one.
    Disk,
    /// A network socket, or a file system behind one.
    Network,
    Lock,
    /// A lock on a file that another process holds.
    FileLock,
    Timer,
    /// Stopped by a signal or a tracer, or its control group is frozen.
    Stopped,
    Other,
}

impl Blocked {
    /// Whether it is asleep until something else acts: another thread, process or machine.
    pub(super) fn is_for_others(self) -> bool {
        !matches!(
            self,
            Self::Running | Self::Timer | Self::Disk | Self::Stopped
        )
    }
}

/// Prefixes of wait functions of kernels 4.4 to 6.18.
const PLACES: [(&str, Blocked); 57] = [
    ("poll_schedule_timeout", Blocked::Poll),
    ("do_sys_poll", Blocked::Poll),
    ("do_poll", Blocked::Poll),
    ("do_select", Blocked::Poll),
    ("core_sys_select", Blocked::Poll),
    ("anon_pipe_read", Blocked::PipeRead),
    ("pipe_read", Blocked::PipeRead),
    ("anon_pipe_write", Blocked::PipeWrite),
    ("pipe_write", Blocked::PipeWrite),
    ("pipe_wait", Blocked::PipeRead),
    ("unix_stream", Blocked::Unix),
    ("__skb_wait_for_more_packets", Blocked::Unix),
    ("folio_wait", Blocked::Disk),
    ("io_schedule", Blocked::Disk),
    ("wait_on_page", Blocked::Disk),
    ("__lock_page", Blocked::Disk),
    ("__folio_lock", Blocked::Disk),
    ("blk_", Blocked::Disk),
    ("blkdev_", Blocked::Disk),
    ("submit_bio_wait", Blocked::Disk),
    // Direct I/O, past the page cache.
    ("__iomap_dio", Blocked::Disk),
    ("iomap_dio", Blocked::Disk),
    ("__blockdev_direct", Blocked::Disk),
    ("filemap_", Blocked::Disk),
    ("rq_qos_wait", Blocked::Disk),
    ("jbd2_", Blocked::Disk),
    ("xfs_", Blocked::Disk),
    ("throtl_", Blocked::Disk),
    // Too much written data is not on disk yet.
    ("balance_dirty", Blocked::Disk),
    ("__sync_dirty", Blocked::Disk),
    ("__wait_on_buffer", Blocked::Disk),
    ("bit_wait_io", Blocked::Disk),
    ("ext4_", Blocked::Disk),
    ("btrfs_", Blocked::Disk),
    ("sk_wait_data", Blocked::Network),
    ("wait_woken", Blocked::Network),
    ("tcp_", Blocked::Network),
    ("inet_", Blocked::Network),
    ("ep_poll", Blocked::Network),
    ("do_epoll_wait", Blocked::Network),
    ("nfs", Blocked::Network),
    ("rpc_", Blocked::Network),
    ("fuse_", Blocked::Network),
    ("request_wait_answer", Blocked::Network),
    ("netfs_", Blocked::Network),
    ("futex_", Blocked::Lock),
    ("locks_lock", Blocked::FileLock),
    ("flock_lock", Blocked::FileLock),
    ("posix_lock", Blocked::FileLock),
    ("fcntl_setlk", Blocked::FileLock),
    ("do_lock_file_wait", Blocked::FileLock),
    ("hrtimer_nanosleep", Blocked::Timer),
    ("do_nanosleep", Blocked::Timer),
    ("do_signal_stop", Blocked::Stopped),
    ("get_signal", Blocked::Stopped),
    ("do_freezer_trap", Blocked::Stopped),
    ("__refrigerator", Blocked::Stopped),
];

/// Parses a `wchan` line.
pub(super) fn blocked_in(wchan: &str) -> Blocked {
    let wchan = wchan.trim();
    if wchan.is_empty() || wchan == "0" {
        return Blocked::Running;
    }
    if wchan.starts_with("ptrace_stop") {
        return Blocked::Stopped;
    }
    PLACES
        .iter()
        .find(|(prefix, _)| wchan.starts_with(prefix))
        .map_or(Blocked::Other, |(_, blocked)| *blocked)
}

/// Whether a thread in this wait function only waits, as a launcher does: for a child, descriptors or a time. `None` if it
/// cannot be told: permission denied reads as running.
pub(crate) fn only_waits(wchan: &str) -> Option<bool> {
    match blocked_in(wchan) {
        Blocked::Running | Blocked::Stopped => None,
        Blocked::Poll | Blocked::PipeRead | Blocked::Timer | Blocked::Other => Some(true),
        Blocked::Network => Some(wchan.contains("ep_poll") || wchan.contains("epoll")),
        _ => Some(false),
    }
}

/// `poll` and `ppoll` in the system call tables `arch/*/entry/syscalls` and `asm-generic`.
const POLL: &[u64] = if cfg!(target_arch = "x86_64") {
    &[7, 271]
} else {
    &[73]
};

/// A system call with its first arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SystemCall {
    pub(super) number: u64,
    pub(super) arguments: [u64; 4],
}

impl SystemCall {
    /// Parses a `syscall` line: `NUMBER ARG ARG ARG ...`. Returns `None` if the thread is running or the line is
    /// malformed.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_whitespace();
        let number = fields.next()?.parse().ok()?;
        let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
        Some(Self {
            number,
            arguments: [argument()?, argument()?, argument()?, argument()?],
        })
    }

    /// Returns the address of the `struct pollfd` if this is a `poll` of one descriptor.
    pub(super) fn polls_one(self) -> Option<u64> {
        (POLL.contains(&self.number) && self.arguments[1] == 1).then_some(self.arguments[0])
    }

    /// Whether it waits for no descriptor, only for time to pass, as `time.sleep` does before Python 3.11.
    pub(super) fn polls_none(self) -> bool {
        /// `select` and `pselect6`, by the same tables as `POLL`.
        const SELECT: &[u64] = if cfg!(target_arch = "x86_64") {
            &[23, 270]
        } else {
            &[72]
        };
        let [first, second, ..] = self.arguments;
        POLL.contains(&self.number) && second == 0 || SELECT.contains(&self.number) && first == 0
    }

    /// Whether it opens, lists or asks about files, rather than reading what is in them.
    pub(super) fn is_about_files(self) -> bool {
        /// `open`, `stat`, `fstat`, `lstat`, `access`, `getdents`, `readlink` and their newer kin, by the same tables.
        const ABOUT_FILES: &[u64] = if cfg!(target_arch = "x86_64") {
            &[
                2, 4, 5, 6, 21, 78, 89, 217, 257, 262, 267, 269, 332, 437, 439,
            ]
        } else {
            &[48, 56, 61, 78, 79, 80, 291, 437, 439]
        };
        ABOUT_FILES.contains(&self.number)
    }

    /// Whether it writes to a file, or waits until written data is on disk.
    pub(super) fn is_writing(self) -> bool {
        /// `write`, `pwrite`, `writev`, `msync`, `sendfile`, `fsync`, `fdatasync`, `sync`, `sync_file_range`, `pwritev`,
        /// `syncfs`, `copy_file_range`, `pwritev2`, by the same tables.
        const WRITES: &[u64] = if cfg!(target_arch = "x86_64") {
            &[1, 18, 20, 26, 40, 74, 75, 162, 277, 296, 306, 326, 328]
        } else {
            &[64, 68, 66, 227, 71, 82, 83, 81, 84, 70, 267, 285, 287]
        };
        WRITES.contains(&self.number)
    }

    /// Whether it waits on a futex that other processes may wake, too: a lock or a semaphore that processes share.
    pub(super) fn is_shared_futex(self) -> bool {
        /// `FUTEX_PRIVATE_FLAG`.
        const PRIVATE: u64 = 128;
        self.futex().is_some() && self.arguments[1] & PRIVATE == 0
    }

    /// Whether it waits on a futex with a time limit.
    pub(super) fn is_timed_futex(self) -> bool {
        self.futex().is_some() && self.arguments[3] != 0
    }

    /// Returns the address of the futex that it waits on; `None` if it does not wait on one.
    pub(super) fn futex(self) -> Option<usize> {
        let address = usize::try_from(self.arguments[0]).ok();
        address.filter(|_| self.number == libc::SYS_futex.cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use support::fuzz;

    use super::*;

    #[test]
    fn wait_functions_of_several_kernels() {
        for (text, expected) in [
            ("0", Blocked::Running),
            ("poll_schedule_timeout.constprop.0", Blocked::Poll),
            ("do_sys_poll", Blocked::Poll),
            ("folio_wait_bit_common", Blocked::Disk),
            ("__iomap_dio_rw", Blocked::Disk),
            ("futex_do_wait", Blocked::Lock),
            ("locks_lock_inode_wait", Blocked::FileLock),
            ("futex_wait_queue_me", Blocked::Lock),
            ("unix_stream_read_generic", Blocked::Unix),
            ("do_signal_stop", Blocked::Stopped),
            ("get_signal", Blocked::Stopped),
            ("__refrigerator", Blocked::Stopped),
            ("do_epoll_wait", Blocked::Network),
            ("something_new", Blocked::Other),
        ] {
            assert_eq!(blocked_in(text), expected, "{text}");
        }
    }

    #[test]
    fn a_poll_of_one_descriptor_is_distinguished() {
        let poll = if cfg!(target_arch = "x86_64") { 7 } else { 73 };
        let call = |text: &str| SystemCall::parse(text).and_then(SystemCall::polls_one);
        assert_eq!(
            call(&format!("{poll} 0x7f00 0x1 0x1388 0x0 0x0 0x0 0x1 0x2")),
            Some(0x7f00)
        );
        assert_eq!(
            call(&format!("{poll} 0x7f00 0x2 0x1388 0x0 0x0 0x0 0x1 0x2")),
            None
        );
        assert_eq!(call("230 0x1 0x1 0x7ff 0x0 0x0 0x0 0x1 0x2"), None);
        assert_eq!(call("running"), None);
        let futex = if cfg!(target_arch = "x86_64") {
            202
        } else {
            98
        };
        let waits = format!("{futex} 0x7f20 0x189 0x0 0x7ffd 0x0 0xffffffff 0x1 0x2");
        assert_eq!(
            SystemCall::parse(&waits).and_then(SystemCall::futex),
            Some(0x7f20)
        );
        assert_eq!(call(&waits), None);
        let shared = |text: &str| SystemCall::parse(text).is_some_and(SystemCall::is_shared_futex);
        assert!(!shared(&waits) && shared(&waits.replace("0x189", "0x109")));
        assert!(!shared("230 0x1 0x1 0x7ff 0x0 0x0 0x0 0x1 0x2"));
        let timed = |text: &str| SystemCall::parse(text).is_some_and(SystemCall::is_timed_futex);
        assert!(timed(&waits) && !timed(&waits.replace("0x7ffd", "0x0")));
        assert!(!timed("230 0x1 0x1 0x7ff 0x1 0x0 0x0 0x1 0x2"));
        assert_eq!(call("-1 0x1 0x2"), None);
        assert_eq!(call("7 0x7f00 0x1 0x2"), None);
        assert_eq!(call(""), None);
    }

    #[test]
    fn a_poll_of_no_descriptor_is_a_sleep() {
        let (poll, select) = if cfg!(target_arch = "x86_64") {
            (7, 270)
        } else {
            (73, 72)
        };
        let sleeps = |number: u64, arguments| SystemCall { number, arguments }.polls_none();
        assert!(sleeps(poll, [0, 0, 20, 0]) && sleeps(select, [0, 0, 0, 0]));
        assert!(!sleeps(poll, [0x7f00, 1, 20, 0]) && !sleeps(select, [5, 0x7f00, 0, 0]));
        assert!(!sleeps(0, [0, 0, 0, 0]));
    }

    #[test]
    fn calls_about_files_read_none_of_them() {
        let of = |number: u64| SystemCall {
            number,
            arguments: [0; 4],
        };
        let (openat, newfstatat, read, pread) = if cfg!(target_arch = "x86_64") {
            (257, 262, 0, 17)
        } else {
            (56, 79, 63, 67)
        };
        assert!(of(openat).is_about_files() && of(newfstatat).is_about_files());
        assert!(!of(read).is_about_files() && !of(pread).is_about_files());
        let (write, fsync) = if cfg!(target_arch = "x86_64") {
            (1, 74)
        } else {
            (64, 82)
        };
        assert!(of(write).is_writing() && of(fsync).is_writing());
        assert!(!of(read).is_writing() && !of(openat).is_writing());
    }

    proptest::proptest! {
        #![proptest_config(fuzz::cases())]

        #[test]
        fn fuzzed_blocked_calls(text in fuzz::text([
            "running",
            "-1 0x7ffd 0x7f20\n",
            "7 0x7ffd10 0x1 0x7ff 0x0 0x0 0x0 0x7ffd 0x7f20\n",
            "202 0x7f20 0x189 0x0 0x7ffd 0x0 0xffffffff 0x1 0x2\n",
            "futex_wait_queue",
            "pipe_read",
        ])) {
            let _ = blocked_in(&text);
            let _ = SystemCall::parse(&text).map(|call| (call.polls_one(), call.polls_none(), call.futex(), call.is_about_files()));
        }
    }

    #[test]
    fn a_launcher_waits_for_a_child_descriptors_or_a_time() {
        for wchan in [
            "do_wait",
            "do_poll.constprop.0",
            "ep_poll",
            "hrtimer_nanosleep",
            "pipe_read",
        ] {
            assert_eq!(only_waits(wchan), Some(true), "{wchan}");
        }
        for wchan in ["futex_wait_queue", "sk_wait_data", "folio_wait_bit_common"] {
            assert_eq!(only_waits(wchan), Some(false), "{wchan}");
        }
        assert_eq!(only_waits("0"), None);
    }
}
