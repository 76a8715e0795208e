//! The message between trainer and workers through their pipes: a request for a batch, which the worker sends back once
//! the batch is ready. The batches themselves are in shared memory.
//!
//! A message is shorter than `PIPE_BUF`, so it arrives whole. All messages are equally long, so the number of unread
//! bytes gives the number of messages.

use crate::job::BUILTIN_MESSAGE;

/// Bytes of a message.
pub(super) const MESSAGE: usize = BUILTIN_MESSAGE;

type MessageWords = [u64; MESSAGE / size_of::<u64>()];

/// A batch that is requested, or ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lab) struct BatchMessage {
    /// Batches are numbered from 0 in the order of requests.
    pub(in crate::lab) batch: u64,
    /// The slot in shared memory for it.
    pub(in crate::lab) slot: u32,
    /// The worker that makes it.
    pub(in crate::lab) worker: u32,
}

impl BatchMessage {
    pub(super) fn bytes(self) -> [u8; MESSAGE] {
        let mut words = MessageWords::default();
        words[..3].copy_from_slice(&[self.batch, self.slot.into(), self.worker.into()]);
        bytemuck::cast(words)
    }

    pub(super) fn parse(bytes: [u8; MESSAGE]) -> Self {
        let [batch, slot, worker, ..]: MessageWords = bytemuck::cast(bytes);
        // These were `u32` before they were sent.
        let [slot, worker] = [slot, worker].map(|word| u32::try_from(word).unwrap_or(u32::MAX));
        Self {
            batch,
            slot,
            worker,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn messages_arrive_as_they_were_sent(batch: u64, slot: u32, worker: u32) {
            let message = BatchMessage { batch, slot, worker };
            assert_eq!(BatchMessage::parse(message.bytes()), message);
        }
    }
}
