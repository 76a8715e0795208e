//! Watching without a screen, or reading a recording: one report at the end (`--once`), or a line for each
//! interval.
//!
//! Does not depend on the terminal; the caller decides what is watched and how.

use std::io::Write;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::engine::{Engine, WINDOW};
use crate::error::{Hinted, write_error};
use crate::job::{Candidate, Target};
use crate::output;
use crate::record::{Recording, SOURCE};
use crate::sample::Sample;
use crate::source::Source;
use crate::source::gpu::SELECTION;
use crate::source::sampler::Options;
use crate::units::ProcessKey;
use crate::verdict::Kind;

/// Default span of a single report. Long enough for a verdict on a job in steady state, which takes ten seconds if the
/// case is not clear.
pub const ONCE: Duration = Duration::from_secs(12);
/// If no job is found, a span that would begin with the first batch begins with the first sample, and lasts at least
/// this long.
const MAX_START: Duration = Duration::from_mins(1);
/// Minimum length of that span if there is a job but nothing shows that it trains: it may first read a model and list
/// its data.
const MAX_FIRST_BATCH: Duration = Duration::from_mins(5);

/// The part of an interval by which the sample at the end of the span may come early.
const EARLY: u32 = 10;

/// How to observe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// One report at the end, in place of a line per interval.
    pub once: bool,
    pub json: bool,
    /// `None` = [`ONCE`] for `once`, to the end of a launched job, otherwise for ever. With `once`, the end of the job
    /// also ends it.
    pub span: Option<Duration>,
    /// Whether the span begins with the job's first batch (or, if nothing counts batches, when its waits are first
    /// known). The report covers only the time from then on.
    pub steady: bool,
}

/// Turns samples into lines or a report.
#[derive(Debug)]
pub struct Observer {
    how: Observation,
    span: Option<Duration>,
    interval: Duration,
    engine: Engine,
    began: Option<Duration>,
    /// The time of the first sample.
    first: Option<Duration>,
    /// The job of the newest sample that had one.
    job: Option<ProcessKey>,
    /// The job whose end was written.
    ended: Option<ProcessKey>,
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
            job: None,
            ended: None,
        }
    }

    /// Adds a sample, writes to `out` what is due, and returns whether the observation is over.
    ///
    /// # Errors
    /// Returns an error if `out` cannot be written to.
    pub fn take(&mut self, sample: Sample, out: &mut impl Write) -> std::io::Result<bool> {
        let at = sample.at.since_start;
        let nothing = sample.job.is_none();
        let first = *self.first.get_or_insert(at);
        let another = sample.job.as_ref().and_then(|job| {
            let before = self.job.replace(job.key)?;
            let command = || output::command(&job.command);
            (before != job.key).then(|| format!("now watching pid {}: {}", job.key.pid, command()))
        });
        if let Some(another) = another.filter(|_| !self.how.once && !self.how.json) {
            writeln!(
                out,
                "{}  {another}",
                output::time(at.as_secs_f64(), self.interval)
            )?;
        }
        let ended = sample.job.as_ref().filter(|job| job.ended);
        let ended = ended.map(|job| job.key);
        let model = &self.engine.push(sample).model;
        let batches = model.progress().batches.map(|batches| batches > 0);
        let waits_known = || {
            let job = model.window()?.job.as_ref()?;
            Some(job.ranks.iter().any(|rank| rank.wait.is_some()))
        };
        let trains = batches.or_else(waits_known).unwrap_or_default();
        if !self.how.once && model.latest().is_some() {
            // After the job has ended nothing changes, and repeating the line would only fill a log.
            if self.how.json || ended.is_none() || ended != self.ended {
                self.write(out)?;
            }
            self.ended = ended;
        }
        if self.how.steady {
            // The first batch of an earlier job does not count.
            self.began = trains.then(|| self.began.unwrap_or(at));
        } else {
            self.began.get_or_insert(at);
        }
        let passed = |began: Duration| at.saturating_sub(began) + self.interval / EARLY;
        Ok(self.span.is_some_and(|span| match self.began {
            Some(began) => passed(began) >= span,
            None if nothing => passed(first) >= span.max(MAX_START),
            None => passed(first) >= span.max(MAX_FIRST_BATCH),
        }))
    }

    /// Writes a line or a report of what is known so far.
    ///
    /// # Errors
    /// Returns an error if `out` cannot be written to.
    pub fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Some(report) = self.engine.state().report() else {
            return Ok(());
        };
        match (self.how.json, self.how.once) {
            (true, true) => output::json::page(out, &report)?,
            (true, false) => output::json::line(out, &report)?,
            (false, true) => out.write_all(output::text(&report).as_bytes())?,
            (false, false) => writeln!(out, "{}", output::line(&report, self.interval))?,
        }
        out.flush()
    }

    /// Whether there is something to report.
    pub fn has_seen_a_job(&self) -> bool {
        self.engine.state().model.window().is_some()
    }

    /// Returns the kind of the last verdict; `None` if nothing was seen.
    pub fn kind(&self) -> Option<Kind> {
        self.engine.state().kind()
    }
}

