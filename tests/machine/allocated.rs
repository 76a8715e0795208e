//! How much memory a thread has in use: what others of the program take does not count.

#![expect(unsafe_code, reason = "counts what the allocator hands out")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static IN_USE: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: hands everything on to the system's allocator. The count needs no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.set(IN_USE.get().wrapping_add(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.set(IN_USE.get().wrapping_sub(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that this thread has asked for since `before`, less those that it has given back.
pub(crate) fn since(before: usize) -> i64 {
    in_use().wrapping_sub(before).cast_signed() as i64
}

/// To be compared by [`since`]. What a thread gives back for another one is less than nothing.
pub(crate) fn in_use() -> usize {
    IN_USE.get()
}
