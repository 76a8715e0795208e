//! A group of samples as it is written: JSON lines, compressed together. Opens no file.

use std::fmt;
use std::io::{self, Write as _};
use std::time::Duration;

use zstd::stream::write::Encoder;

use super::format::{GROUP_BYTES, GROUP_SAMPLES};
use crate::sample::Sample;

/// For lines as similar as these, zstd's fastest level compresses better than the next ones do.
const LEVEL: i32 = 1;

/// Samples that were compressed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    /// Start and end of its frame in the file.
    pub(super) from: u64,
    pub(super) to: u64,
    /// Number of its first sample in the recording, and number of its samples.
    pub(super) first: u64,
    pub(super) count: u32,
    /// When its first and last sample were taken, measured from when pipetop started.
    pub(super) first_at: Duration,
    pub(super) last_at: Duration,
}

/// The group that is being written.
pub(super) struct OpenGroup {
    encoder: Encoder<'static, Vec<u8>>,
    pub(super) group: Group,
    /// Bytes of uncompressed text.
    text: usize,
    /// The newest sample: its events are not written again.
    last: Option<Box<Sample>>,
}

impl fmt::Debug for OpenGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.group.fmt(f)
    }
}

impl OpenGroup {
    /// Returns a group at offset `from` whose first sample has the number `first`.
    pub(super) fn new(from: u64, first: u64) -> io::Result<Self> {
        let mut encoder = Encoder::new(Vec::new(), LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self {
            encoder,
            group: Group {
                from,
                to: from,
                first,
                count: 0,
                first_at: Duration::ZERO,
                last_at: Duration::ZERO,
            },
            text: 0,
            last: None,
        })
    }

    /// Adds a sample. Returns the bytes to append to the file.
    pub(super) fn add(&mut self, mut sample: Sample) -> io::Result<Vec<u8>> {
        if let Some(last) = &self.last {
            sample.drop_events(last);
        }
        let mut line = serde_json::to_vec(&sample)?;
        line.push(b'\n');
        self.encoder.write_all(&line)?;
        self.encoder.flush()?;
        let at = sample.at.since_start;
        if self.group.count == 0 {
            self.group.first_at = at;
        }
        self.group.last_at = at;
        self.group.count += 1;
        self.text += line.len();
        self.last = Some(Box::new(sample));
        Ok(self.taken())
    }

    pub(super) fn is_full(&self) -> bool {
        self.group.count >= GROUP_SAMPLES || self.text >= GROUP_BYTES
    }

    /// Ends the group. Returns its last bytes and its position.
    pub(super) fn close(mut self) -> io::Result<(Vec<u8>, Group)> {
        self.encoder.do_finish()?;
        let bytes = self.taken();
        Ok((bytes, self.group))
    }

    fn taken(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(self.encoder.get_mut());
        self.group.to += bytes.len() as u64;
        bytes
    }
}
