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

/// A time in milliseconds, with or without a fraction.
pub(super) fn milliseconds(text: &str) -> Result<Duration, Hinted> {
    let hint = "write milliseconds as a number from 0 to 3600000, as in 40 or 0.5";
    let number = number(text, hint)?;
    Duration::try_from_secs_f64(number / 1000.0)
        .ok()
        .filter(|time| *time <= Duration::from_hours(1))
        .ok_or_else(|| Hinted::new("out of range", hint))
}

/// A number from 0 to 1000.
pub(super) fn factor(text: &str) -> Result<f64, Hinted> {
    let hint = "write a number from 0 to 1000, as in 0.5";
    let number = number(text, hint)?;
    if (0.0..=1000.0).contains(&number) {
        return Ok(number);
    }
    Err(Hinted::new("out of range", hint))
}

/// The size of a recording, of a megabyte at least: smaller ones would be made all the time.
pub(super) fn file_size(text: &str) -> Result<u64, Hinted> {
    let size = bytes(text)?;
    if size < 1_000_000 {
        return Err(Hinted::new(
            "out of range",
            "choose 1MB or more, as in 512MiB",
        ));
    }
    Ok(size)
}

/// A time since the begin of a recording.
pub(super) fn moment(text: &str) -> Result<Duration, Hinted> {
    within(text, &(Duration::ZERO..=Duration::from_hours(365 * 24)))
}

/// Recorded seconds in a second.
pub(super) fn speed(text: &str) -> Result<f64, Hinted> {
    let hint = "write a number from 0.01 to 1000, as in 10";
    let number = number(text, hint)?;
    if (0.01..=1000.0).contains(&number) {
        return Ok(number);
    }
    Err(Hinted::new("out of range", hint))
}

/// A number of bytes with a unit or without: `64MiB`, `2GB`, `4096`.
pub(super) fn bytes(text: &str) -> Result<u64, Hinted> {
    const UNITS: [(&str, u64); 7] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("KB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let hint = "write it as 64MiB, 2GB or 4096";
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)))
        .unwrap_or((text, 1));
    let number: u64 = digits
        .trim()
        .parse()
        .map_err(|_| Hinted::new("not a number of bytes", hint))?;
    let bytes = number.checked_mul(unit).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| Hinted::new("out of range", hint))
}

fn number(text: &str, hint: &str) -> Result<f64, Hinted> {
    text.parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
        .ok_or_else(|| Hinted::new("not a number", hint))
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
