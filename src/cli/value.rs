//! How the values of options are read.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use crate::error::Hinted;
use crate::units::Pid;
use crate::verdict::Kind;

/// Reading more often costs more than the budget; more seldom shows nothing that moves.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);
const SPANS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(7 * 24);

/// Every kind of verdict, as the report writes it.
const KINDS: [&str; 8] = [
    "data-bound",
    "balanced",
    "compute-bound",
    "host-bound",
    "communication-bound",
    "warming-up",
    "stalled",
    "unknown",
];

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Pid(Pid),
    /// A word of a command line.
    Word(String),
}

/// A GPU as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuChoice {
    /// As `nvidia-smi` counts.
    Index(u32),
    /// `GPU-...` or `MIG-...`
    Uuid(String),
}

pub(super) fn target(text: &str) -> Result<Target, Hinted> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(pid) if digits && pid > 0 => Ok(Target::Pid(Pid(pid))),
        _ if digits => Err(Hinted::new(
            "no process has this number",
            "a PID is 1 or more, as `pgrep -f train.py` prints it",
        )),
        _ if text.trim().is_empty() => Err(Hinted::new(
            "an empty word is in every command line",
            "leave the target out to have the job found",
        )),
        _ => Ok(Target::Word(text.to_owned())),
    }
}

pub(super) fn gpu(text: &str) -> Result<GpuChoice, Hinted> {
    if let Ok(index) = text.parse() {
        return Ok(GpuChoice::Index(index));
    }
    if text.starts_with("GPU-") || text.starts_with("MIG-") {
        return Ok(GpuChoice::Uuid(text.to_owned()));
    }
    Err(Hinted::new(
        "neither an index nor a UUID",
        "`nvidia-smi -L` lists both, as in --gpu 0,1 or --gpu GPU-8f2a...",
    ))
}

pub(super) fn interval(text: &str) -> Result<Duration, Hinted> {
    within(text, &INTERVALS)
}

pub(super) fn span(text: &str) -> Result<Duration, Hinted> {
    within(text, &SPANS)
}

pub(super) fn within(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, Hinted> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| Hinted::new(error.to_string(), "write it as 14s, 500ms or 2min"))?;
    if range.contains(&duration) {
        return Ok(duration);
    }
    let (least, most) = (range.start(), range.end());
    let (least, most) = (
        humantime::format_duration(*least),
        humantime::format_duration(*most),
    );
    let hint = format!("choose between {least} and {most}");
    Err(Hinted::new("out of range", hint))
}

/// Reads a kind by the name that the report gives it.
pub(super) fn kinds() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(KINDS)
        .try_map(|name| Kind::deserialize(IntoDeserializer::<Error>::into_deserializer(name)))
}
