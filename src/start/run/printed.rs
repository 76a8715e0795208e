//! What the command prints to a file, passed on to where it would have gone without.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::launch::Log;

/// Between two polls for more.
const PAUSE: Duration = Duration::from_millis(50);

/// The thread that passes it on; dropping it passes on the rest and ends it.
#[derive(Debug)]
pub(super) struct Printed {
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Printed {
    /// # Errors
    /// Where no thread can be started.
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
    log.read_on(|bytes| out.write_all(bytes))?;
    out.flush()
}
