//! Watching without a screen, or looking at a recording: one report at the end (`--once`), or a line for each
//! interval.
//!
//! Knows nothing of terminals; who is watched and how was settled before.

use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::mpsc;
use std::time::Duration;

use crate::error::Hinted;
use crate::job::{Candidate, Target};
use crate::model::Model;
use crate::record::{RecordError, Recording};
use crate::report;
use crate::sample::Sample;
use crate::source::sampler::{Options, Sampler};
use crate::verdict::{Judge, Kind, Verdict};

/// Long enough for a verdict on a job in steady state, which needs ten seconds.
pub const ONCE: Duration = Duration::from_secs(12);
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
    model: Model,
    judge: Judge,
    verdict: Option<Verdict>,
    began: Option<Duration>,
}

impl Observer {
    /// `interval` is the time from one sample to the next.
    pub fn new(how: Observation, interval: Duration) -> Self {
        Self {
            how,
            span: how.span.or(how.once.then_some(ONCE)),
            interval,
            model: Model::new(if how.once { Duration::MAX } else { WINDOW }),
            judge: Judge::new(),
            verdict: None,
            began: None,
        }
    }

    /// Takes a sample in, writes what is due to `out`, and says whether the observation is at its end.
    ///
    /// # Errors
    /// Where `out` cannot be written to.
    pub fn take(&mut self, sample: Sample, out: &mut impl Write) -> std::io::Result<bool> {
        let at = sample.at.since_start;
        self.model.apply(sample);
        let verdict = self.judge.judge(&self.model);
        let due = !self.how.once && self.model.latest().is_some();
        self.verdict = Some(verdict);
        if due {
            self.write(out)?;
        }
        if self.how.steady {
            let began = self
                .model
                .progress()
                .batches
                .is_some_and(|batches| batches > 0);
            // Not that of an earlier job.
            let began = began.then(|| self.began.unwrap_or(at));
            self.began = began;
        } else {
            self.began.get_or_insert(at);
        }
        let over = |began: Duration| at.saturating_sub(began) + self.interval / 2;
        // Another round would end after the span.
        Ok(self
            .span
            .zip(self.began)
            .is_some_and(|(span, began)| over(began) >= span))
    }

    /// Writes a line or a report of what is known by now.
    ///
    /// # Errors
    /// Where `out` cannot be written to.
    pub fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        match &self.verdict {
            Some(verdict) => write(out, self.how, &self.model, verdict),
            None => Ok(()),
        }
    }

    /// There is something to report.
    pub fn has_seen_a_job(&self) -> bool {
        self.model.window().is_some()
    }

    /// The kind of the last verdict; `None` where nothing was seen.
    pub fn kind(&self) -> Option<Kind> {
        self.verdict.as_ref().map(|verdict| verdict.kind)
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
    let (send, samples) = mpsc::channel();
    let _sampler = Sampler::start(options, job, move |sample: Sample| {
        send.send(sample).is_ok()
    })
    .map_err(|error| no_thread(&error))?;
    let mut observer = Observer::new(how, interval);
    for sample in samples {
        let ended = sample.job.as_ref().is_none_or(|job| job.ended);
        if how.once && ended && !observer.has_seen_a_job() {
            return Err(Hinted::new(
                "the job has ended before it was read twice",
                "name one that trains for longer than two intervals; --interval makes them shorter",
            ));
        }
        let Ok(over) = observer.take(sample, out) else {
            break;
        };
        if over || (to_its_end && ended) {
            if how.once {
                // Nobody who reads it any more: nothing to do about that.
                let _ = observer.write(out);
            }
            break;
        }
    }
    Ok(observer.kind())
}

/// What is said where a thread cannot be started.
pub fn no_thread(error: &std::io::Error) -> Hinted {
    Hinted::new(
        format!("cannot start a thread: {error}"),
        "raise the limit of processes (ulimit -u)",
    )
}

/// Reports on a recording as `observe` would have on the job: on all of its samples with these numbers, or on
/// each. Gives the kind of the last verdict; `None` where there was none.
///
/// # Errors
/// Where not one of the samples can be read.
pub fn observe_again(
    recording: &mut Recording,
    numbers: RangeInclusive<u64>,
    how: Observation,
    out: &mut impl Write,
) -> Result<Option<Kind>, RecordError> {
    // How long it was observed is said by the numbers.
    let mut observer = Observer::new(how, recording.header().interval);
    let mut failure = None;
    let (mut number, end) = numbers.into_inner();
    while number <= end {
        match recording.read(number) {
            Ok((sample, _)) => {
                number += 1;
                if observer.take(sample, out).is_err() {
                    break;
                }
            }
            Err(error) => {
                failure = Some(error);
                match recording.behind(number) {
                    Some(next) => number = next,
                    None => break,
                }
            }
        }
    }
    if observer.kind().is_none()
        && let Some(failure) = failure
    {
        return Err(failure);
    }
    if how.once {
        // Nobody who reads it: nothing to do about that.
        let _ = observer.write(out);
    }
    if let Some(failure) = failure {
        let _ = writeln!(std::io::stderr(), "note: {failure}; the rest is shown");
    }
    Ok(observer.kind())
}

fn write(
    out: &mut impl Write,
    how: Observation,
    model: &Model,
    verdict: &Verdict,
) -> std::io::Result<()> {
    if how.json {
        let document = report::json(model, verdict);
        if how.once {
            serde_json::to_writer_pretty(&mut *out, &document)?;
        } else {
            serde_json::to_writer(&mut *out, &document)?;
        }
        writeln!(out)?;
    } else if how.once {
        write!(out, "{}", report::text(model, verdict))?;
    } else {
        writeln!(out, "{}", report::line(model, verdict))?;
    }
    out.flush()
}
