//! Samples by number and by time, in compressed groups that are in a file or in memory.
//!
//! Keeps the positions of all groups, but only one decoded group.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use zstd::stream::read::Decoder;

use super::format::{GROUP_BYTES, MAX_LINE, RecordError};
use super::group::Group;
use crate::sample::Sample;
use crate::units::Moment;
use crate::untrusted;

/// The readable samples of a recording, or of a running job's ring.
#[derive(Debug, Default)]
pub struct Samples {
    groups: Vec<(Group, GroupBytes)>,
    decoded: Option<Decoded>,
}

/// Source of a group's bytes.
#[derive(Debug)]
pub(super) enum GroupBytes {
    File(Arc<File>),
    Memory(Vec<u8>),
}

/// The lines of one group, including line ends.
#[derive(Debug)]
struct Decoded {
    place: usize,
    text: Vec<u8>,
    /// Offset after each line.
    ends: Vec<usize>,
    /// The frame ends with an error. After the last line, the checksum is wrong: any of the lines may be.
    wrong: bool,
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

/// The part of a sample with the time at which it was taken.
#[derive(Deserialize)]
pub(super) struct SampleTime {
    pub(super) at: Moment,
}

impl Samples {
    /// Returns the number of the first sample.
    pub fn first(&self) -> u64 {
        self.groups.first().map_or(0, |(group, _)| group.first)
    }

    /// Returns one more than the number of the last sample.
    pub fn len(&self) -> u64 {
        self.groups
            .last()
            .map_or(0, |(group, _)| group.first + u64::from(group.count))
    }

    /// Returns whether there are no samples. Always false for an open recording: without a sample it is not opened.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns when the first and the last sample were taken, measured from when pipetop started.
    pub fn span(&self) -> (Duration, Duration) {
        let first = self.groups.first().map(|(group, _)| group.first_at);
        let last = self.groups.last().map(|(group, _)| group.last_at);
        (first.unwrap_or_default(), last.unwrap_or_default())
    }

    /// Returns the numbers of the first samples of all groups, in order. Reading one of these samples decodes no
    /// others.
    pub fn group_starts(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.groups.iter().map(|(group, _)| group.first)
    }

