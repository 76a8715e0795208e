//! Opens a recording. Reads as much as possible of a damaged one, and a rotated one as a whole.

use std::io::Read as _;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::format::{HEAD_BYTES, Header, RecordError, read_head, rotated};
use super::index::find;
use super::samples::{GroupBytes, SampleTime, Samples, parse};
use crate::regular_file;
use crate::units::Moment;

/// Maximum difference between the start times (wall clock) in two files of one run.
const SAME_RUN: Duration = Duration::from_mins(1);

/// The readable samples of a file that `Recorder` has written, and of the rotated file before it.
#[derive(Debug)]
pub struct Recording {
    pub header: Header,
    pub samples: Samples,
    /// The file lacks its final index: it is still being written, or was cut off.
    pub cut: bool,
}

impl Deref for Recording {
    type Target = Samples;

    fn deref(&self) -> &Samples {
        &self.samples
    }
}

impl DerefMut for Recording {
    fn deref_mut(&mut self) -> &mut Samples {
        &mut self.samples
    }
}

impl Recording {
    /// Opens a file. A file that was cut off is read up to its last whole sample. Samples of the same run in the
    /// rotated file `NAME.1` come first.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not a recording, is of a newer version, or has no whole sample.
    /// The rotated file is left out if it has any error.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let recording = Self::open_alone(path)?;
        match Self::open_alone(&rotated(path)) {
            Ok(older) if recording.continues(&older) => Ok(recording.prepend(older)),
            _ => Ok(recording),
        }
    }

    fn open_alone(path: &Path) -> Result<Self, RecordError> {
        let refused = |error| RecordError::Read {
            path: path.to_owned(),
            error,
        };
        let file = regular_file::open(path).map_err(refused)?;
        let length = file.metadata().map_err(refused)?.len();
        let mut head = vec![];
        let first = (&file).take(HEAD_BYTES as u64).read_to_end(&mut head);
        first.map_err(refused)?;
        let (header, start) = read_head(path, &head)?;
        let start = start as u64;
        let (groups, end) = find(&file, start, length).map_err(refused)?;
        let file = Arc::new(file);
        let mut samples = Samples::default();
        for group in groups {
            samples.add(group, GroupBytes::File(Arc::clone(&file)));
        }
        let cut = end < length;
        if cut {
            samples.add_open(file, end, length);
        }
        if samples.is_empty() {
            return Err(RecordError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            header,
            samples,
            cut,
        })
    }

    /// Returns when the first sample was taken.
    fn begin(&self) -> Option<Moment> {
        let (text, _) = self.text(0, Some(1)).ok()?;
        let taken: SampleTime = parse(&text).ok()?;
        Some(taken.at)
    }

    /// Returns whether both recordings are of one run, and `older` ends before this one starts.
    fn continues(&self, older: &Self) -> bool {
        let Some((this_start, other_start)) = self.begin().zip(older.begin()) else {
            return false;
        };
        let started = |at: Moment| at.wall.checked_sub(at.since_start);
        let (Some(this_start), Some(other_start)) = (started(this_start), started(other_start))
        else {
            return false;
        };
        let apart = this_start.duration_since(other_start);
        let apart = apart.unwrap_or_else(|before| before.duration());
        apart < SAME_RUN && older.span().1 <= self.span().0
    }

    fn prepend(mut self, mut older: Self) -> Self {
        older.samples.append(self.samples);
        self.samples = older.samples;
        self
    }
}
