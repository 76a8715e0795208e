//! Which batch a loader worker has in work, read from the frame of its loop: with one or two small reads, and without
//! walking its stack.
//!
//! Depends on the locals of `_worker_loop` in `torch/utils/data/_utils/worker.py` (1.13 to 2.15): `idx` is the number
//! of the batch from when it was taken until it was handed over, and is unset while the worker waits for the next.

use super::PythonError;
use super::frame::{Frame, untagged};
use super::memory::{Memory, WORD};

/// Maximum number of bytes read of a frame: the loop has some thirty locals after 360 bytes of the frame's own fields.
const MAX_BYTES: usize = 1024;
/// Maximum number of reads, of which two must agree.
const TRIES: usize = 4;

/// A frame of `_worker_loop`. Its address stays the same as long as the worker lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLoop {
    memory: Memory,
    /// Address of the frame, and of the code that it runs.
    frame: usize,
    code: usize,
    /// Offset of `idx` in the frame, in bytes.
    number: usize,
    /// Offset of the fetcher, in bytes: another object with each epoch.
    fetcher: Option<usize>,
    /// Type object of `int`.
    int_type: usize,
}

/// The batch that a worker has in work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchInWork {
    /// Counted over all workers of the epoch, from 0.
    pub number: u64,
    /// Distinguishes an epoch from the one before.
    pub epoch: usize,
}

impl WorkerLoop {
    /// Returns `None` if the frame does not have the known locals.
    pub(super) fn of(memory: Memory, frame: &Frame) -> Result<Option<Self>, PythonError> {
        let at = frame.at(&memory);
        let slot = |name| frame.slot(&memory, name);
        let (Some(number), Some(sample)) = (slot("idx")?, slot("worker_id")?) else {
            return Ok(None);
        };
        // An argument, so it is always set, and an `int` like `idx`.
        let Some(sample) = untagged(memory.word(sample)?) else {
            return Ok(None);
        };
        let int_type = memory.type_of(sample)?;
        let code = untagged(memory.word(at.wrapping_add(memory.layout.frame.code))?);
        let within = |slot: usize| slot.checked_sub(at).filter(|by| by + WORD <= MAX_BYTES);
        let (Some(number), Some(code)) = (within(number), code) else {
            return Ok(None);
        };
        if memory.type_name(int_type)? != "int" {
            return Ok(None);
        }
        Ok(Some(Self {
            memory,
            frame: at,
            code,
            number,
            fetcher: slot("fetcher")?.and_then(within),
            int_type,
        }))
    }

    /// Whether this is the frame.
    pub(super) fn is(&self, frame: &Frame) -> bool {
        frame.at(&self.memory) == self.frame
    }

    /// Returns the batch in work; `None` while the worker waits for its next. A result other than `expected` is read
    /// twice, because the number object may be freed and reused while it is read. Returns [`PythonError::Torn`] if the
    /// frame is gone; a stack shows the new one. Costs about 2 us.
    pub fn batch(&self, expected: Option<BatchInWork>) -> Result<Option<BatchInWork>, PythonError> {
        let mut last = expected;
        for _ in 0..TRIES {
            if let Ok(work) = self.read() {
                if work == last {
                    return Ok(work);
                }
                last = work;
            }
        }
        Err(self.memory.torn())
    }

    /// Returns the batch in work, if that can be read at once.
    pub(super) fn in_work(&self) -> Option<BatchInWork> {
        self.read().ok().flatten()
    }

    fn read(&self) -> Result<Option<BatchInWork>, PythonError> {
        let (number, epoch) = self.slots()?;
        let Some(number) = number else {
            return Ok(None);
        };
        let (value, of_type) = self.memory.integer(number)?;
        if of_type != self.int_type {
            return Err(self.memory.torn());
        }
        Ok(Some(BatchInWork {
            number: u64::try_from(value).map_err(|_| self.memory.torn())?,
            epoch,
        }))
    }

