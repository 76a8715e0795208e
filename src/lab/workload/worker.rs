//! A loader worker: a process that makes one batch after another for the trainer.
//!
//! Reads requests from its standard input, which is closed when the trainer ends, and writes to its standard output
//! which batch is ready. Does not depend on the other workers or on the use of the batches.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;

use rustix::process::{Pid, getppid};

use super::batch_memory::{BatchMemory, NO_MEMORY, SMALLER};
use super::batches::BatchMaker;
use super::child;
use super::message::{BatchMessage, MESSAGE};
use super::settings::WorkerLaunch;
use super::worker_pool::{KILLED, PIPE};
use crate::error::{Explain as _, Hinted};
use crate::job::BUILTIN_WORKER;

/// Makes batches until the trainer is gone.
///
/// # Errors
/// Returns an error if shared memory, the data set or a pipe fails.
pub fn work(launch: &WorkerLaunch) -> Result<(), Hinted> {
    child::set_up_process(BUILTIN_WORKER)?;
    let parent = getppid().map(Pid::as_raw_nonzero).map(i32::from);
    if parent != Some(launch.parent) {
        // The trainer ended before the line above: nobody waits for a batch, and an error message would be mistaken for
        // the reason why the job ended.
        return Ok(());
    }
    let memory = BatchMemory::open(launch.slots, launch.settings.batch_bytes());
    let mut memory = memory.explain(NO_MEMORY, SMALLER)?;
    let mut batches = BatchMaker::new(&launch.settings, launch.worker);
    let mut requests = std::io::stdin().lock();
    // Rust's standard output is line-buffered and would split a message that contains a newline byte.
    let ready = std::io::stdout().as_fd().try_clone_to_owned();
    let mut ready = File::from(ready.explain(PIPE, KILLED)?);
    let mut message = [0; MESSAGE];
    while requests.read_exact(&mut message).is_ok() {
        let BatchMessage { batch, slot, .. } = BatchMessage::parse(message);
        batches.make(batch, memory.batch_mut(slot))?;
        if ready.write_all(&message).is_err() {
            // The trainer is gone and waits for nothing.
            break;
        }
    }
    Ok(())
}
