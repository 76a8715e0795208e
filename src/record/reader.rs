//! Reads a recording: all of it or any place in it, and of a damaged one what can be read.
//!
//! Holds the places of the groups and one decoded group, however long the recording is; a recording that was rotated
//! is read as one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use zstd::stream::read::Decoder;

use super::format::{GROUP_BYTES, HEAD_BYTES, Header, LONGEST_LINE, RecordError, read_head};
use super::index::{Group, find};
use super::rotated;
use crate::sample::Sample;
use crate::units::Moment;

/// Two files of one run began within this, as the clock on the wall has it.
const SAME_RUN: Duration = Duration::from_mins(1);

/// What can be read of a file that `Recorder` has written, and of the one that gave way to it.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    /// The file before, and how many groups are its.
    older: Option<(File, usize)>,
    header: Header,
    groups: Vec<Group>,
    decoded: Option<Decoded>,
    cut: bool,
}

/// The lines of one group, each with its line end.
#[derive(Debug)]
struct Decoded {
    place: usize,
    text: Vec<u8>,
    /// Where each line ends.
    ends: Vec<usize>,
}

impl Decoded {
    fn line(&self, number: usize) -> Option<&[u8]> {
        let begin = match number.checked_sub(1) {
            None => 0,
            Some(before) => *self.ends.get(before)?,
        };
        self.text.get(begin..*self.ends.get(number)?)
    }
}

