//! The quantities that all modules use: identities, shares, byte counts, moments.
//!
//! Defines their unit and how they are displayed, independent of where a number comes from or where it is shown. Also
//! replaces characters in names that a terminal would interpret.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// ID of a process or a thread, in the proc root that is used.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Pid(pub i32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Identifies a process permanently: a pid is reused after its process ends, the pair is not.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct ProcessKey {
    pub pid: Pid,
    /// Field 22 of `/proc/PID/stat`: clock ticks between boot and the start of the process.
    pub start_ticks: u64,
}

/// A part of a whole, 0 to 1. Displayed as whole percent with the sign: `63 %`.
#[derive(
    Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Share(#[schemars(range(min = 0.0, max = 1.0))] pub f64);

impl Share {
    pub const ZERO: Self = Self(0.0);
    pub const ONE: Self = Self(1.0);

    /// Returns the share of `part` in `whole`, within 0 to 1. `None` if the whole is not positive.
    pub fn of(part: f64, whole: f64) -> Option<Self> {
        // An empty sum of floats is -0.0: adding 0 removes the sign.
        (whole > 0.0 && part.is_finite()).then(|| Self((part / whole).clamp(0.0, 1.0) + 0.0))
    }

    pub fn percent(self) -> f64 {
        self.0 * 100.0
    }

    #[must_use]
    pub fn clamped(self) -> Self {
        Self(self.0.clamp(0.0, 1.0) + 0.0)
    }

    /// Returns the rest of the whole.
    #[must_use]
    pub fn complement(self) -> Self {
        Self(1.0 - self.0)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} %", without_sign(self.percent(), 0))
    }
}

/// Returns the value, or 0 if this many decimals would show it as `-0.0`.
pub fn without_sign(value: f64, decimals: i32) -> f64 {
    if value.abs() * 10f64.powi(decimals) < 0.5 {
        0.0
    } else {
        value
    }
}

/// Formats a length of time, for example `10 s`, `2.5 s`, `2 min`, `3 h`.
pub fn span(seconds: f64) -> String {
    if seconds >= 7170.0 {
        let hours = seconds / 3600.0;
        let decimals = usize::from(hours < 9.95 && (hours - hours.round()).abs() >= 0.05);
        format!("{hours:.decimals$} h")
    } else if seconds >= 119.5 {
        format!("{:.0} min", seconds / 60.0)
    } else if seconds < 9.95 && (seconds - seconds.round()).abs() >= 0.05 {
        format!("{seconds:.1} s")
    } else {
        format!("{seconds:.0} s")
    }
}

/// Formats a length of time as options take it, for example `500ms`, `1h 30min`.
pub fn typed(time: Duration) -> String {
    const UNITS: [(&str, u128); 5] = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("min", 60_000),
        ("s", 1000),
        ("ms", 1),
    ];
    let mut rest = time.as_millis();
    let mut parts = Vec::new();
    for (unit, millis) in UNITS {
        if rest >= millis {
            parts.push(format!("{}{unit}", rest / millis));
            rest %= millis;
        }
    }
    if parts.is_empty() {
        return "0s".to_owned();
    }
    parts.join(" ")
}

/// A number of bytes. Displayed in binary units, three significant digits: `21.4 GiB`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        f.write_str(&scaled(self.0 as f64, 1024.0, &units, 99.95))
    }
}

/// Bytes per second. Displayed in decimal units, as for drives and links: `212 MB/s`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BytesPerSecond(pub f64);

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B/s", "KB/s", "MB/s", "GB/s", "TB/s"];
        f.write_str(&scaled(self.0, 1000.0, &units, 99.95))
    }
}

/// Formats `value` in the largest unit that keeps it at one or more, with one decimal below `fine`.
pub(crate) fn scaled(mut value: f64, step: f64, units: &[&str], fine: f64) -> String {
    let mut unit = 0;
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = usize::from(unit > 0 && value < fine);
    format!("{value:.decimals$} {}", units[unit])
}

/// When a sample was taken. Everything below the samplers and the event loop uses this as the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Monotonic time since pipetop started.
    pub since_start: Duration,
    /// The wall clock at the same instant; for display and recordings only.
    pub wall: SystemTime,
}

impl Moment {
    /// Returns the seconds from `earlier` to this moment; 0 if `earlier` is later.
    pub fn seconds_since(&self, earlier: &Self) -> f64 {
        self.since_start
            .saturating_sub(earlier.since_start)
            .as_secs_f64()
    }
}

