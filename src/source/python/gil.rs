//! CPython's global lock (the GIL): where it lies in memory, who holds it and who sleeps until it is free.
//!
//! Its structure is the same from 3.8 to 3.14: interval, last holder, whether it is held, a counter, then the
//! condition variable that waiters sleep on and its mutex. A thread that sleeps on a futex in there waits for
//! the lock; with glibc the futex lies within the variable itself.

use super::PythonError;
use super::memory::Memory;

/// `last_holder`, `locked` and `cond`; the mutex follows, 48 bytes on.
const LAST_HOLDER: usize = 8;
const LOCKED: usize = 16;
const CONDITION: usize = 32;
/// Size of `pthread_cond_t` and of the largest `pthread_mutex_t` behind it.
const CONDITION_AND_MUTEX: usize = 48 + 48;
/// Up to 3.11 the lock is a part of the runtime that ends right before `gilstate`, of which py-spy tells the
/// second field. The size is that of the structure with its second pair, for forced switches.
const BEFORE_CURRENT_THREAD: usize = 8 + 208;
/// Microseconds after which a thread that waits asks for the lock: 5000 by default, set by `setswitchinterval`.
const LONGEST_INTERVAL: usize = 1 << 32;

/// The lock of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gil {
    at: usize,
}

impl Gil {
    /// `address` is where py-spy found the lock (3.12 and newer) or the thread that holds it (before). `None` where
    /// it did not, or where what lies there cannot be the lock.
    pub(super) fn at(memory: &Memory, minor: u64, address: usize) -> Option<Self> {
        let at = match minor {
            _ if address == 0 => return None,
            12.. => address,
            _ => address.checked_sub(BEFORE_CURRENT_THREAD)?,
        };
        let [interval, _, locked, _] = memory.words(at).ok()?;
        // -1 before the first thread takes it.
        let locked = held(locked);
        let makes_sense = (1..LONGEST_INTERVAL).contains(&interval) && (-1..=1).contains(&locked);
        makes_sense.then_some(Self { at })
    }

    /// Whether who sleeps on this futex waits for the lock.
    pub(super) fn is_waited_for(self, futex: usize) -> bool {
        let from = self.at.wrapping_add(CONDITION);
        (from..from.saturating_add(CONDITION_AND_MUTEX)).contains(&futex)
    }

    /// The state of the thread that holds it; `None` where nobody does.
    pub(super) fn holder(self, memory: &Memory) -> Result<Option<usize>, PythonError> {
        let [holder, locked] = memory.words(self.at.wrapping_add(LAST_HOLDER))?;
        const { assert!(LOCKED == LAST_HOLDER + 8) };
        Ok((held(locked) == 1 && holder != 0).then_some(holder))
    }
}

/// A C `int`: the low half of its word.
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
    fn what_cannot_be_a_lock_is_none() {
        let memory = own_memory();
        let place = |words: &[usize; 4]| words.as_ptr() as usize;
        let lock = [5000, 0xbeef, 1, 77];
        let gil = Gil::at(&memory, 12, place(&lock)).expect("a lock");
        assert_eq!(gil.holder(&memory), Ok(Some(0xbeef)));
        for words in [[0, 0xbeef, 1, 77], [5000, 0, 9, 0], [usize::MAX, 0, 0, 0]] {
            assert_eq!(Gil::at(&memory, 12, place(&words)), None, "{words:?}");
        }
        assert_eq!(Gil::at(&memory, 12, 0), None, "not told");
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