/// The part of a sample that says when it was taken.
#[derive(Deserialize)]
struct Taken {
    at: Moment,
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
        let file = File::open(path).map_err(refused)?;
        let data = file.metadata().map_err(refused)?;
        if !data.is_file() {
            return Err(RecordError::Foreign {
                path: path.to_owned(),
            });
        }
        let length = data.len();
        let mut head = vec![];
        let first = (&file).take(HEAD_BYTES as u64).read_to_end(&mut head);
        first.map_err(refused)?;
        let (header, start) = read_head(path, &head)?;
        let start = start as u64;
        let (groups, end) = find(&file, start, length).map_err(refused)?;
        let mut recording = Self {
            path: path.to_owned(),
            file,
            older: None,
            header,
            groups,
            decoded: None,
            cut: false,
        };
        if end < length {
            recording.cut = true;
            recording.tail(end, length);
        }
        if recording.groups.is_empty() {
            return Err(RecordError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(recording)
    }

    /// When the first sample was taken.
    fn begin(&self) -> Option<Moment> {
        let first = self.groups.first()?;
        let line = text(&self.file, first.from, first.to, Some(1)).ok()?;
        let taken: Taken = parse(&line).ok()?;
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

    fn behind_older(mut self, older: Self) -> Self {
        let (groups, samples) = (older.groups.len(), older.len());
        for group in &mut self.groups {
            group.first += samples;
        }
        if let Some(decoded) = &mut self.decoded {
            decoded.place += groups;
        }
        self.groups.splice(0..0, older.groups);
        self.older = Some((older.file, groups));
        self
    }

    /// The text of a group: its whole lines, or as many as are wanted.
    fn text(&self, place: usize, lines: Option<usize>) -> Result<Vec<u8>, RecordError> {
        let Group { from, to, .. } = self.groups[place];
        let file = match &self.older {
            Some((older, groups)) if place < *groups => older,
            _ => &self.file,
        };
        text(file, from, to, lines)
    }

    /// Finds the samples behind the last index: those of a group that was never closed.
    fn tail(&mut self, from: u64, to: u64) {
        let Ok(text) = text(&self.file, from, to, None) else {
            return;
        };
        let decoded = Decoded {
            place: self.groups.len(),
            ends: ends(&text),
            text,
        };
        let taken = |number| -> Option<Duration> {
            let taken: Taken = serde_json::from_slice(decoded.line(number)?).ok()?;
            Some(taken.at.since_start)
        };
        let count = decoded.ends.len();
        let times = taken(0).zip(count.checked_sub(1).and_then(taken));
        if let (Some((first_at, last_at)), Ok(count)) = (times, u32::try_from(count)) {
            self.groups.push(Group {
                from,
                to,
                first: self.len(),
                count,
                first_at,
                last_at,
            });
            self.decoded = Some(decoded);
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The file ends without the index that ends a whole one: it is still being written, or was cut off.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// One more than the number of the last sample.
    pub fn len(&self) -> u64 {
        self.groups
            .last()
            .map_or(0, |group| group.first + u64::from(group.count))
    }

    /// Never: a recording without a sample is not opened.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// When the first and the last sample were taken, since pipetop started.
    pub fn span(&self) -> (Duration, Duration) {
        let first = self.groups.first().map(|group| group.first_at);
        let last = self.groups.last().map(|group| group.last_at);
        (first.unwrap_or_default(), last.unwrap_or_default())
    }

    /// The numbers of the first samples of all groups, in order: reading one of them decodes no other.
    pub fn landmarks(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.groups.iter().map(|group| group.first)
    }

    /// The number of the last sample that was taken at `time` or before; that of the first where there is none.
    ///
    /// # Errors
    /// Where the file is damaged there.
    pub fn at(&mut self, time: Duration) -> Result<u64, RecordError> {
        let place = self.groups.partition_point(|group| group.first_at <= time);
        let Some(place) = place.checked_sub(1) else {
            return Ok(self.groups.first().map_or(0, |group| group.first));
        };
        let group = self.groups[place];
        if group.last_at <= time {
            return Ok(group.first + u64::from(group.count) - 1);
        }
        let (mut low, mut high) = (0, group.count as usize);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            let taken: Taken = parse(self.line(place, middle)?)?;
            if taken.at.since_start <= time {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(group.first + low as u64)
    }

    /// The sample of this number, and the bytes that it takes as text.
    ///
    /// # Errors
    /// Where there is none of this number, or the file is damaged there.
    pub fn read(&mut self, number: u64) -> Result<(Sample, usize), RecordError> {
        let place = self.groups.partition_point(|group| group.first <= number);
        let place = place.checked_sub(1);
        let group = place.and_then(|place| Some((place, self.groups.get(place)?)));
        let (place, inside) = group
            .map(|(place, group)| (place, number - group.first))
            .filter(|(place, inside)| *inside < u64::from(self.groups[*place].count))
            .ok_or_else(|| damaged("no reading of this number is left"))?;
        let inside = usize::try_from(inside).unwrap_or(usize::MAX);
        let line = if inside == 0 && self.decoded.as_ref().is_none_or(|now| now.place != place) {
            // Of a landmark alone the rest of its group is not needed.
            let text = self.text(place, Some(1))?;
            return Ok((parse(&text)?, text.len()));
        } else {
            self.line(place, inside)?
        };
        Ok((parse(line)?, line.len()))
    }

    /// The number of the first sample behind the group of this one: where to go on behind damage.
    pub fn behind(&self, number: u64) -> Option<u64> {
        let place = self.groups.partition_point(|group| group.first <= number);
        self.groups.get(place).map(|group| group.first)
    }

    /// Where a group lies in the file.
    #[cfg(test)]
    pub(super) fn group(&self, place: usize) -> std::ops::Range<usize> {
        let at = |byte| usize::try_from(byte).unwrap_or(usize::MAX);
        let Group { from, to, .. } = self.groups[place];
        at(from)..at(to)
    }

    fn line(&mut self, place: usize, number: usize) -> Result<&[u8], RecordError> {
        if self.decoded.as_ref().is_none_or(|now| now.place != place) {
            let text = self.text(place, None)?;
            self.decoded = Some(Decoded {
                place,
                ends: ends(&text),
                text,
            });
        }
        let line = self.decoded.as_ref().and_then(|now| now.line(number));
        line.ok_or_else(|| damaged("the reading is not whole"))
    }
}

/// The whole lines of the frame that lies here, as many as can be decoded, or as many as are wanted; never more
/// than a writer puts into one.
fn text(file: &File, from: u64, to: u64, lines: Option<usize>) -> Result<Vec<u8>, RecordError> {
    let part = Part { file, at: from, to };
    let decoder = Decoder::new(part).map_err(|error| damaged(&error.to_string()))?;
    let mut decoder = BufReader::new(decoder.single_frame());
    let (mut text, mut whole, mut count) = (vec![], 0, 0);
    while lines.is_none_or(|lines| count < lines) && whole <= GROUP_BYTES {
        let room = LONGEST_LINE as u64;
        // What was decoded before an error stays.
        let read = (&mut decoder).take(room).read_until(b'\n', &mut text);
        if text.len() == whole || text.last() != Some(&b'\n') || read.is_err() {
            break;
        }
        whole = text.len();
        count += 1;
    }
    text.truncate(whole);
    if text.is_empty() {
        return Err(damaged("nothing of it can be decoded"));
    }
    Ok(text)
}

fn damaged(why: &str) -> RecordError {
    RecordError::Damaged {
        why: why.to_owned(),
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, RecordError> {
    serde_json::from_slice(line).map_err(|error| damaged(&error.to_string()))
}

fn ends(text: &[u8]) -> Vec<usize> {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1).collect()
}

/// A part of a file, read without moving anybody's place in it.
struct Part<'a> {
    file: &'a File,
    at: u64,
    to: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.to - self.at).unwrap_or(usize::MAX);
        let room = bytes.len().min(left);
        let count = self.file.read_at(&mut bytes[..room], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
