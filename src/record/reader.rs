//! Opens a recording, and of a damaged one what can be read; a recording that was rotated is read as one.

use std::io::Read as _;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::format::{HEAD_BYTES, Header, RecordError, read_head, rotated};
use super::index::find;
use super::samples::{Bytes, Samples, Taken, parse};
use crate::regular_file;
use crate::units::Moment;

/// Two files of one run began within this, as the clock on the wall has it.
const SAME_RUN: Duration = Duration::from_mins(1);

/// What can be read of a file that `Recorder` has written, and of the one that gave way to it.
#[derive(Debug)]
pub struct Recording {
    header: Header,
    samples: Samples,
    cut: bool,
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
    /// Opens a file; one that was cut off, up to its last whole sample. What the same run wrote before, into the file
    /// that was renamed to `NAME.1`, comes first.
    ///
    /// # Errors
    /// Where it cannot be read, is no recording, is one of a newer version, or holds no whole sample. Whatever is
    /// wrong with the file before, it is left out.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let recording = Self::open_alone(path)?;
        match Self::open_alone(&rotated(path)) {
            Ok(older) if recording.goes_on_from(&older) => Ok(recording.behind_older(older)),
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
            samples.add(group, Bytes::File(Arc::clone(&file)));
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

    /// When the first sample was taken.
    fn begin(&self) -> Option<Moment> {
        let taken: Taken = parse(&self.text(0, Some(1)).ok()?).ok()?;
        Some(taken.at)
    }

    /// Both are of one run, and the other one ends before this one begins.
    fn goes_on_from(&self, older: &Self) -> bool {
        let Some((ours, theirs)) = self.begin().zip(older.begin()) else {
            return false;
        };
        let started = |at: Moment| at.wall.checked_sub(at.since_start);
        let (Some(ours), Some(theirs)) = (started(ours), started(theirs)) else {
            return false;
        };
        let apart = ours.duration_since(theirs);
        let apart = apart.unwrap_or_else(|before| before.duration());
        apart < SAME_RUN && older.span().1 <= self.span().0
    }

    fn behind_older(mut self, mut older: Self) -> Self {
        older.samples.append(self.samples);
        self.samples = older.samples;
        self
    }

    /// What is in it, without the file's own facts.
    pub fn into_samples(self) -> Samples {
        self.samples
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The file ends without the index that ends a whole one: it is still being written, or was cut off.
    pub fn is_cut(&self) -> bool {
        self.cut
    }
}
