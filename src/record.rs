//! Recordings: the samples of a watched job in a file, to be looked at again.
//!
//! Knows samples and nothing of what they mean. [`Recorder`] writes them as they come, on a thread of its own;
//! [`Recording`] reads them again, a [`Ring`] keeps the newest in memory. What a file holds is in `docs/recording.md`.

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

use crate::sample::{Gap, Sample};

pub use format::RecordError;
pub use reader::Recording;
pub use ring::Ring;
pub use samples::Samples;
pub use writer::{RecordOptions, Writer};

/// The source that a gap names where something could not be recorded.
pub const SOURCE: &str = "record";
/// A file of this size gives way to a new one, unless something else is asked for: more than a day of a large job.
pub const SIZE: u64 = 1 << 30;
/// Samples that may wait for the disk.
const WAITING: usize = 8;
/// How long the end of the program waits for the disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes samples on a thread of its own; dropping it writes what is left.
#[derive(Debug)]
pub struct Recorder {
    samples: Option<SyncSender<Sample>>,
    done: Mutex<Receiver<()>>,
    /// Why nothing is written any more.
    failure: Arc<Mutex<Option<Gap>>>,
    /// Samples that were not written since the last that was.
    lost: AtomicU64,
}

impl Recorder {
    /// Creates the file and begins.
    ///
    /// # Errors
    /// Where the file is there already or cannot be made, or no thread can be started.
    pub fn start(options: &RecordOptions) -> Result<Self, RecordError> {
        Self::run(Writer::create(options)?)
    }

    fn run(mut writer: Writer) -> Result<Self, RecordError> {
        let (samples, taken) = sync_channel::<Sample>(WAITING);
        let (tell, done) = sync_channel(1);
        let failure = Arc::new(Mutex::new(None));
        let failed = Arc::clone(&failure);
        std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || {
                let written = taken.iter().try_for_each(|sample| writer.write(&sample));
                let written = written.and_then(|()| writer.finish());
                if let Err(error) = written {
                    let gap = Gap {
                        source: SOURCE.into(),
                        reason: format!("recording stopped: {error}"),
                        hint: "the part before can be replayed".into(),
                    };
                    if let Ok(mut failed) = failed.lock() {
                        *failed = Some(gap);
                    }
                }
                // Whoever waited has gone on.
                let _ = tell.send(());
            })
            .map_err(|error| RecordError::Thread { error })?;
        Ok(Self {
            samples: Some(samples),
            done: Mutex::new(done),
            failure,
            lost: AtomicU64::new(0),
        })
    }

    /// Takes a sample along, without waiting for the disk. What could not be recorded is a gap of the next
    /// sample that is; where nothing is recorded any more, gives why.
    pub fn take(&self, sample: &Sample) -> Option<Gap> {
        let failure = || self.failure.lock().ok()?.clone();
        if let Some(gap) = failure() {
            return Some(gap);
        }
        let mut sample = sample.clone();
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            sample.gaps.push(Gap {
                source: SOURCE.into(),
                reason: format!("{lost} earlier samples were dropped: the disk was too slow"),
                hint: "record to a faster disk".into(),
            });
        }
        match self.samples.as_ref()?.try_send(sample) {
            Ok(()) => self.lost.store(0, Ordering::Relaxed),
            Err(TrySendError::Full(_)) => self.lost.store(lost + 1, Ordering::Relaxed),
            Err(TrySendError::Disconnected(_)) => return failure(),
        }
        None
    }

    /// Writes what is left. `None` where all that was taken is in the file, else why it is not.
    pub fn finish(mut self) -> Option<Gap> {
        self.close();
        self.failure.lock().ok()?.take()
    }

    fn close(&mut self) {
        // A disk that hangs must not keep the program from ending: a recording can be read without its end.
        if self.samples.take().is_some()
            && let Ok(done) = self.done.lock()
        {
            let _ = done.recv_timeout(PATIENCE);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}
