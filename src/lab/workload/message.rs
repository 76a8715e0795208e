//! Messages between trainer and workers through their pipes: requests for batches, and notices of ready batches. The
//! batches themselves are in shared memory.
//!
//! Each message is shorter than `PIPE_BUF`, so it arrives whole. All are equally long, so the number of unread bytes
//! gives the number of messages.

use crate::job::BUILTIN_MESSAGE;

/// Bytes of a request.
pub(super) const REQUEST: usize = 16;
/// Bytes of a notice of a ready batch.
pub(super) const READY: usize = BUILTIN_MESSAGE;

/// A request from the trainer to a worker for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchRequest {
    /// Batches are numbered from 0 in the order of requests.
    pub(super) batch: u64,
    /// The slot in shared memory for it.
    pub(super) slot: u32,
}

/// A notice that a worker has made a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadyBatch {
    pub(super) batch: u64,
    pub(super) slot: u32,
    pub(super) worker: u32,
}

impl BatchRequest {
    pub(super) fn bytes(self) -> [u8; REQUEST] {
        bytemuck::cast([self.batch, self.slot.into()])
    }

    pub(super) fn parse(bytes: [u8; REQUEST]) -> Self {
        let [batch, slot]: [u64; 2] = bytemuck::cast(bytes);
        Self {
            batch,
            slot: short(slot),
        }
    }
}

impl ReadyBatch {
    pub(super) fn bytes(self) -> [u8; READY] {
        let mut words = [0; READY / size_of::<u64>()];
        words[..3].copy_from_slice(&[self.batch, self.slot.into(), self.worker.into()]);
        bytemuck::cast(words)
    }

    pub(super) fn parse(bytes: [u8; READY]) -> Self {
        let [batch, slot, worker, ..]: [u64; READY / size_of::<u64>()] = bytemuck::cast(bytes);
        Self {
            batch,
            slot: short(slot),
            worker: short(worker),
        }
    }
}

/// Converts a number that was a `u32` before it was sent.
fn short(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn messages_arrive_as_they_were_sent(batch: u64, slot: u32, worker: u32) {
            let request = BatchRequest { batch, slot };
            assert_eq!(BatchRequest::parse(request.bytes()), request);
            let ready = ReadyBatch { batch, slot, worker };
            assert_eq!(ReadyBatch::parse(ready.bytes()), ready);
        }
    }
}
