//! Writes samples: each is in the file before the next is accepted, so that a kill loses at most the one being written.
//!
//! Works on one file and the one it was rotated to; does not depend on the thread that it runs on.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::format::{Header, RecordError, head, rotated};
use super::group::OpenGroup;
use super::index::Index;
use crate::folders;
use crate::sample::Sample;

/// Replaces a command line that is left out.
const LEFT_OUT: &str = "(command line left out)";

/// A recording that is being written. [`super::Recorder`] uses it on a separate thread.
#[derive(Debug)]
pub struct Writer {
    options: RecordOptions,
    file: File,
    /// Bytes in the file.
    length: u64,
    /// Samples in the file.
    samples: u64,
    group: Option<OpenGroup>,
    index: Index,
}

impl Writer {
    /// Creates a new file with its head. Nothing is overwritten.
    ///
    /// # Errors
    /// Returns an error if the file exists or cannot be created.
    pub fn create(options: &RecordOptions) -> Result<Self, RecordError> {
        let refused = |error| RecordError::Create {
            path: options.path.clone(),
            error,
        };
        can_create(&options.path)?;
        let file = create(options).map_err(refused)?;
        let mut writer = Self {
            options: options.clone(),
            file,
            length: 0,
            samples: 0,
            group: None,
            index: Index::default(),
        };
        if let Err(error) = writer.begin() {
            // An empty file would keep the next try from using this name.
            let _ = std::fs::remove_file(&options.path);
            return Err(refused(error));
        }
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

    /// Writes a sample. If the file is full, rotates it first.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; what was written before can be read.
    pub fn write(&mut self, sample: &Sample) -> io::Result<()> {
        if self.length >= self.options.size && self.samples > 0 {
            self.finish()?;
            self.rotate()?;
        }
        let mut sample = sample.clone();
        if !self.options.command_lines {
            leave_out_command_lines(&mut sample);
        }
        let mut group = match self.group.take() {
            Some(group) => group,
            None => OpenGroup::new(self.length, self.samples)?,
        };
        let bytes = group.add(sample)?;
        self.append(&bytes)?;
        self.samples += 1;
        let full = group.is_full();
        self.group = Some(group);
        if full { self.finish() } else { Ok(()) }
    }

    /// Completes the file: ends the group, and writes an index after it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(&mut self) -> io::Result<()> {
        let Some(group) = self.group.take() else {
            return Ok(());
        };
        let (bytes, closed) = group.close()?;
        self.append(&bytes)?;
        let index = self.index.add(closed, self.length);
        self.append(&index)
    }

    /// Writes to another file from now on.
    #[cfg(test)]
    pub(super) fn set_file(&mut self, file: File) {
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
        let file = self.file.metadata()?;
        let gone = file.nlink() == 0 && !self.options.path.exists();
        if gone || file.len() < self.length {
            let why = "the file was removed or cut off";
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Ok(())
    }
}

/// Creates a file that only its owner can read: command lines can hold private data.
fn create(options: &RecordOptions) -> io::Result<File> {
    let mut new = OpenOptions::new();
    new.append(true).create_new(true).mode(0o600);
    new.open(&options.path)
}

/// Checks whether a recording can be created at this path, without creating it.
///
/// Returns the error with which creating it would fail.
pub fn can_create(path: &Path) -> Result<(), RecordError> {
    let refused = |path: &Path, error| {
        Err(RecordError::Create {
            path: path.to_owned(),
            error,
        })
    };
    // The name for the rotated file must be free, too.
    for name in [path, &rotated(path)] {
        if name.is_dir() {
            return refused(name, Errno::ISDIR.into());
        }
        if name.is_file() {
            return refused(name, Errno::EXIST.into());
        }
        if name.exists() {
            // A device or a pipe, which nobody should remove for a recording.
            let reason = "not a regular file";
            return refused(name, io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
    }
    let folder = folders::of_file(path);
    access(folder, Access::WRITE_OK | Access::EXEC_OK).or_else(|error| refused(path, error.into()))
}

fn leave_out_command_lines(sample: &mut Sample) {
    let job = sample.job.iter_mut().map(|job| &mut job.command);
    let choices = sample.candidates.iter_mut().map(|job| &mut job.command);
    for command in job.chain(choices) {
        LEFT_OUT.clone_into(command);
    }
}

/// What to record, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOptions {
    pub path: PathBuf,
    /// Size in bytes at which the file is renamed to `NAME.1`, replacing an older one, and a new one is started.
    pub size: u64,
    /// Whether to write the command lines of the job and of the jobs to choose from.
    pub command_lines: bool,
    /// Time from one sample to the next, as known when the recording starts.
    pub interval: Duration,
}
