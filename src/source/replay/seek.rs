//! Where a seek goes: in a recording, or in what is kept of a job that runs.

use std::time::Duration;

use crate::record::{RecordError, Samples};

/// Where to go in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// So many seconds on, or back where negative.
    Seconds(i64),
    /// To the reading before. A replay stands still there.
    Previous,
    /// To the reading after, likewise.
    Next,
    Begin,
    End,
}

/// The number of a sample, and the time that is shown: two seeks in one go add up.
pub type Spot = (u64, Duration);

impl Seek {
    /// Where it goes from here, between the first and the last sample that may be shown.
    ///
    /// # Errors
    /// Where the recording is damaged there.
    pub fn target(
        self,
        here: Spot,
        samples: &mut Samples,
        (first, last): (Spot, Spot),
    ) -> Result<Spot, RecordError> {
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
                    // The next sample lies farther away than that.
                    step(samples, seconds.signum())
                } else {
                    Ok((number, time))
                }
            }
        }
    }
}

/// The time so many seconds on, or back where negative.
fn moved(time: Duration, seconds: i64) -> Duration {
    let by = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        time.saturating_sub(by)
    } else {
        time.saturating_add(by)
    }
}
