//! When the thread that polls gets a CPU.
//!
//! A thread that starts late polls when another one has gone to sleep, so it sees the job in what comes then more often
//! than by chance. On two CPUs with five busy threads, a trainer that waited 52 % of the time was seen to wait 79 % of
//! it.

use std::mem::size_of;

/// Length of a turn in nanoseconds: the shortest that the kernel allows. A round of polls takes about as long.
const TURN: u64 = 100_000;
/// Niceness, if that is permitted.
const NICE: i32 = -10;

/// Asks for a CPU soon after each poll is due: by short turns, which since Linux 6.12 begin sooner and add up to no more
/// time, and by a higher priority, which needs `CAP_SYS_NICE`. What is refused stays as it was.
#[expect(unsafe_code, reason = "no crate has these calls")]
pub(super) fn raise() {
    const THIS_THREAD: libc::pid_t = 0;
    const NO_FLAGS: libc::c_uint = 0;
    let size = size_of::<libc::sched_attr>();
    // Safety: it is made of numbers, and the kernel writes no more than its size.
    unsafe {
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        let at = &raw mut attributes;
        if libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, at, size, NO_FLAGS) != 0 {
            return;
        }
        let nice = (*at).sched_nice;
        (*at).sched_runtime = TURN;
        for nice in [NICE.min(nice), nice] {
            (*at).sched_nice = nice;
            if libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, at, NO_FLAGS) == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    #[test]
    fn only_the_thread_itself_gets_another_priority() {
        let before = getpriority_process(None).unwrap();
        let inside = std::thread::spawn(|| {
            super::raise();
            getpriority_process(None).unwrap()
        });
        let inside = inside.join().unwrap();
        assert!(
            inside == before || inside == super::NICE.min(before),
            "{inside}"
        );
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
