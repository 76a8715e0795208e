//! Recordings: the samples of a watched job in a file, to be viewed later.
//!
//! Works on samples; does not depend on what they mean. [`Recorder`] writes them as they come, on its own thread;
//! [`Recording`] reads them again; a [`Ring`] keeps the newest in memory. The format is described in
//! `docs/recording.md`.

mod format;
mod group;
mod index;
mod reader;
mod ring;
mod samples;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::background::{lock, spawn};
use crate::sample::{Gap, Sample};

pub use format::RecordError;
pub(crate) use format::rotated;
pub use reader::Recording;
pub use ring::Ring;
pub use samples::Samples;
pub use writer::{RecordOptions, Writer, can_create};

/// Source of the gaps for samples that could not be recorded.
pub const SOURCE: &str = "record";
/// Default size in bytes at which a file is rotated: more than a day of a large job.
pub const SIZE: u64 = 1 << 30;
/// Maximum number of samples that wait for the disk.
const QUEUE_LENGTH: usize = 8;
/// Maximum time that the end of the program waits for the disk.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes samples on its own thread. Dropping it writes the remaining ones.
#[derive(Debug)]
pub struct Recorder {
    /// `None` once it is closed.
    samples: Mutex<Option<SyncSender<Sample>>>,
    done: Mutex<Receiver<()>>,
    /// Why recording stopped.
    failure: Arc<Mutex<Option<Gap>>>,
    /// Samples dropped since the last one that was queued.
    lost: AtomicU64,
}

impl Recorder {
    /// Creates the file and starts the thread.
    ///
    /// # Errors
    /// Returns an error if the file exists or cannot be created, or if no thread can be started.
    pub fn start(options: &RecordOptions) -> Result<Self, RecordError> {
        Self::run(Writer::create(options)?)
    }

    fn run(mut writer: Writer) -> Result<Self, RecordError> {
        let (samples, taken) = sync_channel::<Sample>(QUEUE_LENGTH);
        let (tell, done) = sync_channel(1);
        let failure = Arc::new(Mutex::new(None));
        let failed = Arc::clone(&failure);
        let work = move || {
            let written = taken.iter().try_for_each(|sample| writer.write(&sample));
            let written = written.and_then(|()| writer.finish());
            if let Err(error) = written {
                let hint = match error.kind() {
                    std::io::ErrorKind::NotFound => {
                        "record anew, and leave the file alone until pipetop ends"
                    }
                    _ => "what is in the file can be replayed",
                };
                let gap = Gap::new(SOURCE, format!("recording stopped: {error}"), hint);
                *lock(&failed) = Some(gap);
            }
            // The receiver is gone if nobody waits any more.
            let _ = tell.send(());
        };
        spawn("recorder", work).map_err(|error| RecordError::Thread { error })?;
        Ok(Self {
            samples: Mutex::new(Some(samples)),
            done: Mutex::new(done),
            failure,
            lost: AtomicU64::new(0),
        })
    }

    /// Queues a sample for writing, without waiting for the disk. Dropped samples are recorded as a gap of the next
    /// sample that is queued. Returns the reason if recording has stopped.
    pub fn take(&self, sample: &Sample) -> Option<Gap> {
        let failure = || self.failure.lock().ok()?.clone();
        if let Some(gap) = failure() {
            return Some(gap);
        }
        let mut sample = sample.clone();
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            sample.gaps.push(Gap::new(
                SOURCE,
                format!("{lost} earlier samples were dropped: the disk was too slow"),
                "record to a faster disk",
            ));
        }
        match lock(&self.samples).as_ref()?.try_send(sample) {
            Ok(()) => self.lost.store(0, Ordering::Relaxed),
            Err(TrySendError::Full(_)) => self.lost.store(lost + 1, Ordering::Relaxed),
            Err(TrySendError::Disconnected(_)) => return failure(),
        }
        None
    }

    /// Writes the remaining samples. Returns `None` if all queued samples are in the file, else the reason.
    pub fn finish(self) -> Option<Gap> {
        self.close();
        self.failure.lock().ok()?.take()
    }

    /// Writes the remaining samples, and takes no more.
    pub(crate) fn close(&self) {
        // A disk that hangs must not block the end of the program: a recording can be read without its end.
        if lock(&self.samples).take().is_some()
            && let Ok(done) = self.done.lock()
        {
            let _ = done.recv_timeout(EXIT_TIMEOUT);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}
