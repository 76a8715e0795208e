//! The format of a recording: its head, its groups, and the errors of both.
//!
//! A recording is a zstd file that any zstd can read: frames of JSON lines, a sample each, and between them frames that
//! zstd skips. Works on bytes; opens no file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Magic number of the skippable zstd frames that recordings use.
const SKIPPABLE: [u8; 4] = 0x184D_2A5C_u32.to_le_bytes();
/// Start of a recording, after the eight bytes of the frame header.
const HEAD: &[u8] = b"pipetop-recording/";
/// The version that is written, and the newest that is read; older ones are read, too. Since version 2, events are
/// numbered.
pub(super) const VERSION: u32 = 2;
/// Maximum length of a head, in bytes.
const MAX_HEAD: usize = 1 << 16;
/// Position of the content's length in a skippable frame.
const LENGTH: std::ops::Range<usize> = SKIPPABLE.len()..FRAME;
/// Bytes before the content of a skippable frame.
pub(super) const FRAME: usize = 8;

/// A group is closed after this many samples or bytes of text: the most that a seek must read.
pub(super) const GROUP_SAMPLES: u32 = 64;
pub(super) const GROUP_BYTES: usize = 4 << 20;
/// Maximum length of a line in bytes: a sample of thousands of workers.
pub(super) const MAX_LINE: usize = 64 << 20;

/// The head of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of pipetop that wrote it.
    pub pipetop: String,
    /// Time from one sample to the next when the recording began.
    pub interval: Duration,
    /// Whether the recording has command lines.
    pub command_lines: bool,
}

/// Why a recording could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot record to {}: {error}", path.display())]
    Create { path: PathBuf, error: io::Error },
    #[error("cannot start a thread: {error}")]
    Thread { error: io::Error },
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} is not a pipetop recording", path.display())]
    Foreign { path: PathBuf },
    #[error("{} has recording format {version}; this pipetop reads format {VERSION}", path.display())]
    Newer { path: PathBuf, version: u32 },
    #[error("{} contains no complete sample", path.display())]
    Empty { path: PathBuf },
    #[error("the recording is damaged: {why}")]
    Damaged { why: String },
}

impl RecordError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Create { error, .. } if error.kind() == io::ErrorKind::AlreadyExists => {
                "nothing is overwritten: choose another name, or remove the file and its rotated part (.1)"
            }
            Self::Create { .. } => "--record needs a file in a writable directory",
            Self::Thread { .. } => "raise the process limit (ulimit -u)",
            Self::Read { .. } => "use a file made with --record",
            Self::Foreign { .. } => "make a recording with `pipetop --record FILE`",
            Self::Newer { .. } => "use a newer pipetop",
            Self::Empty { .. } => {
                "it ended too early, or is damaged; record for more than one interval"
            }
            Self::Damaged { .. } => "use --from and --to to replay the parts before and after",
        }
    }
}

/// Returns a frame that zstd skips.
pub(super) fn skippable(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("heads and indices are short");
    let mut frame = Vec::with_capacity(FRAME + content.len());
    frame.extend_from_slice(&SKIPPABLE);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(content);
    frame
}

/// Returns the content length of a skippable frame that starts with these bytes; `None` if it is another frame.
pub(super) fn skippable_length(frame: [u8; FRAME]) -> Option<usize> {
    let length = frame[4..].try_into().map(u32::from_le_bytes).ok()?;
    (frame[..4] == SKIPPABLE).then_some(length as usize)
}

/// Returns the head of a file.
pub(super) fn head(header: &Header) -> serde_json::Result<Vec<u8>> {
    let mut content = HEAD.to_vec();
    content.extend_from_slice(format!("{VERSION}\n").as_bytes());
    content.extend_from_slice(&serde_json::to_vec(header)?);
    Ok(skippable(&content))
}

/// Reads the head from the first bytes of a file. Returns it with its length.
pub(super) fn read_head(path: &Path, bytes: &[u8]) -> Result<(Header, usize), RecordError> {
    let foreign = || RecordError::Foreign {
        path: path.to_owned(),
    };
    let cut = || RecordError::Empty {
        path: path.to_owned(),
    };
    // The length of the frame, which stands between the two constants, is not compared.
    let start = SKIPPABLE.iter().chain(&[0; 4]).chain(HEAD);
    let mut start = bytes.iter().zip(start).enumerate();
    if bytes.is_empty() || start.any(|(at, (byte, known))| byte != known && !LENGTH.contains(&at)) {
        return Err(foreign());
    }
    if bytes.len() < FRAME + HEAD.len() {
        return Err(cut());
    }
    let length = bytes[..FRAME].try_into().ok().and_then(skippable_length);
    let length = length
        .filter(|length| (HEAD.len()..=MAX_HEAD).contains(length))
        .ok_or_else(foreign)?;
    let content = bytes.get(FRAME..FRAME + length).ok_or_else(cut)?;
    let text = content[HEAD.len()..].split(|byte| *byte == b'\n');
    let mut text = text.map(|line| std::str::from_utf8(line).unwrap_or_default());
    let version = text
        .next()
        .and_then(|version| version.parse().ok())
        .filter(|version| *version > 0)
        .ok_or_else(foreign)?;
    if version > VERSION {
        return Err(RecordError::Newer {
            path: path.to_owned(),
            version,
        });
    }
    let header = serde_json::from_str(text.next().unwrap_or_default()).map_err(|_| foreign())?;
    Ok((header, FRAME + length))
}

/// Number of bytes that always contain the whole head.
pub(super) const HEAD_BYTES: usize = FRAME + MAX_HEAD;

/// Returns the name that a full file is renamed to, for example `run.rec.1`.
pub(crate) fn rotated(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}