    /// Returns the number of the last sample taken at `time` or before; that of the first sample if there is none.
    ///
    /// # Errors
    /// Returns an error if the file is damaged there.
    pub fn at(&mut self, time: Duration) -> Result<u64, RecordError> {
        let groups = &self.groups;
        let place = groups.partition_point(|(group, _)| group.first_at <= time);
        let Some(place) = place.checked_sub(1) else {
            return Ok(self.first());
        };
        let group = groups[place].0;
        if group.last_at <= time {
            return Ok(group.first + u64::from(group.count) - 1);
        }
        let (mut low, mut high) = (0, group.count as usize);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            let taken: SampleTime = parse(self.line(place, middle)?)?;
            if taken.at.since_start <= time {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(group.first + low as u64)
    }

    /// Returns the sample with this number, and its size as text in bytes.
    ///
    /// # Errors
    /// Returns an error if there is no sample with this number, or if the file is damaged there.
    pub fn read(&mut self, number: u64) -> Result<(Sample, usize), RecordError> {
        let place = self.group_after(number).checked_sub(1);
        let (place, inside) = place
            .map(|place| (place, number - self.groups[place].0.first))
            .filter(|(place, inside)| *inside < u64::from(self.groups[*place].0.count))
            .ok_or_else(|| damaged("there is no sample with this number"))?;
        let inside = usize::try_from(inside).unwrap_or(usize::MAX);
        let line = if inside == 0 && self.decoded.as_ref().is_none_or(|now| now.place != place) {
            // Reading only the first sample of a group does not need the rest.
            let (text, _) = self.text(place, Some(1))?;
            return Ok((parse(&text)?, text.len()));
        } else {
            self.line(place, inside)?
        };
        Ok((parse(line)?, line.len()))
    }

    /// Returns the number of the first sample of the next group: where to continue after damage.
    pub fn next_group_after(&self, number: u64) -> Option<u64> {
        let next = self.groups.get(self.group_after(number));
        next.map(|(group, _)| group.first)
    }

    /// Returns the place of the first group that starts after this sample.
    fn group_after(&self, number: u64) -> usize {
        self.groups
            .partition_point(|(group, _)| group.first <= number)
    }

    /// Returns the text of a group, all its whole lines or the first `lines`, and whether its frame ends with an error.
    pub(super) fn text(
        &self,
        place: usize,
        lines: Option<usize>,
    ) -> Result<(Vec<u8>, bool), RecordError> {
        let (Group { from, to, .. }, bytes) = &self.groups[place];
        match bytes {
            GroupBytes::File(file) => {
                let (at, to) = (*from, *to);
                text(FileRange { file, at, to }, lines)
            }
            GroupBytes::Memory(bytes) => text(bytes.as_slice(), lines),
        }
    }

    /// Adds a group after the others.
    pub(super) fn add(&mut self, group: Group, bytes: GroupBytes) {
        self.groups.push((group, bytes));
    }

    /// Adds the samples after the last index of a file: those of a group that was never closed.
    pub(super) fn add_open(&mut self, file: Arc<File>, from: u64, to: u64) {
        let part = FileRange {
            file: &file,
            at: from,
            to,
        };
        let Ok((text, wrong)) = text(part, None) else {
            return;
        };
        let decoded = Decoded {
            place: self.groups.len(),
            ends: ends(&text),
            text,
            wrong,
        };
        let taken = |number| -> Option<Duration> {
            let taken: SampleTime = serde_json::from_slice(decoded.line(number)?).ok()?;
            Some(taken.at.since_start)
        };
        let count = decoded.ends.len();
        let times = taken(0).zip(count.checked_sub(1).and_then(taken));
        if let (Some((first_at, last_at)), Ok(count)) = (times, u32::try_from(count)) {
            let group = Group {
                from,
                to,
                first: self.len(),
                count,
                first_at,
                last_at,
            };
            self.add(group, GroupBytes::File(file));
            self.decoded = Some(decoded);
        }
    }

    /// Adds all of `later`, and continues the numbering.
    pub(super) fn append(&mut self, later: Self) {
        let samples = self.len();
        for (mut group, bytes) in later.groups {
            group.first += samples;
            self.add(group, bytes);
        }
        self.decoded = None;
    }

    /// Adds bytes in memory: to the last group if it is the same, else as a new group.
    pub(super) fn write(&mut self, group: Group, bytes: &[u8]) {
        match self.groups.last_mut() {
            Some((last, GroupBytes::Memory(written))) if last.first == group.first => {
                *last = group;
                written.extend_from_slice(bytes);
                let place = self.groups.len() - 1;
                self.decoded.take_if(|decoded| decoded.place == place);
            }
            before => {
                if let Some((_, GroupBytes::Memory(whole))) = before {
                    whole.shrink_to_fit();
                }
                self.add(group, GroupBytes::Memory(bytes.to_vec()));
            }
        }
    }

    /// Drops the first group. Returns its size in bytes.
    pub(super) fn drop_oldest(&mut self) -> u64 {
        self.decoded = None;
        let (forgotten, _) = self.groups.remove(0);
        forgotten.to - forgotten.from
    }

    /// Returns the number of groups.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Returns the range of a group in the file.
    #[cfg(test)]
    pub(crate) fn group(&self, place: usize) -> std::ops::Range<usize> {
        let at = |byte| usize::try_from(byte).unwrap_or(usize::MAX);
        let Group { from, to, .. } = self.groups[place].0;
        at(from)..at(to)
    }

    fn line(&mut self, place: usize, number: usize) -> Result<&[u8], RecordError> {
        if self.decoded.as_ref().is_none_or(|now| now.place != place) {
            let (text, wrong) = self.text(place, None)?;
            self.decoded = Some(Decoded {
                place,
                ends: ends(&text),
                text,
                wrong,
            });
        }
        let last = self.groups[place].0.count as usize == number + 1;
        let decoded = self.decoded.as_ref();
        let line = decoded.and_then(|now| now.line(number));
        let line = line.ok_or_else(|| damaged("the sample is incomplete"))?;
        // In place of the last line, so that the others can be seen.
        if last && decoded.is_some_and(|now| now.wrong) {
            return Err(damaged("a checksum is wrong, so figures may be, too"));
        }
        Ok(line)
    }
}

/// Returns the whole lines of the frame that starts here: all that can be decoded or the first `lines`, but no more
/// than a writer puts into one frame. Also returns whether the frame ends with an error.
fn text(part: impl Read, lines: Option<usize>) -> Result<(Vec<u8>, bool), RecordError> {
    let decoder = Decoder::new(part).map_err(|error| damaged(&error.to_string()))?;
    let mut decoder = BufReader::new(decoder.single_frame());
    let (mut text, mut whole, mut count) = (vec![], 0, 0);
    let mut wrong = false;
    while lines.is_none_or(|lines| count < lines) && whole <= GROUP_BYTES {
        let room = MAX_LINE as u64;
        // Keep what was decoded before an error.
        let read = (&mut decoder).take(room).read_until(b'\n', &mut text);
        if text.len() == whole || text.last() != Some(&b'\n') || read.is_err() {
            // A frame that was never closed ends too early.
            let error = read.err().map(|error| error.kind());
            wrong = error.is_some_and(|kind| kind != io::ErrorKind::UnexpectedEof);
            break;
        }
        whole = text.len();
        count += 1;
    }
    text.truncate(whole);
    if text.is_empty() {
        return Err(damaged("the sample cannot be decoded"));
    }
    Ok((text, wrong))
}

fn damaged(why: &str) -> RecordError {
    RecordError::Damaged {
        why: why.to_owned(),
    }
}

pub(super) fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, RecordError> {
    untrusted::from_json(line).map_err(|_| damaged("the sample cannot be decoded"))
}

fn ends(text: &[u8]) -> Vec<usize> {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1).collect()
}

/// A part of a file, read without changing the file's offset.
struct FileRange<'a> {
    file: &'a File,
    at: u64,
    to: u64,
}

impl Read for FileRange<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.to - self.at).unwrap_or(usize::MAX);
        let room = bytes.len().min(left);
        let count = self.file.read_at(&mut bytes[..room], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
