//! CPython's global lock (the GIL): its address, its holder, and the threads that sleep until it is free.
//!
//! Its structure is the same from 3.8 to 3.15: interval, last holder, whether it is held, a counter, then the condition
//! variable that waiters sleep on and its mutex. A thread that sleeps on a futex in that range waits for the lock; with
//! glibc the futex is inside the variable itself.

use super::PythonError;
use super::memory::Memory;

/// Offsets of `last_holder`, `locked` and `cond`; the mutex is 48 bytes after `cond`.
const LAST_HOLDER: usize = 8;
const LOCKED: usize = 16;
const CONDITION: usize = 32;
/// Size of `pthread_cond_t` and of the largest `pthread_mutex_t` after it.
const CONDITION_AND_MUTEX: usize = 48 + 48;
/// Up to 3.11 the lock is a part of the runtime that ends right before `gilstate`, and py-spy finds the second field of
/// `gilstate`. The size includes the lock's second pair of condition variable and mutex, for forced switches.
const BEFORE_CURRENT_THREAD: usize = 8 + 208;
/// Upper bound of the interval in microseconds after which a waiting thread requests the lock: 5000 by default, set by
/// `setswitchinterval`.
const MAX_INTERVAL: usize = 1 << 32;

/// The lock of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gil {
    at: usize,
}

impl Gil {
    /// Returns the lock. `address` is where py-spy found the lock (3.12 and newer) or the thread that holds it
    /// (before). `None` if it did not find it, or if the memory there cannot be the lock.
    pub(super) fn at(memory: &Memory, minor: u64, address: usize) -> Option<Self> {
        let at = match minor {
            _ if address == 0 => return None,
            12.. => address,
            _ => address.checked_sub(BEFORE_CURRENT_THREAD)?,
        };
        let [interval, _, locked, _] = memory.words(at).ok()?;
        // -1 before the first thread takes it.
        let locked = held(locked);
        let makes_sense = (1..MAX_INTERVAL).contains(&interval) && (-1..=1).contains(&locked);
        makes_sense.then_some(Self { at })
    }

    /// Whether a thread that sleeps on this futex waits for the lock.
    pub(super) fn is_waited_for(self, futex: usize) -> bool {
        let from = self.at.wrapping_add(CONDITION);
        (from..from.saturating_add(CONDITION_AND_MUTEX)).contains(&futex)
    }

    /// Returns the state of the thread that holds it; `None` if it is free.
    pub(super) fn holder(self, memory: &Memory) -> Result<Option<usize>, PythonError> {
        let [holder, locked] = memory.words(self.at.wrapping_add(LAST_HOLDER))?;
        const { assert!(LOCKED == LAST_HOLDER + 8) };
        Ok((held(locked) == 1 && holder != 0).then_some(holder))
    }
}

/// Reads a C `int`: the low half of its word.
fn held(word: usize) -> i32 {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    i32::from_ne_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::python::layout::Layout;
    use crate::units::Pid;

    fn own_memory() -> Memory {
        Memory {
            pid: Pid(std::process::id().cast_signed()),
            layout: Layout::of(3, 12).expect("known"),
        }
    }

    #[test]
    fn implausible_locks_are_rejected() {
        let memory = own_memory();
        let place = |words: &[usize; 4]| words.as_ptr() as usize;
        let lock = [5000, 0xbeef, 1, 77];
        let gil = Gil::at(&memory, 12, place(&lock)).expect("a lock");
        assert_eq!(gil.holder(&memory), Ok(Some(0xbeef)));
        for words in [[0, 0xbeef, 1, 77], [5000, 0, 9, 0], [usize::MAX, 0, 0, 0]] {
            assert_eq!(Gil::at(&memory, 12, place(&words)), None, "{words:?}");
        }
        assert_eq!(Gil::at(&memory, 12, 0), None, "not known");
        assert_eq!(Gil::at(&memory, 11, 8), None);
        let free = [5000, 0xbeef, 0, 77];
        let gil = Gil::at(&memory, 12, place(&free)).expect("a lock");
        assert_eq!(gil.holder(&memory), Ok(None), "the last one, not this one");
    }

    #[test]
    fn a_futex_within_the_lock_is_a_wait_for_it() {
        let gil = Gil { at: 0x1000 };
        for (futex, waits) in [
            (0x1000, false),
            (0x1018, false),
            (0x1020, true),
            (0x1048, true),
            (0x1050, true),
            (0x1080, false),
        ] {
            assert_eq!(gil.is_waited_for(futex), waits, "{futex:#x}");
        }
    }
}