/// Returns a duration in nanoseconds, limited to the largest value.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the whole part of a count or an index: 0 for a negative value or NaN.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from float stops at the ends"
)]
pub fn whole(value: f64) -> usize {
    value as usize
}

/// Returns the sum of counts. Those of a damaged recording may be too large for one.
pub fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// Returns the mean; `None` if there are no values.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the values in ascending order.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns the middle value, or the higher of two middle values; `None` if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let sorted = sorted(values);
    sorted.get(sorted.len() / 2).copied()
}

/// Appends an item; before that, drops the oldest if there are `most`. Returns whether it dropped one.
pub(crate) fn keep_newest<T>(kept: &mut VecDeque<T>, item: T, most: usize) -> bool {
    let is_full = kept.len() == most;
    if is_full {
        kept.pop_front();
    }
    kept.push_back(item);
    is_full
}

/// Shown for an unknown figure.
pub const UNKNOWN: &str = "n/a";

/// Formats a figure that may be unknown.
pub fn known(figure: Option<impl fmt::Display>) -> String {
    figure.map_or_else(|| UNKNOWN.to_owned(), |figure| figure.to_string())
}

/// Formats a count with what is counted: `1 worker`, `3 workers`.
pub fn counted(count: impl TryInto<u64>, what: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let hisses = what.ends_with('s') || what.ends_with("ch");
    let plural = if hisses { "es" } else { "s" };
    format!("{count} {what}{}", if count == 1 { "" } else { plural })
}

/// Returns the first `most` characters of a text, followed by `more` if the text is longer.
pub(crate) fn shortened(text: &str, most: usize, more: &str) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}{more}", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether a terminal would interpret the character: a control character, or one that changes the direction of writing.
pub(crate) fn is_terminal_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces the characters that a terminal would interpret. Names, paths and command lines may contain any of them.
pub fn printable(text: &str) -> String {
    text.replace(is_terminal_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_no_sign() {
        let nothing: f64 = [0.0; 0].iter().sum();
        for share in [
            Share::of(nothing, 1.0).unwrap(),
            Share(nothing),
            Share(-0.004),
        ] {
            assert_eq!(share.to_string(), "0 %");
        }
        assert!(Share(nothing).clamped().0.is_sign_positive());
        assert_eq!(Share(-0.006).to_string(), "-1 %");
        assert_eq!(format!("{:.1}", without_sign(-0.04, 1)), "0.0");
        assert_eq!(format!("{:.1}", without_sign(-0.06, 1)), "-0.1");
    }

    #[test]
    fn times_are_written_as_options_take_them() {
        let times = [0, 500, 1000, 14_000, 60_000, 90_000, 600_000, 604_800_000];
        let texts = times.map(|millis| typed(Duration::from_millis(millis)));
        let expected = [
            "0s", "500ms", "1s", "14s", "1min", "1min 30s", "10min", "7d",
        ];
        assert_eq!(texts, expected);
        for (millis, text) in times.into_iter().zip(texts) {
            let read = humantime::parse_duration(&text);
            assert_eq!(read.ok(), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn a_count_is_singular_for_one_alone() {
        assert_eq!(counted(1, "worker"), "1 worker");
        assert_eq!(counted(0, "batch"), "0 batches");
        assert_eq!(counted(3, "rank"), "3 ranks");
    }

    #[test]
    fn control_characters_are_not_printable() {
        let evil = "a\u{1b}[2J\n\u{9b}2J\u{202e}b) c\u{2066}";
        assert_eq!(
            printable(evil),
            "a\u{fffd}[2J\u{fffd}\u{fffd}2J\u{fffd}b) c\u{fffd}"
        );
        assert_eq!(printable("größe 训练.py"), "größe 训练.py");
    }

    #[test]
    fn amounts_keep_few_digits_and_their_unit() {
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes(1023).to_string(), "1023 B");
        assert_eq!(Bytes(22_978_772_992).to_string(), "21.4 GiB");
        assert_eq!(BytesPerSecond(212_000_000.0).to_string(), "212 MB/s");
        assert_eq!(BytesPerSecond(1_940_000_000.0).to_string(), "1.9 GB/s");
        assert_eq!(BytesPerSecond(999_990.0).to_string(), "1.0 MB/s");
    }

    #[test]
    fn a_share_of_zero_is_unknown() {
        assert_eq!(Share::of(1.0, 0.0), None);
        assert_eq!(Share::of(3.0, 2.0), Some(Share::ONE));
        assert_eq!(Share::of(f64::NAN, 2.0), None);
    }
}
