//! The scheduling of the thread that polls.
//!
//! If that thread gets a CPU late, it polls when another thread has just gone to sleep, and so sees what the job does
//! after that more often than by chance. On two CPUs with five busy threads, a trainer that waited 52 % of the time was
//! seen to wait 79 % of it.

use std::mem::size_of;

/// The calling thread, for the scheduler's calls.
const THIS_THREAD: libc::pid_t = 0;
/// Real-time priority, if that is permitted: the lowest.
const REAL_TIME: u32 = 1;
/// Length of a turn in nanoseconds: the shortest that the kernel allows. A round of polls takes about as long.
const TURN: u64 = 100_000;
/// Niceness, if that is permitted.
const NICE: i32 = -10;

/// Asks the kernel for a CPU as soon as each poll is due. What the kernel refuses stays as it was.
///
/// - In real time a poll begins at once. A lower niceness does not do that: it only counts within a control group or,
///   with `sched_autogroup_enabled`, within a session, and the job is in another. On two CPUs with 15 busy threads half
///   of the polls began 0.5 ms late or more; in real time one in a hundred did. Needs `CAP_SYS_NICE`, or a limit by
///   `ulimit -r`. Some control groups allow no real time.
/// - Otherwise a lower niceness, and short turns, which since Linux 6.12 begin sooner and add up to no more time.
#[expect(unsafe_code, reason = "no crate has these calls")]
pub(super) fn raise() {
    const NO_FLAGS: libc::c_uint = 0;
    let size = size_of::<libc::sched_attr>();
    // Safety: it is made of numbers, and the kernel writes no more than its size.
    unsafe {
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        let at = &raw mut attributes;
        if libc::syscall(libc::SYS_sched_getattr, THIS_THREAD, at, size, NO_FLAGS) != 0 {
            return;
        }
        let mut in_time: libc::sched_attr = std::mem::zeroed();
        (in_time.size, in_time.sched_policy) = (attributes.size, libc::SCHED_RR.cast_unsigned());
        in_time.sched_priority = REAL_TIME;
        // Threads that this one may ever start do not inherit it.
        in_time.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK.cast_unsigned().into();
        let in_time = &raw const in_time;
        if libc::syscall(libc::SYS_sched_setattr, THIS_THREAD, in_time, NO_FLAGS) == 0 {
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

/// Runs work that takes many times as long as a poll at the ordinary priority, in turns with the job: in real time it
/// would keep a CPU from the job until it is done. To attach to a Python takes up to 50 ms, and to search its memory 10
/// ms.
pub(super) fn in_turns<T>(work: impl FnOnce() -> T) -> T {
    // Its drop also runs if the work panics.
    let _real_time = leave_real_time().then_some(RealTime);
    work()
}

/// Puts the thread back into real time when dropped.
struct RealTime;

impl Drop for RealTime {
    fn drop(&mut self) {
        raise();
    }
}

/// Leaves real time. Returns whether the thread had it.
#[expect(unsafe_code, reason = "no crate has these calls")]
fn leave_real_time() -> bool {
    let none = libc::sched_param { sched_priority: 0 };
    // A thread may not clear the flag that it has set without the right to do so.
    let ordinary = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
    // Safety: the kernel only reads what is passed.
    unsafe {
        libc::sched_getscheduler(THIS_THREAD) == libc::SCHED_RR | libc::SCHED_RESET_ON_FORK
            && libc::sched_setscheduler(THIS_THREAD, ordinary, &raw const none) == 0
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    /// Runs `raise` in a thread, and returns the policy of that thread afterwards and its niceness.
    fn after(raise: impl FnOnce() + Send + 'static) -> (u32, i32) {
        let thread = std::thread::spawn(|| {
            raise();
            (policy(), getpriority_process(None).unwrap())
        });
        thread.join().unwrap()
    }

    /// The 41st field of this thread's `stat`.
    fn policy() -> u32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let policy = fields.split_whitespace().nth(41 - 3);
        policy.unwrap().parse().unwrap()
    }

    #[expect(unsafe_code, reason = "no crate has this call")]
    fn in_real_time() {
        let priority = libc::sched_param { sched_priority: 1 };
        // Safety: the kernel only reads it. What is refused changes nothing.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const priority) };
    }

    #[test]
    fn only_the_thread_itself_gets_another_priority() {
        let before = (policy(), getpriority_process(None).unwrap());
        // What is permitted here.
        let (real_time, _) = after(in_real_time);
        let (policy, nice) = after(super::raise);
        assert_eq!(policy, real_time);
        let raised = super::NICE.min(before.1);
        assert!(nice == before.1 || nice == raised, "{nice}");
        assert_eq!((self::policy(), getpriority_process(None).unwrap()), before);
    }

    #[test]
    fn long_work_is_not_in_real_time() {
        let raised = || {
            super::raise();
            let before = policy();
            let during = super::in_turns(policy);
            (before, during, policy())
        };
        let (before, during, after) = std::thread::spawn(raised).join().unwrap();
        assert_eq!(during, libc::SCHED_OTHER.cast_unsigned());
        assert_eq!(after, before);
    }
}
