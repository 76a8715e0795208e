//! The shared memory for batches: equal slots, each written by one worker and then read by the trainer.
//!
//! It has no name in any file system, so nothing can be left behind. Messages between the processes decide who may use
//! a slot.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

/// Maximum size of all slots together, in bytes: they are allocated immediately, not when a worker first writes.
const MAX_BYTES: u64 = 4 << 30;
/// Slots are aligned to pages.
const PAGE: usize = 4096;

/// The error if there is no memory, and its hint.
pub(super) const NO_MEMORY: &str = "cannot get shared memory for the batches";
pub(super) const SMALLER: &str =
    "use smaller batches: --batch-size, --image-size, --workers, --prefetch-factor";

#[derive(Debug)]
pub(super) struct BatchMemory {
    map: MmapMut,
    /// Keeps the memory open for workers that start later.
    file: File,
    /// Bytes of a batch, and of a slot.
    batch: usize,
    slot: usize,
}

impl BatchMemory {
    /// Creates `count` slots for batches of `batch` bytes.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub(super) fn create(count: u32, batch: usize) -> io::Result<Self> {
        let length = (batch as u64)
            .checked_next_multiple_of(PAGE as u64)
            .and_then(|slot| slot.checked_mul(u64::from(count)))
            .filter(|length| *length <= MAX_BYTES)
            .ok_or_else(|| io::Error::other("more than 4 GiB"))?;
        // Stays open across `exec`, so that workers find it under the same descriptor.
        let file = File::from(memfd_create("pipetop-batches", MemfdFlags::empty())?);
        // If memory is short, this fails here, and not with a signal once a worker writes.
        fallocate(&file, FallocateFlags::empty(), 0, length)?;
        Self::map(file, batch)
    }

    /// Opens the memory of the parent process by its [`Self::descriptor`].
    pub(super) fn open(descriptor: i32, batch: usize) -> io::Result<Self> {
        let path = format!("/proc/self/fd/{descriptor}");
        Self::map(File::options().read(true).write(true).open(path)?, batch)
    }

    fn map(file: File, batch: usize) -> io::Result<Self> {
        #[expect(
            unsafe_code,
            reason = "mapped memory is shared by design: a place is written before, and read after, the \
                      message that hands it over"
        )]
        // SAFETY: the file is ours and never shrinks, and messages pass each slot from one process to the other.
        let map = unsafe { MmapMut::map_mut(&file)? };
        Ok(Self {
            map,
            file,
            batch,
            slot: batch.next_multiple_of(PAGE),
        })
    }

    /// Returns the descriptor by which a child process opens the memory.
    pub(super) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    pub(super) fn batch(&self, slot: u32) -> &[u8] {
        let from = slot as usize * self.slot;
        self.map.get(from..from + self.batch).unwrap_or_default()
    }

    pub(super) fn batch_mut(&mut self, slot: u32) -> &mut [u8] {
        let from = slot as usize * self.slot;
        self.map
            .get_mut(from..from + self.batch)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_through_one_mapping_is_read_through_the_other() {
        let slots = BatchMemory::create(3, 5000).unwrap();
        let mut other = BatchMemory::open(slots.descriptor(), 5000).unwrap();
        other.batch_mut(1).fill(7);
        assert_eq!(slots.batch(1), [7; 5000]);
        assert_eq!(slots.batch(0), [0; 5000]);
        assert_eq!(slots.batch(2), [0; 5000]);
        assert!(slots.batch(3).is_empty(), "there is no such place");
    }

    #[test]
    fn an_oversized_mapping_is_rejected_without_leftovers() {
        assert!(BatchMemory::create(u32::MAX, 1 << 40).is_err());
    }
}
