//! Writes samples: each is in the file before the next is taken, so that a kill loses at most the one under way.
//!
//! Knows one file and the one that it was rotated from; whether anybody waits for it is not its business.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use zstd::stream::write::Encoder;

use super::format::{GROUP_BYTES, GROUP_SAMPLES, Header, RecordError, head};
use super::index::{Group, Index};
use super::{Options, rotated};
use crate::sample::Sample;

/// Of lines that are as alike as these, zstd's quickest level makes less than the next ones do.
const LEVEL: i32 = 1;
/// What stands in the place of a command line that is left out.
const LEFT_OUT: &str = "(command line left out)";

/// One recording that is being written. [`super::Recorder`] does it beside a job that is watched.
pub struct Writer {
    options: Options,
    file: File,
    /// Bytes in the file.
    length: u64,
    /// Samples in the file.
    samples: u64,
    group: Option<Open>,
    index: Index,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("options", &self.options)
            .field("samples", &self.samples)
            .finish_non_exhaustive()
    }
}

/// The group that is being written.
struct Open {
    encoder: Encoder<'static, Vec<u8>>,
    from: u64,
    first: u64,
    count: u32,
    bytes: usize,
    first_at: Duration,
    last_at: Duration,
}

impl Writer {
    /// A new file with its head. Nothing is overwritten.
    ///
    /// # Errors
    /// Where it is there already, or cannot be made.
    pub fn create(options: &Options) -> Result<Self, RecordError> {
        let refused = |error| RecordError::Create {
            path: options.path.clone(),
            error,
        };
        // What it would be renamed to must be free, too.
        if rotated(&options.path).exists() {
            return Err(RecordError::Create {
                path: rotated(&options.path),
                error: io::Error::from(io::ErrorKind::AlreadyExists),
            });
        }
        let file = create(options).map_err(refused)?;
        let mut writer = Self {
            options: options.clone(),
            file,
            length: 0,
            samples: 0,
            group: None,
            index: Index::default(),
        };
        writer.begin().map_err(refused)?;
        Ok(writer)
    }

    fn begin(&mut self) -> io::Result<()> {
        let header = Header {
            pipetop: env!("CARGO_PKG_VERSION").to_owned(),
            interval: self.options.interval,
            command_lines: self.options.command_lines,
        };
        let head = head(&header)?;
        self.append(&head)
    }

    /// Writes a sample, and begins a new file before it where this one is full.
    ///
    /// # Errors
    /// Where the file does not take it; what was written before can be read.
    pub fn write(&mut self, sample: &Sample) -> io::Result<()> {
        if self.length >= self.options.size && self.samples > 0 {
            self.finish()?;
            self.rotate()?;
        }
        let at = sample.at.since_start;
        let line = self.line(sample)?;
        let mut group = if let Some(group) = self.group.take() {
            group
        } else {
            let mut encoder = Encoder::new(Vec::new(), LEVEL)?;
            encoder.include_checksum(true)?;
            Open {
                encoder,
                from: self.length,
                first: self.samples,
                count: 0,
                bytes: 0,
                first_at: at,
                last_at: at,
            }
        };
        group.encoder.write_all(&line)?;
        group.encoder.flush()?;
        group.last_at = at;
        group.count += 1;
        group.bytes += line.len();
        let bytes = std::mem::take(group.encoder.get_mut());
        self.append(&bytes)?;
        self.samples += 1;
        let full = group.count >= GROUP_SAMPLES || group.bytes >= GROUP_BYTES;
        self.group = Some(group);
        if full { self.close() } else { Ok(()) }
    }

    /// Writes what makes the file whole.
    ///
    /// # Errors
    /// Where the file does not take it.
    pub fn finish(&mut self) -> io::Result<()> {
        self.close()
    }

    /// Ends the group, with an index behind it.
    fn close(&mut self) -> io::Result<()> {
        let Some(group) = self.group.take() else {
            return Ok(());
        };
        let bytes = group.encoder.finish()?;
        self.append(&bytes)?;
        let closed = Group {
            from: group.from,
            to: self.length,
            first: group.first,
            count: group.count,
            first_at: group.first_at,
            last_at: group.last_at,
        };
        let index = self.index.add(closed, self.length);
        self.append(&index)
    }

    /// Writes elsewhere from now on.
    #[cfg(test)]
    pub(super) fn divert(&mut self, file: File) {
        self.file = file;
    }

    fn rotate(&mut self) -> io::Result<()> {
        std::fs::rename(&self.options.path, rotated(&self.options.path))?;
        self.file = create(&self.options)?;
        self.length = 0;
        self.samples = 0;
        self.index = Index::default();
        self.begin()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn line(&self, sample: &Sample) -> serde_json::Result<Vec<u8>> {
        let mut line = if self.options.command_lines {
            serde_json::to_vec(sample)?
        } else {
            serde_json::to_vec(&without_command_lines(sample))?
        };
        line.push(b'\n');
        Ok(line)
    }
}

/// Readable by its owner alone: command lines can hold what is nobody else's business.
fn create(options: &Options) -> io::Result<File> {
    let mut new = OpenOptions::new();
    new.write(true).create_new(true).mode(0o600);
    new.open(&options.path)
}

fn without_command_lines(sample: &Sample) -> Sample {
    let mut sample = sample.clone();
    let job = sample.job.iter_mut().map(|job| &mut job.command);
    let choices = sample.candidates.iter_mut().map(|job| &mut job.command);
    for command in job.chain(choices) {
        LEFT_OUT.clone_into(command);
    }
    sample
}
