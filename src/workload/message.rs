//! What trainer and workers say to each other through their pipes: requests for batches, and batches that are
//! ready. The batches themselves lie in shared memory.
//!
//! Each message is shorter than `PIPE_BUF`, so it arrives whole, and always equally long, so that unread bytes
//! count messages.

use crate::job::BUILTIN_MESSAGE;

/// Bytes of a request.
pub(super) const REQUEST: usize = 16;
/// Bytes of what a worker says of a batch.
pub(super) const READY: usize = BUILTIN_MESSAGE;

/// The trainer asks a worker for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    /// Batches are numbered from 0 in the order of requests.
    pub(super) batch: u64,
    /// The place in shared memory that it goes to.
    pub(super) slot: u32,
}

/// A worker has made a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) batch: u64,
    pub(super) slot: u32,
    pub(super) worker: u32,
}

impl Request {
    pub(super) fn bytes(self) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        bytes[..8].copy_from_slice(&self.batch.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.slot.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8; REQUEST]) -> Self {
        Self {
            batch: u64_at(bytes, 0),
            slot: u32_at(bytes, 8),
        }
    }
}

impl Ready {
    pub(super) fn bytes(self) -> [u8; READY] {
        let mut bytes = [0; READY];
        bytes[..8].copy_from_slice(&self.batch.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.slot.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.worker.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8; READY]) -> Self {
        Self {
            batch: u64_at(bytes, 0),
            slot: u32_at(bytes, 8),
            worker: u32_at(bytes, 12),
        }
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn messages_arrive_as_they_were_sent(batch: u64, slot: u32, worker: u32) {
            let request = Request { batch, slot };
            assert_eq!(Request::parse(&request.bytes()), request);
            let ready = Ready { batch, slot, worker };
            assert_eq!(Ready::parse(&ready.bytes()), ready);
        }
    }
}
