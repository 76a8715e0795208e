//! A recording as a source: its samples at the times at which they were taken, or faster, slower, from elsewhere.
//!
//! Stands in for the sampler. Knows where in the recording it is, and nothing of what the samples mean: whoever
//! takes them begins anew where it is told to.

mod past;
mod player;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::record::{RecordError, Recording};
use crate::sample::Sample;
use crate::source::clock::Clock;

pub use past::past;
use player::Player;

/// What can be asked of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Stand still, or go on.
    Pause,
    Faster,
    Slower,
    /// So far back or on in time, in seconds.
    Seek(i64),
    /// So many samples back or on, and stand still there.
    Step(i64),
    Begin,
    End,
}

/// Where a replay is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// From the first sample that is replayed to this one, and to the last.
    pub at: Duration,
    pub of: Duration,
    /// Recorded seconds in a second.
    pub speed: f64,
    pub paused: bool,
    /// There is no sample after this one.
    pub ended: bool,
    /// Between this sample and the one before; `None` at the first.
    pub interval: Option<Duration>,
}

/// What a replay hands out.
#[derive(Debug)]
pub struct Played {
    /// These samples do not go on from those before: what they were taken for is to be forgotten.
    pub anew: bool,
    /// In order; none where only the place has changed.
    pub samples: Vec<Sample>,
    /// So many of the first of them lie far apart: they tell how far the job had come, and make no history.
    pub sparse: usize,
    pub place: Place,
    /// What could not be read, in words.
    pub trouble: Option<String>,
}

/// The running thread; dropping it ends it, once nobody takes what it sends.
#[derive(Debug)]
pub struct Replay {
    wishes: Option<mpsc::Sender<Wish>>,
    thread: Option<JoinHandle<()>>,
}

impl Replay {
    /// Replays the samples with these numbers from the first on. They go to `send`, until it answers that nobody
    /// takes them any more.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn start(
        recording: Recording,
        numbers: RangeInclusive<u64>,
        speed: Option<f64>,
        send: impl FnMut(Played) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let (wishes, asked) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("replay".into())
            .spawn(move || {
                let clock = Clock::start();
                Player::new(recording, numbers, speed).run(clock, &asked, send);
            })?;
        Ok(Self {
            wishes: Some(wishes),
            thread: Some(thread),
        })
    }

    /// Asks for something else.
    pub fn wish(&self, wish: Wish) {
        if let Some(wishes) = &self.wishes {
            // A replay that has ended has nobody to tell.
            let _ = wishes.send(wish);
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.wishes.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The numbers of the samples of a window, in times since the first sample of the recording.
///
/// # Errors
/// Where the file is damaged at its ends.
pub fn window(
    recording: &mut Recording,
    from: Option<Duration>,
    to: Option<Duration>,
) -> Result<RangeInclusive<u64>, RecordError> {
    let (begin, _) = recording.span();
    let last = recording.len() - 1;
    let first = match from {
        None => 0,
        Some(from) => {
            let number = recording.at(begin + from)?;
            let (sample, _) = recording.read(number)?;
            // The one at or before is not in the window, unless it is just there.
            let before = sample.at.since_start < begin + from;
            (number + u64::from(before)).min(last)
        }
    };
    let last = match to {
        None => last,
        Some(to) => recording.at(begin + to)?,
    };
    Ok(first..=last.max(first))
}