/// Observes, writes to `out`, and returns the kind of the last verdict; `None` if nothing was seen.
///
/// # Errors
/// Returns an error if no thread can be started, or if a job that is observed once ended before there was anything to
/// report. A reader that closes `out` ends the observation without an error.
pub fn observe(
    options: Options,
    job: Option<Candidate>,
    how: Observation,
    out: &mut impl Write,
) -> Result<Option<Kind>, Hinted> {
    let interval = options.interval;
    // Jobs that pipetop has not launched may be followed by another one.
    let to_its_end = how.once || matches!(options.target, Target::Launched(_));
    let mut observer = Observer::new(how, interval);
    let mut warnings = Warnings::default();
    let mut written = Ok(false);
    for sample in Source::job(options, job)? {
        let sample = sample?;
        warnings.check(&sample);
        // A job that cannot be read, for lack of descriptors, has not ended.
        let unread = sample.gaps.iter().any(|gap| gap.source == "job");
        let ended = sample.job.as_ref().map_or(!unread, |job| job.ended);
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

/// Treats a reader that has closed the output as success.
pub(crate) fn all_written<T>(written: std::io::Result<T>) -> Result<(), Hinted> {
    let error = written.err().and_then(|error| Hinted::unwritten(&error));
    error.map_or(Ok(()), Err)
}

/// Warns once of what the user asked for and does not get: a recording, or a GPU.
#[derive(Debug, Default)]
pub struct Warnings {
    /// The sources that were warned of.
    said: Vec<&'static str>,
}

impl Warnings {
    pub fn check(&mut self, sample: &Sample) {
        for source in [SOURCE, SELECTION] {
            if self.said.contains(&source) {
                continue;
            }
            for gap in sample.gaps.iter().filter(|gap| gap.source == source) {
                write_error(format_args!("warning: {}", gap.reason));
                self.said.push(source);
            }
        }
    }
}

/// Returns the error for samples of which none is later than the one before it.
pub(crate) fn no_time_between() -> Hinted {
    Hinted::new(
        "no time passes from one sample to the next",
        "figures need time between two samples; record the job again with `pipetop --record FILE`",
    )
}

/// Reports on the samples of a recording with these numbers as `observe` would have reported on the job: on all of them
/// together, or on each. Returns the kind of the last verdict; `None` if there was none.
///
/// # Errors
/// Returns an error if none of the samples can be read, or if `out` cannot be written to.
pub fn observe_again(
    recording: Recording,
    numbers: RangeInclusive<u64>,
    how: Observation,
    out: &mut impl Write,
) -> Result<Option<Kind>, Hinted> {
    // The sample numbers limit the observation, so the span of `how` is ignored.
    let mut observer = Observer::new(how, recording.header.interval);
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
    if !observer.engine.state().has_figures() {
        return Err(no_time_between());
    }
    let written = written.and_then(|_| {
        if how.once {
            observer.write(out)?;
        }
        Ok(())
    });
    if let Some(failure) = failure {
        write_error(format_args!("note: {failure}; showing what can be read"));
    }
    all_written(written)?;
    Ok(observer.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RecordOptions, SIZE, Writer};
    use crate::sample::literals::training;

    #[test]
    fn samples_of_one_moment_are_an_error_and_no_report() {
        let folder = tempfile::tempdir().unwrap();
        let report = |times: &[f64], once| {
            let options = RecordOptions {
                path: folder.path().join("run.rec"),
                size: SIZE,
                command_lines: true,
                interval: Duration::from_secs(1),
            };
            let mut writer = Writer::create(&options).unwrap();
            for at in times {
                writer.write(&training(*at)).unwrap();
            }
            writer.finish().unwrap();
            let recording = Recording::open(&options.path).unwrap();
            std::fs::remove_file(&options.path).unwrap();
            let how = Observation {
                once,
                json: false,
                span: None,
                steady: false,
            };
            let all = 0..=times.len() as u64 - 1;
            observe_again(recording, all, how, &mut vec![]).map(drop)
        };
        for once in [false, true] {
            let error = report(&[5.0; 3], once).unwrap_err();
            assert_eq!(report(&[7.0, 6.0, 5.0], once), Err(no_time_between()));
            assert_eq!(error, no_time_between());
            assert_eq!(report(&[5.0, 6.0, 6.0], once), Ok(()));
        }
    }

    #[test]
    fn an_output_that_is_full_is_an_error_and_one_that_is_closed_is_not() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert!(all_written::<()>(Err(full)).is_err());
        let closed = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(all_written::<()>(Err(closed)), Ok(()));
    }
}
