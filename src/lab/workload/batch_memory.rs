//! The shared memory that batches lie in: equal places, each written by one worker and then read by the trainer.
//!
//! It has no name in any file system, so nothing of it can be left behind. Who may use which place is settled
//! by messages, not here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

/// Bytes of all places at most: they are really taken from the machine's memory.
const MOST: u64 = 4 << 30;
/// Places begin on a page of their own.
const PAGE: usize = 4096;

#[derive(Debug)]
pub(super) struct BatchMemory {
    map: MmapMut,
    /// Keeps the memory open for workers to come.
    file: File,
    /// Bytes of a batch, and of its place.
    batch: usize,
    slot: usize,
}

impl BatchMemory {
    /// Makes `count` places for batches of `batch` bytes.
    ///
    /// # Errors
    /// Where there is not so much memory.
    pub(super) fn create(count: u32, batch: usize) -> io::Result<Self> {
        let length = (batch as u64)
            .checked_next_multiple_of(PAGE as u64)
            .and_then(|slot| slot.checked_mul(u64::from(count)))
            .filter(|length| *length <= MOST)
            .ok_or_else(|| io::Error::other("more than 4 GiB"))?;
        // Not closed by `exec`: workers find it under the same number.
        let file = File::from(memfd_create("pipetop-batches", MemfdFlags::empty())?);
        // Fails here, and not by a signal once a worker writes.
        fallocate(&file, FallocateFlags::empty(), 0, length)?;
        Self::map(file, batch)
    }

    /// Opens what the parent process has made, by [`Self::descriptor`].
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
        // SAFETY: the file is ours and never shrinks, and messages hand each place from one process to the other.
        let map = unsafe { MmapMut::map_mut(&file)? };
        Ok(Self {
            map,
            file,
            batch,
            slot: batch.next_multiple_of(PAGE),
        })
    }

    /// The number that a child process finds it under.
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
    fn too_much_is_refused_and_not_half_made() {
        assert!(BatchMemory::create(u32::MAX, 1 << 40).is_err());
    }
}
