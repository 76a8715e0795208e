//! What a thread is blocked in, from the two lines that the kernel gives: `wchan` (same user) and
//! `syscall` (the right to attach).
//!
//! Pure: text in, meaning out. Names of wait functions differ between kernels, so prefixes are compared.

/// The kind of place that a thread sleeps in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    /// On a CPU or runnable: `wchan` is `0`. The same text stands for "denied": ask elsewhere.
    Running,
    /// `poll` or `select`.
    Poll,
    PipeRead,
    PipeWrite,
    /// Receiving from a Unix socket: how shared-memory descriptors travel.
    Unix,
    /// A block device, or a page that is being read from one.
    Disk,
    /// A network socket, or a file system behind one.
    Network,
    Lock,
    Timer,
    /// By a signal or a tracer.
    Stopped,
    Other,
}

/// Prefixes of wait functions of kernels 4.4 to 6.18.
const PLACES: [(&str, Blocked); 43] = [
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
    // Reads past the page cache.
    ("__iomap_dio", Blocked::Disk),
    ("iomap_dio", Blocked::Disk),
    ("__blockdev_direct", Blocked::Disk),
    ("filemap_", Blocked::Disk),
    ("rq_qos_wait", Blocked::Disk),
    ("jbd2_", Blocked::Disk),
    ("xfs_", Blocked::Disk),
    ("throtl_", Blocked::Disk),
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
    ("hrtimer_nanosleep", Blocked::Timer),
    ("do_nanosleep", Blocked::Timer),
    ("do_signal_stop", Blocked::Stopped),
];

/// Reads a `wchan` line.
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

/// A system call with its first arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) arguments: [u64; 3],
}

impl Call {
    /// Reads a `syscall` line: `NUMBER ARG ARG ARG ...`. `None` while running or where not understood.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_whitespace();
        let number = fields.next()?.parse().ok()?;
        let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
        Some(Self {
            number,
            arguments: [argument()?, argument()?, argument()?],
        })
    }

    /// Where it is a `poll` of one descriptor: the address of its `struct pollfd`.
    pub(super) fn polls_one(self) -> Option<u64> {
        /// `poll` and `ppoll` of the system call tables in `arch/*/entry/syscalls` and `asm-generic`.
        const POLL: &[u64] = if cfg!(target_arch = "x86_64") {
            &[7, 271]
        } else {
            &[73]
        };
        (POLL.contains(&self.number) && self.arguments[1] == 1).then_some(self.arguments[0])
    }

    /// Where it is a wait on a futex: the address of that.
    pub(super) fn futex(self) -> Option<u64> {
        const FUTEX: u64 = if cfg!(target_arch = "x86_64") {
            202
        } else {
            98
        };
        (self.number == FUTEX).then_some(self.arguments[0])
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
            ("futex_wait_queue_me", Blocked::Lock),
            ("unix_stream_read_generic", Blocked::Unix),
            ("do_signal_stop", Blocked::Stopped),
            ("do_epoll_wait", Blocked::Network),
            ("something_new", Blocked::Other),
        ] {
            assert_eq!(blocked_in(text), expected, "{text}");
        }
    }

    #[test]
    fn a_poll_of_one_descriptor_is_told_from_others() {
        let poll = if cfg!(target_arch = "x86_64") { 7 } else { 73 };
        let call = |text: &str| Call::parse(text).and_then(Call::polls_one);
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
        assert_eq!(Call::parse(&waits).and_then(Call::futex), Some(0x7f20));
        assert_eq!(call(&waits), None);
        assert_eq!(call("-1 0x1 0x2"), None);
        assert_eq!(call(""), None);
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
            let _ = Call::parse(&text).map(|call| (call.polls_one(), call.futex()));
        }
    }
}
