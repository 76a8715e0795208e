//! The target of a seek: in a recording, or in the kept samples of a running job.

use std::time::Duration;

use crate::record::{RecordError, Samples};

/// A movement in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// Forward by this many seconds, or back if negative.
    Seconds(i64),
    /// To the previous sample. Pauses a replay.
    Previous,
    /// To the next sample. Pauses a replay.
    Next,
    Begin,
    End,
}

/// The number of a sample, and the displayed time, which lets several seeks at once add up.
pub type Position = (u64, Duration);

impl Seek {
    /// Returns the target from `here`, between the first and the last sample that may be shown.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged there.
    pub fn target(
        self,
        here: Position,
        samples: &mut Samples,
        (first, last): (Position, Position),
    ) -> Result<Position, RecordError> {
        let step = |samples: &mut Samples, by: i64| {
            let number = here.0.saturating_add_signed(by).clamp(first.0, last.0);
            let (sample, _) = samples.read(number)?;
            Ok((number, sample.at.since_start))
        };
        match self {
            Self::Previous => step(samples, -1),
            Self::Next => step(samples, 1),
            Self::Begin => Ok(first),
            Self::End => Ok(last),
            Self::Seconds(seconds) => {
                let time = moved(here.1, seconds).clamp(first.1, last.1);
                let number = samples.at(time)?.clamp(first.0, last.0);
                if number == here.0 {
                    // The next sample is farther away than the seek.
                    step(samples, seconds.signum())
                } else {
                    Ok((number, time))
                }
            }
        }
    }
}

/// Moves a time forward by this many seconds, or back if negative.
fn moved(time: Duration, seconds: i64) -> Duration {
    let by = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        time.saturating_sub(by)
    } else {
        time.saturating_add(by)
    }
}