    /// Returns the object in `idx`, and what identifies the epoch.
    fn slots(&self) -> Result<(Option<usize>, usize), PythonError> {
        let mut buffer = [0; MAX_BYTES];
        let bytes = self.number.max(self.fetcher.unwrap_or(0)) + WORD;
        let buffer = buffer.get_mut(..bytes).ok_or(self.memory.torn())?;
        self.memory.fill(self.frame, buffer)?;
        let word = |at: usize| {
            let word = buffer.get(at..at + WORD)?.try_into().ok()?;
            Some(usize::from_ne_bytes(word))
        };
        let code = word(self.memory.layout.frame.code).and_then(untagged);
        if code != Some(self.code) {
            return Err(self.memory.torn());
        }
        let epoch = self.fetcher.and_then(word).unwrap_or(0);
        Ok((word(self.number).and_then(untagged), epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::python::layout::Layout;
    use crate::units::Pid;

    /// `fetcher` and `idx` follow the words before the locals, in any version.
    const FETCHER: usize = 60;
    const NUMBER: usize = 62;
    const CODE: usize = 0x1000;
    const INT: usize = 0x2000;

    /// Our own memory stands for the worker's: a frame, followed by a number object.
    struct Worker {
        heap: Vec<usize>,
        in_loop: WorkerLoop,
    }

    impl Worker {
        fn new(minor: u64) -> Self {
            let layout = Layout::of(3, minor).expect("known");
            let mut heap = vec![0; NUMBER + 16];
            let frame = heap.as_ptr() as usize;
            heap[layout.frame.code / WORD] = CODE;
            heap[FETCHER] = 0x3000;
            let one_digit = if minor < 12 { 1 } else { 1 << 3 };
            heap[NUMBER + 4..NUMBER + 8].copy_from_slice(&[1, INT, one_digit, 41]);
            let memory = Memory {
                pid: Pid(std::process::id().cast_signed()),
                layout,
            };
            let in_loop = WorkerLoop {
                memory,
                frame,
                code: CODE,
                number: NUMBER * WORD,
                fetcher: Some(FETCHER * WORD),
                int_type: INT,
            };
            Self { heap, in_loop }
        }

        /// Puts the number object into `idx`.
        fn take(&mut self) {
            self.heap[NUMBER] = self.in_loop.frame + (NUMBER + 4) * WORD;
        }

        fn number(&self) -> Result<Option<u64>, PythonError> {
            let work = self.in_loop.batch(None)?;
            Ok(work.map(|work| work.number))
        }
    }

    #[test]
    fn the_number_of_the_batch_in_work_is_read_in_every_layout() {
        for minor in 8..=15 {
            let mut worker = Worker::new(minor);
            assert_eq!(worker.number(), Ok(None), "3.{minor}");
            worker.take();
            assert_eq!(worker.number(), Ok(Some(41)), "3.{minor}");
            let before = worker.in_loop.batch(None);
            worker.heap[FETCHER] += 64;
            assert_ne!(worker.in_loop.batch(None), before, "another epoch");
        }
    }

    #[test]
    fn a_replaced_frame_or_invalid_number_is_torn() {
        for minor in 8..=15 {
            let torn = Err(PythonError::Torn(Worker::new(minor).in_loop.memory.pid));
            let mut worker = Worker::new(minor);
            worker.take();
            worker.heap[NUMBER + 5] = INT + 8;
            assert_eq!(worker.number(), torn, "another type");
            worker.heap[NUMBER + 5] = INT;
            let digits = if minor < 12 { 3 } else { 3 << 3 };
            worker.heap[NUMBER + 6] = digits;
            assert_eq!(worker.number(), torn, "too large for a batch");
            worker.heap[NUMBER] = 8;
            assert_eq!(worker.number(), torn, "no address");
            let code = worker.in_loop.memory.layout.frame.code / WORD;
            worker.heap[code] = CODE + 64;
            worker.heap[NUMBER] = 0;
            assert_eq!(worker.number(), torn, "other code");
        }
    }
}
