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
    let span = how.span.or(how.once.then_some(ONCE));
    let interval = options.interval;
    // Of any other job there may be a next one.
    let to_its_end = how.once || matches!(options.target, Target::Launched(_));
    let (send, samples) = mpsc::channel();
    let _sampler = Sampler::start(options, job, move |sample: Sample| {
        send.send(sample).is_ok()
    })
    .map_err(|error| {
        Hinted::new(
            format!("cannot start a thread: {error}"),
            "raise the limit of processes (ulimit -u)",
        )
    })?;
    let mut model = Model::new(if how.once { Duration::MAX } else { WINDOW });
    let mut judge = Judge::new();
    let mut last = None;
    let mut began = None;
    for sample in samples {
        let at = sample.at.since_start;
        let began = *began.get_or_insert(at);
        let ended = sample.job.as_ref().is_none_or(|job| job.ended);
        if how.once && ended && model.window().is_none() {
            return Err(Hinted::new(
                "the job has ended before it was read twice",
                "name one that trains for longer than two intervals; --interval makes them shorter",
            ));
        }
        model.apply(sample);
        let verdict = judge.judge(&model);
        // Another round would end after the span.
        let done = span.is_some_and(|span| at.saturating_sub(began) + interval / 2 >= span);
        let done = done || (to_its_end && ended);
        let first = model.latest().is_none();
        let due = if how.once { done } else { !first };
        last = Some(verdict.kind);
        if (due && write(out, how, &model, &verdict).is_err()) || done {
            break;
        }
    }
    Ok(last)
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
    let mut model = Model::new(if how.once { Duration::MAX } else { WINDOW });
    let mut judge = Judge::new();
    let mut last = None;
    let mut failure = None;
    let (mut number, end) = numbers.into_inner();
    while number <= end {
        match recording.read(number) {
            Ok((sample, _)) => {
                model.apply(sample);
                let verdict = judge.judge(&model);
                let known = last.replace(verdict).is_some();
                number += 1;
                let verdict = last.as_ref().filter(|_| known && !how.once);
                if let Some(verdict) = verdict
                    && write(out, how, &model, verdict).is_err()
                {
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
    match (last, failure) {
        (None, Some(error)) => Err(error),
        (last, failure) => {
            if let (true, Some(verdict)) = (how.once, &last) {
                // Nobody reads it: nothing to do about that.
                let _ = write(out, how, &model, verdict);
            }
            if let Some(failure) = failure {
                let mut errors = std::io::stderr();
                let _ = writeln!(errors, "note: {failure}; what can be read is shown");
            }
            Ok(last.map(|verdict| verdict.kind))
        }
    }
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
