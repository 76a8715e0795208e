//! The configuration file as it is written: every field is optional, unknown fields are errors.
//!
//! Does not depend on the defaults or the command line.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::columns::Column;
use super::keymap::{Bindings, KeyPress};
use super::theme::{Colour, Role, ThemeName};
use crate::plain_toml::{Wrong, plain};
use crate::regular_file;
use crate::units::typed;

/// The hint if it is not known what the user meant.
pub const ALL_OPTIONS: &str = "`pipetop config` prints the default file with every option";

/// Maximum size of the file in bytes: more than a thousand times the default file. A longer file is not a
/// configuration.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The structure of `config/pipetop.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default, deserialize_with = "duration")]
    pub(super) interval: Option<Duration>,
    pub(super) ascii: Option<Ascii>,
    pub(super) theme: Option<ThemeName>,
    pub(super) mouse: Option<bool>,
    pub(super) gpu: Option<Vec<GpuName>>,
    pub(super) columns: Option<Spanned<Vec<Spanned<Column>>>>,
    /// Bytes.
    #[serde(rename = "past-mib", default, deserialize_with = "mebibytes")]
    pub(super) past: Option<usize>,
    pub(super) keys: Option<Bindings>,
    pub(super) colours: Option<BTreeMap<Role, Colour>>,
}

/// A GPU by its index or its UUID.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "not a GPU index or UUID")]
pub(super) enum GpuName {
    Index(u32),
    #[serde(deserialize_with = "gpu")]
    Name(String),
}

impl GpuName {
    pub(super) fn into_string(self) -> String {
        match self {
            Self::Index(index) => index.to_string(),
            Self::Name(name) => name,
        }
    }
}

/// When to draw with ASCII only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ascii {
    Auto,
    Always,
    Never,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// Names the file, and the place in it.
    message: String,
    line: Option<usize>,
    meant: Option<String>,
}

impl ConfigError {
    /// Returns what was probably meant, if that is known.
    pub fn meant(&self) -> Option<&str> {
        self.meant.as_deref()
    }

    /// Returns what to try: what was probably meant, or else where every option is described.
    pub fn hint(&self) -> String {
        match self.meant() {
            Some(meant) if meant.ends_with('?') => {
                format!("{meant} `pipetop config` lists every option")
            }
            Some(meant) => format!("{meant}; `pipetop config` lists every option"),
            None => ALL_OPTIONS.to_owned(),
        }
    }

    /// Returns the line, counted from 1. `None` if the file could not be read at all.
    pub(super) fn line(&self) -> Option<usize> {
        self.line
    }

    /// Creates an error at a byte range of `text`.
    pub(super) fn at(path: &Path, text: &str, span: Option<Range<usize>>, message: &str) -> Self {
        let start = span.map_or(0, |span| span.start).min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        let Wrong { message, hint } = plain(message);
        // The message may quote the file.
        let message = crate::units::printable(&message);
        Self {
            message: format!("{}:{line}:{column}: {message}", path.display()),
            line: Some(line),
            meant: hint,
        }
    }
}

pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    readable(path, regular_file::read_text(path, MAX_FILE_BYTES))
}

/// Like [`read`], for a file or a pipe that the user has named.
pub(super) fn read_named(path: &Path) -> Result<String, ConfigError> {
    readable(path, regular_file::read_named_text(path, MAX_FILE_BYTES))
}

fn readable(path: &Path, text: std::io::Result<String>) -> Result<String, ConfigError> {
    text.map_err(|error| ConfigError {
        message: format!("cannot read {}: {error}", path.display()),
        line: None,
        meant: None,
    })
}

/// Returns the text with this line, counted from 1, emptied. With a table's header, its entries are emptied, too, which
/// would otherwise belong to the table before it. `None` if the line is already empty.
pub(super) fn without_line(text: &str, line: usize) -> Option<String> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    let rest = lines.get_mut(line.checked_sub(1)?..)?;
    let (line, below) = rest.split_first_mut()?;
    let is_header = |line: &&mut &str| line.starts_with('[');
    if is_header(&line) {
        for entry in below.iter_mut().take_while(|line| !is_header(line)) {
            *entry = "";
        }
    } else if line.trim().is_empty() {
        return None;
    }
    *line = "";
    Some(lines.join("\n"))
}

pub(super) fn parse(path: &Path, text: &str) -> Result<File, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError::at(path, text, error.span(), error.message()))
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    let amount = text.strip_prefix('-').unwrap_or(&text);
    let length = humantime::parse_duration(amount)
        .map_err(|_| serde::de::Error::custom("expected a duration such as \"1s\" or \"500ms\""))?;
    if amount != text || !INTERVALS.contains(&length) {
        let (least, most) = (typed(*INTERVALS.start()), typed(*INTERVALS.end()));
        let message = format!("interval must be between {least} and {most}");
        return Err(serde::de::Error::custom(message));
    }
    Ok(Some(length))
}

/// Returns the name of a GPU as the driver knows it: its index or its UUID.
pub fn gpu_name(text: &str) -> Option<String> {
    if let Ok(index) = text.parse::<u32>() {
        return Some(index.to_string());
    }
    let mut prefixes = ["GPU-", "MIG-"].into_iter();
    let uuid = prefixes.find_map(|prefix| text.strip_prefix(prefix))?;
    (!uuid.is_empty()).then(|| text.to_owned())
}

fn gpu<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    gpu_name(&text).ok_or_else(|| serde::de::Error::custom("no name of a GPU"))
}

fn mebibytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    let number = i64::deserialize(from)?;
    let number = usize::try_from(number).ok();
    let number = number.filter(|number| (1..=4096).contains(number));
    let number =
        number.ok_or_else(|| serde::de::Error::custom("past-mib must be between 1 and 4096"))?;
    Ok(Some(number << 20))
}

impl<'de> Deserialize<'de> for KeyPress {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Times between two samples: shorter ones exceed pipetop's cost budget, longer ones show no change.
pub const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);
