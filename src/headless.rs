//! Watching without a screen, or looking at a recording: one report at the end (`--once`), or a line for each
//! interval.
//!
//! Knows nothing of terminals; who is watched and how was settled before.

use std::io::Write;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::engine::Engine;
use crate::error::Hinted;
use crate::job::{Candidate, Target};
use crate::output;
use crate::record::{Recording, SOURCE};
use crate::report::Report;
use crate::sample::Sample;
use crate::source::Source;
use crate::source::sampler::Options;
use crate::verdict::Kind;

/// Long enough for a verdict on a job in steady state, which needs ten seconds where it is not clear.
pub const ONCE: Duration = Duration::from_secs(12);
/// A span that counts from the first batch on counts from the start where no training has begun after so long.
const LONGEST_START: Duration = Duration::from_mins(1);
/// What the verdict of a live line speaks of.
pub const WINDOW: Duration = Duration::from_secs(10);

/// How to observe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// One report at the end, in place of a line per interval.
    pub once: bool,
    pub json: bool,
    /// `None` = to the end of the job where it is once or we have launched it, else for ever.
    pub span: Option<Duration>,
    /// Time counts from the job's first batch on, and the report is of that time alone.
    pub steady: bool,
}

/// Makes lines or a report of samples.
#[derive(Debug)]
pub struct Observer {
    how: Observation,
    span: Option<Duration>,
    interval: Duration,
    engine: Engine,
    began: Option<Duration>,
    /// When the first sample came.
    first: Option<Duration>,
}

impl Observer {
    /// `interval` is the time from one sample to the next.
    pub fn new(how: Observation, interval: Duration) -> Self {
        Self {
            how,
            span: how.span.or(how.once.then_some(ONCE)),
            interval,
            engine: Engine::new(if how.once { Duration::MAX } else { WINDOW }),
            began: None,
            first: None,
        }
    }

    /// Takes a sample in, writes what is due to `out`, and says whether the observation is at its end.
    ///
    /// # Errors
    /// Where `out` cannot be written to.
    pub fn take(&mut self, sample: Sample, out: &mut impl Write) -> std::io::Result<bool> {
        let at = sample.at.since_start;
        let nothing = sample.job.is_none();
        let first = *self.first.get_or_insert(at);
        let model = &self.engine.push(sample).model;
        let batches = model.progress().batches;
        if !self.how.once && model.latest().is_some() {
            self.write(out)?;
        }
        if self.how.steady {
            let began = batches.is_some_and(|batches| batches > 0);
            // Not that of an earlier job.
            let began = began.then(|| self.began.unwrap_or(at));
            self.began = began;
        } else {
            self.began.get_or_insert(at);
        }
        let passed = |began: Duration| at.saturating_sub(began) + self.interval / 2;
        // Another round would end after the span.
        Ok(self.span.is_some_and(|span| match self.began {
            Some(began) => passed(began) >= span,
            None => nothing && passed(first) >= span.max(LONGEST_START),
        }))
    }

    /// Writes a line or a report of what is known by now.
    ///
    /// # Errors
    /// Where `out` cannot be written to.
    pub fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        match self.engine.state().report() {
            Some(report) => write(out, self.how, &report),
            None => Ok(()),
        }
    }

    /// There is something to report.
    pub fn has_seen_a_job(&self) -> bool {
        self.engine.state().model.window().is_some()
    }

    /// The kind of the last verdict; `None` where nothing was seen.
    pub fn kind(&self) -> Option<Kind> {
        self.engine.state().kind()
    }
}

/// Observes, writes to `out`, and returns the kind of the last verdict; `None` where nothing was seen.
///
/// # Errors
/// Where no thread can be started, and where a job that is observed once has ended before there was
/// anything to say of it. That nobody reads `out` any more ends the observation quietly.
pub fn observe(
    options: Options,
    job: Option<Candidate>,
    how: Observation,
    out: &mut impl Write,
) -> Result<Option<Kind>, Hinted> {
    let interval = options.interval;
    // Of any other job there may be a next one.
    let to_its_end = how.once || matches!(options.target, Target::Launched(_));
    let mut observer = Observer::new(how, interval);
    let mut recording = RecordingWatch::default();
    let mut written = Ok(false);
    for sample in Source::job(options, job)? {
        let sample = sample?;
        recording.check(&sample);
        let ended = sample.job.as_ref().is_none_or(|job| job.ended);
        if how.once && ended && !observer.has_seen_a_job() {
            return Err(Hinted::new(
                "the job ended before the second sample",
                "watch a job that runs for more than two intervals, or use a shorter --interval",
            ));
        }
        written = observer.take(sample, out).and_then(|over| {
            let over = over || (to_its_end && ended);
            if over && how.once {
                observer.write(out)?;
            }
            Ok(over)
        });
        if !matches!(written, Ok(false)) {
            break;
        }
    }
    all_written(written)?;
    Ok(observer.kind())
}

/// That the reader has left is no error.
fn all_written<T>(written: std::io::Result<T>) -> Result<(), Hinted> {
    let error = written.err().and_then(|error| Hinted::unwritten(&error));
    error.map_or(Ok(()), Err)
}

/// Says at once, and once, that nothing is recorded any more.
#[derive(Debug, Default)]
pub struct RecordingWatch {
    warned: bool,
}

impl RecordingWatch {
    pub fn check(&mut self, sample: &Sample) {
        let mut gaps = sample.gaps.iter().filter(|_| !self.warned);
        if let Some(gap) = gaps.find(|gap| gap.source == SOURCE) {
            // Nobody reads it: nothing to do about that.
            let _ = writeln!(std::io::stderr(), "warning: {}", gap.reason);
            self.warned = true;
        }
    }
}

/// Reports on a recording as `observe` would have on the job: on all of its samples with these numbers, or on
/// each. Gives the kind of the last verdict; `None` where there was none.
///
/// # Errors
/// Where not one of the samples can be read, and where `out` cannot be written to.
pub fn observe_again(
    recording: Recording,
    numbers: RangeInclusive<u64>,
    how: Observation,
    out: &mut impl Write,
) -> Result<Option<Kind>, Hinted> {
    // How long it was observed is said by the numbers.
    let mut observer = Observer::new(how, recording.header().interval);
    let mut failure = None;
    let mut written = Ok(false);
    for sample in Source::part(recording, numbers) {
        match sample {
            Ok(sample) => written = observer.take(sample, out),
            Err(error) => failure = Some(error),
        }
        if written.is_err() {
            break;
        }
    }
    if let Some(failure) = failure.take_if(|_| observer.kind().is_none()) {
        return Err(failure);
    }
    let written = written.and_then(|_| {
        if how.once {
            observer.write(out)?;
        }
        Ok(())
    });
    if let Some(failure) = failure {
        let _ = writeln!(std::io::stderr(), "note: {failure}; showing the rest");
    }
    all_written(written)?;
    Ok(observer.kind())
}

fn write(out: &mut impl Write, how: Observation, report: &Report) -> std::io::Result<()> {
    match (how.json, how.once) {
        (true, true) => output::json::page(out, report)?,
        (true, false) => output::json::line(out, report)?,
        (false, true) => out.write_all(output::text(report).as_bytes())?,
        (false, false) => writeln!(out, "{}", output::line(report))?,
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_is_full_is_an_error_and_one_that_is_closed_is_not() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert!(all_written::<()>(Err(full)).is_err());
        let closed = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(all_written::<()>(Err(closed)), Ok(()));
    }
}
