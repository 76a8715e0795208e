//! The quantities that every part speaks in: identities, shares, byte counts, moments.
//!
//! Knows nothing of where a number came from or where it is shown; only its unit and how it reads. Also how
//! a name that others chose reads.

use std::fmt;
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process or thread number, as the proc root in use names it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Pid(pub i32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A process for good: a number is used again after its process ends, the pair is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

    /// The share that `part` is of `whole`, within 0 to 1. `None` where the whole is not positive.
    pub fn of(part: f64, whole: f64) -> Option<Self> {
        // An empty sum of floats is -0.0: adding 0 takes the sign away.
        (whole > 0.0 && part.is_finite()).then(|| Self((part / whole).clamp(0.0, 1.0) + 0.0))
    }

    pub fn percent(self) -> f64 {
        self.0 * 100.0
    }

    #[must_use]
    pub fn clamped(self) -> Self {
        Self(self.0.clamp(0.0, 1.0) + 0.0)
    }

    /// What is left of the whole.
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

/// The value, or 0 where so many decimals would show it as `-0.0`.
pub fn without_sign(value: f64, decimals: i32) -> f64 {
    if value.abs() * 10f64.powi(decimals) < 0.5 {
        0.0
    } else {
        value
    }
}

/// `10 s`, `2.5 s`, `2 min`, `3 h`: a length of time in words.
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

/// A number of bytes. Displayed in binary units, three significant digits: `21.4 GiB`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(
            f,
            self.0 as f64,
            1024.0,
            &["B", "KiB", "MiB", "GiB", "TiB", "PiB"],
        )
    }
}

/// Bytes in a second. Displayed in decimal units as drives and links are sold: `212 MB/s`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BytesPerSecond(pub f64);

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, 1000.0, &["B/s", "KB/s", "MB/s", "GB/s", "TB/s"])
    }
}

/// Writes `value` in the largest unit that keeps it at one or more, and one decimal below a hundred.
fn scaled(f: &mut fmt::Formatter<'_>, value: f64, step: f64, units: &[&str]) -> fmt::Result {
    let mut value = value;
    let mut unit = 0;
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = usize::from(unit > 0 && value < 9.995) + usize::from(unit > 0 && value < 99.95);
    let decimals = decimals.min(1);
    write!(f, "{value:.decimals$} {}", units[unit])
}

/// When a sample was taken. Everything below the samplers and the loop reads time from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Monotonic time since pipetop started.
    pub since_start: Duration,
    /// The wall clock at the same instant; for display and recordings only.
    pub wall: SystemTime,
}

impl Moment {
    /// Seconds from `earlier` to this moment; 0 where `earlier` is later.
    pub fn seconds_since(&self, earlier: &Self) -> f64 {
        self.since_start
            .saturating_sub(earlier.since_start)
            .as_secs_f64()
    }
}

/// One line without what a terminal would obey: control characters, and those that turn the direction of
/// writing. Names, paths and command lines are chosen by others.
pub fn printable(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.replace(obeyed, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_sign() {
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
    fn nothing_that_a_terminal_would_obey_is_printable() {
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
    fn a_share_of_nothing_is_unknown() {
        assert_eq!(Share::of(1.0, 0.0), None);
        assert_eq!(Share::of(3.0, 2.0), Some(Share::ONE));
        assert_eq!(Share::of(f64::NAN, 2.0), None);
    }
}
