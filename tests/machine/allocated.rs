//! The memory that the current thread has in use. Other threads do not count.

#![expect(unsafe_code, reason = "counts what the allocator hands out")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static IN_USE: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: passes everything on to the system's allocator. The counter needs no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.set(IN_USE.get().wrapping_add(layout.size()));
        // SAFETY: the caller's guarantees apply.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.set(IN_USE.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's guarantees apply.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the bytes that this thread has allocated since `before`, minus those it has freed.
pub(crate) fn since(before: usize) -> i64 {
    in_use().wrapping_sub(before).cast_signed() as i64
}

/// Returns a value for [`since`]. Freeing memory of another thread counts as negative.
pub(crate) fn in_use() -> usize {
    IN_USE.get()
}
