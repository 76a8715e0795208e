//! Parsers for the values of options.

use std::net::SocketAddrV6;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use crate::config::{INTERVALS, gpu_name};
use crate::error::Hinted;
use crate::job::Target;
use crate::units::{Pid, Share, typed};
use crate::verdict::Kind;

const SPANS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(7 * 24);

/// Every kind of verdict, as named in the report.
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

pub(crate) fn target(text: &str) -> Result<Target, Hinted> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(pid) if digits && pid > 0 => Ok(Target::Pid(Pid(pid))),
        _ if digits => Err(not_a_pid()),
        _ if text.trim().is_empty() => Err(Hinted::new(
            "the target is empty",
            "omit the target to find the training job automatically",
        )),
        _ => Ok(Target::Word(text.to_owned())),
    }
}

fn not_a_pid() -> Hinted {
    Hinted::new(
        "not a valid PID",
        "`pgrep -f train.py` prints the PID of a process",
    )
}

/// Parses a target that must be a PID.
pub(crate) fn pid(text: &str) -> Result<Target, Hinted> {
    match target(text)? {
        pid @ Target::Pid(_) => Ok(pid),
        // A negative number.
        _ if text.parse::<i64>().is_ok() => Err(not_a_pid()),
        _ => Err(Hinted::new(
            "not a PID",
            "without -p, the target may be text from a command line",
        )),
    }
}

/// Parses a GPU as a user names it: by its index as in `nvidia-smi`, or by its UUID.
pub(crate) fn gpu(text: &str) -> Result<String, Hinted> {
    gpu_name(text).ok_or_else(|| {
        Hinted::new(
            "not a GPU index or UUID",
            "`nvidia-smi -L` lists them; use --gpu 0,1 or --gpu GPU-8f2a...",
        )
    })
}

pub(crate) fn interval(text: &str) -> Result<Duration, Hinted> {
    within(text, &INTERVALS)
}

pub(crate) fn span(text: &str) -> Result<Duration, Hinted> {
    within(text, &SPANS)
}

/// Parses a share of at most 100 %: `5%` or `5`.
pub(crate) fn percent(text: &str) -> Result<Share, Hinted> {
    let hint = "use a percentage from 0 to 100, such as 5%";
    let text = text.strip_suffix('%').unwrap_or(text).trim_end();
    number(text, 0.0..=100.0, hint).map(|percent| Share(percent / 100.0))
}

/// Checks an address to listen on: `HOST:PORT`, or `:PORT` for all addresses. Does not look up the host.
pub(crate) fn address(text: &str) -> Result<String, Hinted> {
    let parts = text.rsplit_once(':');
    let port = parts.is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    // A host in brackets can only be an IPv6 address.
    let number = !text.starts_with('[') || text.parse::<SocketAddrV6>().is_ok();
    if port && plain && number {
        return Ok(text.to_owned());
    }
    Err(Hinted::new(
        "not an address to listen on",
        "use host and port as in 127.0.0.1:9977, or only the port as in :9977",
    ))
}

/// Parses a path that no other endpoint uses.
pub(crate) fn telemetry_path(text: &str) -> Result<String, Hinted> {
    const TAKEN: [&str; 4] = ["/", "/report", "/-/healthy", "/-/ready"];
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if !text.starts_with('/') || !plain || text.contains(['?', '#']) {
        return Err(Hinted::new("not a path", "begin it with /, as in /metrics"));
    }
    if TAKEN.contains(&text) {
        return Err(Hinted::new(
            "serves something else",
            "use another, such as /metrics",
        ));
    }
    Ok(text.to_owned())
}

/// Parses the size of a recording: at least a megabyte, so that files do not rotate all the time.
pub(crate) fn file_size(text: &str) -> Result<u64, Hinted> {
    let size = bytes(text)?;
    if size < 1_000_000 {
        return Err(Hinted::new(
            "out of range",
            "use at least 1MB, such as 512MiB",
        ));
    }
    Ok(size)
}

/// Parses a time since the start of a recording.
pub(crate) fn moment(text: &str) -> Result<Duration, Hinted> {
    within(text, &(Duration::ZERO..=Duration::from_hours(365 * 24)))
}

/// Parses recorded seconds per second of playback.
pub(crate) fn speed(text: &str) -> Result<f64, Hinted> {
    let hint = "use a number from 0.01 to 1000, such as 10";
    number(text, 0.01..=1000.0, hint)
}

/// Parses a number of bytes with or without a unit: `64MiB`, `2GB`, `4000000`.
pub(crate) fn bytes(text: &str) -> Result<u64, Hinted> {
    const UNITS: [(&str, u64); 9] = [
        ("TiB", 1 << 40),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("KB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let hint = "use a whole number of B, KB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 64MiB";
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)))
        .unwrap_or((text, 1));
    let number: u64 = digits
        .trim()
        .parse()
        .map_err(|_| Hinted::new("not a size", hint))?;
    let bytes = number.checked_mul(unit).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| Hinted::new("out of range", hint))
}

/// Returns a parser of whole numbers within a range.
#[cfg(feature = "lab")]
pub(crate) fn whole<N>(
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, Hinted> + Clone + Send + Sync + 'static
where
    N: TryFrom<i128> + Into<i128> + PartialOrd + std::fmt::Display + Copy + Send + Sync + 'static,
{
    move |text| {
        let (least, most) = (range.start(), range.end());
        // The greatest number of all is that of the type, not of the option.
        let hint = if (*most).into() == i128::from(u64::MAX) {
            format!("use a whole number of {least} or more")
        } else {
            format!("use a whole number from {least} to {most}")
        };
        // No option takes a number that does not fit.
        let number: i128 = text
            .parse()
            .map_err(|_| Hinted::new("not a whole number", &hint))?;
        let number = N::try_from(number).ok();
        let number = number.filter(|number| range.contains(number));
        number.ok_or_else(|| Hinted::new("out of range", &hint))
    }
}

/// Parses a number within a range.
pub(crate) fn number(text: &str, range: RangeInclusive<f64>, hint: &str) -> Result<f64, Hinted> {
    match text.parse::<f64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        Ok(number) if number.is_finite() => Err(Hinted::new("out of range", hint)),
        _ => Err(Hinted::new("not a number", hint)),
    }
}

/// Parses a duration within a range; a number alone is seconds.
pub(crate) fn within(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, Hinted> {
    // `None` if it is negative, too large or not a number.
    let duration = if let Ok(seconds) = text.parse() {
        Duration::try_from_secs_f64(seconds).ok()
    } else {
        let amount = text.strip_prefix('-').unwrap_or(text);
        let duration = humantime::parse_duration(amount).map_err(|_| {
            let hint = "use a number with ms, s, min, h or d, such as 14s, 500ms or 2min; a number alone is seconds";
            Hinted::new("not a duration", hint)
        })?;
        (amount == text).then_some(duration)
    };
    if let Some(duration) = duration.filter(|duration| range.contains(duration)) {
        return Ok(duration);
    }
    let (least, most) = (typed(*range.start()), typed(*range.end()));
    let hint = format!("use a duration between {least} and {most}, such as 14s");
    Err(Hinted::new("out of range", hint))
}

/// Whether the word is a unit of a duration, such as `s` or `min`.
pub(crate) fn is_unit(word: &str) -> bool {
    humantime::parse_duration(&format!("1{word}")).is_ok()
}

/// Parses a kind by its name in the report.
pub(crate) fn kinds() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(KINDS)
        .try_map(|name| Kind::deserialize(IntoDeserializer::<Error>::into_deserializer(name)))
}
