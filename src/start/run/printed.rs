//! Passes on the command's output from its file to where it would otherwise have gone.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::launch::Log;

/// Time between two polls for more output.
const PAUSE: Duration = Duration::from_millis(50);

/// The thread that passes it on; dropping it passes on the rest and ends the thread.
#[derive(Debug)]
pub(super) struct Printed {
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Printed {
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(super) fn follow(mut log: Log, errors: bool) -> io::Result<Self> {
        let (end, ended) = mpsc::channel();
        let follow = move || {
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
        };
        let thread = std::thread::Builder::new().name("log".into());
        Ok(Self {
            end: Some(end),
            thread: Some(thread.spawn(follow)?),
        })
    }
}

impl Drop for Printed {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn pass(log: &mut Log, out: &mut impl Write) -> io::Result<()> {
    log.read_new(|bytes| out.write_all(bytes))?;
    out.flush()
}
