//! A loader worker: a process that makes one batch after another for the trainer.
//!
//! Reads requests from its standard input, which ends with the trainer, and says on its standard output which
//! batch is ready. Knows nothing of the other workers and of what the batches are for.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;

use super::batch_memory::BatchMemory;
use super::batches::BatchMaker;
use super::child;
use super::error::WorkloadError;
use super::message::{BatchRequest, REQUEST, ReadyBatch};
use super::settings::{JobSettings, WorkerLaunch};
use crate::job::BUILTIN_WORKER;

/// Makes batches until the trainer is gone.
///
/// # Errors
/// Where shared memory, the data set or a pipe fails.
pub fn work(settings: &JobSettings, place: WorkerLaunch) -> Result<(), WorkloadError> {
    match child::become_one(BUILTIN_WORKER, Some(place.parent)) {
        // Nobody waits for a batch, and a word of this would be taken for the reason.
        Err(WorkloadError::Orphan) => return Ok(()),
        outcome => outcome?,
    }
    let mut memory = BatchMemory::open(place.slots, settings.batch_bytes())
        .map_err(|error| WorkloadError::SharedMemory(error.to_string()))?;
    let mut batches = BatchMaker::new(settings, place.worker);
    let mut requests = std::io::stdin().lock();
    // Standard output as it stands would cut a message in two where a byte of it is a line end.
    let ready = std::io::stdout().as_fd().try_clone_to_owned();
    let mut ready = File::from(ready.map_err(|error| WorkloadError::Pipe(error.to_string()))?);
    let mut bytes = [0; REQUEST];
    while requests.read_exact(&mut bytes).is_ok() {
        let BatchRequest { batch, slot } = BatchRequest::parse(bytes);
        batches.make(batch, memory.batch_mut(slot))?;
        let message = ReadyBatch {
            batch,
            slot,
            worker: place.worker,
        };
        if ready.write_all(&message.bytes()).is_err() {
            // The trainer is gone: nobody waits for more.
            break;
        }
    }
    Ok(())
}
