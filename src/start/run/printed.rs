//! Passes on the command's output from its file to where it would otherwise have gone.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::background::OwnedThread;
use crate::launch::Log;

/// Time between two polls for more output.
const PAUSE: Duration = Duration::from_millis(50);

/// Starts the thread that passes the output on. Dropping it passes on the rest and ends the thread.
///
/// # Errors
/// Returns an error if no thread can be started.
pub(super) fn follow(mut log: Log, errors: bool) -> io::Result<OwnedThread> {
    OwnedThread::start("log", move |ended: &Receiver<()>| {
        loop {
            let last = ended.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout);
            let passed = if errors {
                pass(&mut log, &mut io::stderr())
            } else {
                pass(&mut log, &mut io::stdout())
            };
            if last || passed.is_err() {
                return;
            }
        }
    })
}

fn pass(log: &mut Log, out: &mut impl Write) -> io::Result<()> {
    log.read_new(|bytes| out.write_all(bytes))?;
    out.flush()
}
